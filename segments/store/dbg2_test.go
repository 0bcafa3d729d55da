package store_test
import ("testing";"fmt";"os";"github.com/actormq/actormq/segments/store")
func TestDbg(t *testing.T){
	disk, w := closed(t, 60)
	_ = w
	createFile(t, disk, "s/abort", 0)
	overwrite(t, disk, queueFile("A",0), 9, []byte("000000000000")); patchLog(t, disk, 18, []byte("00000000000"))
	for range 2 {
	o:=testOptions(); o.Events=func(e store.Event){fmt.Println("  ",e)}
	s,err:=store.Open(disk,testParams(),o)
	if err!=nil {t.Fatal(err)}
	p:=s.Report.Plan
	p.Remove=nil
	fmt.Printf("%+v\n",p)
	c:=contentOf(t,s)
	for k,q:=range c.Queues { fmt.Println(k,q.Min,q.Max,q.Units[len(q.Units)-1]) }
	s.Close()
	}
	_ = os.Stdout
}
