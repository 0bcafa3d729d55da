package system_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/memfs"
)

// must ends an example when something fails that can't.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// openExample opens a store on a simulated disk; a real one names a folder: system.Options{Dir: "/var/lib/orders"}.
func openExample(opt system.Options) *system.Store {
	opt.Dir, opt.Disk, opt.SegmentBytes, opt.IndexSlots, opt.IndexEntries = "orders", memfs.New(), 1<<20, 100, 400
	store, err := system.Open(opt)
	must(err)
	return store
}

// A message, its body and its properties are the caller's again when Put returns: all is copied.
func ExampleStore_Put() {
	store := openExample(system.Options{})
	ctx := context.Background()
	body := []byte("two coffees")
	for range 2 {
		result, err := store.Put(ctx, &messages.Message{Topic: "orders", Body: body})
		fmt.Println(result.Status, result.QueueOffset, err)
		copy(body, "one") // the first message stays as it was put
	}
	m, err := store.MessageAt(0)
	must(err)
	fmt.Println(string(m.Body))

	result, err := store.Put(ctx, &messages.Message{Topic: "orders", Body: make([]byte, 5<<20)})
	fmt.Println(result.Status, errors.Is(err, system.ErrBodyTooLarge)) // nothing was stored
	must(store.Close(ctx))
	// Output:
	// PUT_OK 0 <nil>
	// PUT_OK 1 <nil>
	// two coffees
	// MESSAGE_ILLEGAL true
}

// A context that has ended before anything is stored is an error with SERVICE_NOT_AVAILABLE. A deadline that passes later is told as
// FLUSH_DISK_TIMEOUT or UNKNOWN_ERROR: the message may be stored. Put it again with the same unique key where twice would do harm.
func ExampleStore_Put_deadline() {
	disk := memfs.New()
	store, err := system.Open(system.Options{
		Dir: "orders", Disk: disk, SegmentBytes: 1 << 20, NoIndex: true, FlushDiskType: system.SyncFlush,
	})
	must(err)
	menu(store, "one juice")
	slow := make(chan struct{})
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindDataSync {
			<-slow
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	result, err := store.Put(ctx, &messages.Message{Topic: "orders", Body: []byte("two coffees")})
	fmt.Println(result.Status, result.Status.Stored(), err)
	cancel()
	result, err = store.Put(ctx, &messages.Message{Topic: "orders", Body: []byte("one tea")})
	fmt.Println(result.Status, result.Status.Stored(), err != nil)
	close(slow)
	must(store.AwaitDispatched(context.Background()))
	fmt.Println(store.MaxOffset(messages.QueueKey{Topic: "orders"}), "are stored")
	must(store.Close(context.Background()))
	// Output:
	// FLUSH_DISK_TIMEOUT true <nil>
	// SERVICE_NOT_AVAILABLE false true
	// 2 are stored
}

// Who must not wait, an actor for example, has the answer brought.
func ExampleStore_PutAsync() {
	store := openExample(system.Options{})
	answered := make(chan string, 2)
	tell := func(r messages.PutResult, err error) { answered <- fmt.Sprint(r.Status, " ", err) }
	store.PutAsync(&messages.Message{Topic: "orders", Body: []byte("two coffees")}, true, time.Now().Add(time.Second), tell)
	body, err := record.EncodeBatchBody(nil, []messages.Message{{Body: []byte("one tea")}, {Body: []byte("one juice")}})
	must(err)
	store.PutBatchAsync(&messages.Message{Topic: "orders", Body: body}, true, time.Time{}, tell)
	fmt.Println(<-answered)
	fmt.Println(<-answered)
	must(store.Close(context.Background()))
	// Output:
	// PUT_OK <nil>
	// PUT_OK <nil>
}

// All messages of a batch are stored, one behind the other, or none.
func ExampleStore_PutMessages() {
	store := openExample(system.Options{})
	ctx := context.Background()
	batch := []messages.Message{{Topic: "orders", Body: []byte("two coffees")}, {Topic: "orders", Body: []byte("one tea")}}
	result, err := store.PutMessages(ctx, batch)
	fmt.Println(result.Status, result.QueueOffset, err)

	// The same with the encoding of RocketMQ's producers.
	body, err := record.EncodeBatchBody(nil, batch)
	must(err)
	result, err = store.PutBatch(ctx, &messages.Message{Topic: "orders", Body: body})
	fmt.Println(result.Status, result.QueueOffset, err)
	must(store.Close(ctx))
	// Output:
	// PUT_OK 0 <nil>
	// PUT_OK 2 <nil>
}

// A prepared message is seen by nobody before it is committed.
func ExampleStore_Transactions() {
	store := openExample(system.Options{})
	ctx := context.Background()
	tx, err := store.Transactions(ctx, system.TransactionOptions{
		Check: func(c messages.CheckTransaction) bool { return false }, // who has sent it is not there to be asked
	})
	must(err)
	paid, _, err := tx.Prepare(ctx, "shop", &messages.Message{Topic: "orders", Body: []byte("two coffees")})
	must(err)
	unpaid, _, err := tx.Prepare(ctx, "shop", &messages.Message{Topic: "orders", Body: []byte("one tea")})
	must(err)
	result, err := tx.Commit(ctx, paid)
	fmt.Println(result.Status, err)
	fmt.Println(tx.Rollback(ctx, unpaid))
	must(store.AwaitDispatched(ctx))
	fmt.Println(store.MaxOffset(messages.QueueKey{Topic: "orders"}), "of two,", tx.Waiting(), "waiting")
	must(store.Close(ctx))
	// Output:
	// PUT_OK <nil>
	// <nil>
	// 1 of two, 0 waiting
}
