package system_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/memfs"
)

// Every problem of the options is named at once.
func ExampleOptions() {
	_, err := system.Open(system.Options{SegmentBytes: 5, MaxTransferMessages: -1, DelayLevels: "soon"})
	fmt.Println(errors.Is(err, system.ErrOptions))
	opt := system.Options{Dir: "orders"}.Defaults()
	fmt.Println(opt.SegmentBytes>>20, opt.FlushDiskType, opt.Validate())
	fmt.Println(system.Options{Dir: "orders", SegmentBytes: 5}.Defaults().Validate() != nil)
	opt.TransientPoolEnable = true
	fmt.Println("a killed process may lose what came last:", opt.Pooled())
	// Output:
	// true
	// 1024 ASYNC_FLUSH <nil>
	// true
	// a killed process may lose what came last: true
}

// Several stores in one process do not know each other; one folder has one store.
func ExampleOpen() {
	disk := memfs.New()
	open := func(dir string) (*system.Store, error) {
		return system.Open(system.Options{Dir: dir, Disk: disk, SegmentBytes: 1 << 20, NoIndex: true, Logger: zerolog.Nop()})
	}
	orders, err := open("orders")
	must(err)
	bills, err := open("bills")
	must(err)
	_, err = open("orders")
	fmt.Println(errors.Is(err, vfs.ErrLocked))
	ctx := context.Background()
	must(orders.Close(ctx))
	result, err := bills.Put(ctx, &messages.Message{Topic: "bills", Body: []byte("7.50")})
	fmt.Println(result.Status, err)
	must(bills.Close(ctx))
	result, err = bills.Put(ctx, &messages.Message{Topic: "bills", Body: []byte("7.50")})
	fmt.Println(result.Status, errors.Is(err, system.ErrStopped))
	// Output:
	// true
	// PUT_OK <nil>
	// SERVICE_NOT_AVAILABLE true
}

func ExampleStore_Status() {
	store := openExample(system.Options{FlushDiskType: system.SyncFlush})
	menu(store, "two coffees")
	st := store.Status()
	fmt.Println(st.Role, st.Cause, st.FlushedTo == st.WrittenTo, st.DispatchedTo == store.FlushedTo())
	first, end := store.LogRange()
	fmt.Println(first, end == st.WrittenTo, store.Stats().Queues, store.Options().Dir, store.ConfigDir())
	store.EachQueue(func(key messages.QueueKey, first, end messages.QueueOffset) {
		fmt.Println(key.Topic, key.QueueID, first, end)
	})

	// Puts are refused for as long as somebody says so.
	store.SetFlag(messages.FlagNotWriteable, errors.New("we are moving"))
	_, err := store.Put(context.Background(), &messages.Message{Topic: "orders"})
	fmt.Println(err, "·", store.Writable() != nil)
	store.ClearFlag(messages.FlagNotWriteable)
	fmt.Println(store.Writable())
	store.EndPuts(errors.New("another node leads")) // as it is meant to be: the log has no error
	fmt.Println(store.Writable())

	// What its actors do.
	for _, a := range store.Actors() {
		if a.ID == "store/"+string(actors.RoleWriter) {
			fmt.Println(a.ID, a.Panics) // a.Waiting: what is in its mailbox, the answers of others too
		}
	}
	must(store.Close(context.Background()))
	// Output:
	// ASYNC_MASTER <nil> true true
	// 0 true 1 orders orders/config
	// orders 0 0 1
	// refused by a running flag: NOT_WRITEABLE: we are moving · true
	// <nil>
	// refused by a running flag: NOT_WRITEABLE: another node leads
	// store/commitlog-writer 0
}

// Messages go when they expire, or when the disk is full; queues of topics that nobody needs go when they are told to.
func ExampleStore_SetRetention() {
	store := openExample(system.Options{})
	menu(store, "two coffees")
	ctx := context.Background()
	must(store.SetRetention(messages.Retention{FileReservedTime: 7 * 24 * time.Hour, KeepUnread: true}))
	fmt.Println(store.Retention().FileReservedTime)
	store.SetReaders(func(time.Duration) map[messages.QueueKey]messages.Reader { // who has still to read what
		return map[messages.QueueKey]messages.Reader{orders: {Group: "kitchen", Next: 1}}
	})
	must(store.DeleteExpiredFiles()) // now, whatever the hour
	must(store.DeleteExpiredQueues(ctx))
	must(store.DeleteUnusedTopics(ctx, func(topic string) bool { return topic == "orders" }))
	must(store.DeleteTopic(ctx, "orders"))
	fmt.Println(store.MaxOffset(orders))
	log, queues := store.DiskUse() // in percent, once the cleaner has looked
	fmt.Println(log <= 100, queues <= 100, len(store.Cleaning().Disks) <= 3)
	must(store.Close(ctx))
	// Output:
	// 168h0m0s
	// 0
	// true true true
}

// Delayed messages are delivered unless that is switched off, as on a slave.
func ExampleStore_DeliverDelayed() {
	store := openExample(system.Options{DelayLevels: "1s 1h"})
	ctx := context.Background()
	must(store.DeliverDelayed(ctx, false))
	must(store.DeliverDelayed(ctx, true))
	_, err := store.Put(ctx, &messages.Message{Topic: "orders", Body: []byte("two coffees"), Properties: messages.PropertiesOf(
		map[string]string{messages.PropertyDelay: "1"})})
	must(err)
	got, err := store.GetWait(ctx, messages.GetMessage{Queue: orders, MaxMessages: 1})
	must(err)
	fmt.Println(len(got.Records), "message;", len(store.DelayOffsets()), "levels")
	got.Release()
	must(store.Close(ctx))
	// Output: 1 message; 2 levels
}

// A slave has the same log as its master.
func ExampleStore_Follow() {
	master := openExample(system.Options{Replication: system.Replication{HAListen: "127.0.0.1:0"}})
	slave := openExample(system.Options{Role: messages.Slave, Replication: system.Replication{HAFullCopy: true}})
	slave.Follow(master.HAAddress())
	menu(master, "two coffees")
	ctx := context.Background()
	got, err := slave.GetWait(ctx, messages.GetMessage{Queue: orders, MaxMessages: 1})
	must(err)
	fmt.Println(len(got.Records), "message at the slave;", len(master.Replicas()), "slave,", master.ReplicasRefused(), "refused;", slave.Following().Master == master.HAAddress())
	got.Release()
	must(slave.Close(ctx))
	must(master.Close(ctx))
	// Output: 1 message at the slave; 1 slave, 0 refused; true
}

// An actor system of the program's own can log where the store does.
func ExampleActorLogging() {
	system := actor.NewActorSystem(system.ActorLogging(zerolog.Nop()))
	defer system.Shutdown()
	fmt.Println(system.Address())
	// Output: nonhost
}
