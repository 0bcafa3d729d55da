package system_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/memfs"
)

// menu puts some messages and waits until they can be read.
func menu(store *system.Store, bodies ...string) {
	ctx := context.Background()
	for _, body := range bodies {
		_, err := store.Put(ctx, &messages.Message{
			Topic: "orders", Body: []byte(body), BornTimestampMs: time.Now().UnixMilli(),
			Properties: messages.PropertiesOf(map[string]string{messages.PropertyKeys: strings.Fields(body)[1], messages.PropertyTags: "new"}),
		})
		must(err)
	}
	must(store.AwaitDispatched(ctx))
}

var orders = messages.QueueKey{Topic: "orders"}

// A result points into the log itself: it is released once, and what is kept beyond that is copied first.
func ExampleStore_Get() {
	store := openExample(system.Options{})
	menu(store, "two coffees", "one tea", "one juice")
	ctx := context.Background()
	for at := store.MinOffset(orders); at < store.MaxOffset(orders); {
		got, err := store.Get(ctx, messages.GetMessage{Queue: orders, Offset: at, MaxMessages: 2})
		must(err)
		for _, raw := range got.Records {
			r, _, err := record.Parse(raw, true)
			must(err)
			m := r.Stored() // a copy
			fmt.Println(m.QueueOffset, string(m.Body))
		}
		at = got.NextOffset
		got.Release()
	}
	fmt.Println(store.HoldsInMemory(orders, 0))
	must(store.Close(ctx))
	// Output:
	// 0 two coffees
	// 1 one tea
	// 2 one juice
	// true
}

// Without a message GetWait waits for one, until its context ends.
func ExampleStore_GetWait() {
	store := openExample(system.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	got, err := store.GetWait(ctx, messages.GetMessage{Queue: orders, MaxMessages: 1})
	fmt.Println(got.Status, len(got.Records), err, ctx.Err())
	got.Release()
	must(store.Close(context.Background()))
	// Output: NO_MESSAGE_IN_QUEUE 0 <nil> context deadline exceeded
}

// Park is for who must not wait: it is told when it is worth reading again.
func ExampleStore_Park() {
	store := openExample(system.Options{})
	woken := make(chan messages.WakeReason, 2)
	pull := &messages.ParkPull{Queue: orders, Deadline: time.Now().Add(time.Minute), Wake: func(why messages.WakeReason) { woken <- why }}
	store.Park(pull)
	menu(store, "two coffees")
	fmt.Println(<-woken == messages.WakeArrived)
	gone := &messages.ParkPull{Queue: orders, Offset: 1, Deadline: time.Now().Add(time.Minute), Wake: pull.Wake}
	store.Park(gone)
	store.Unpark(gone) // nobody waits any more
	fmt.Println(<-woken == messages.WakeClosed)
	must(store.Close(context.Background()))
	// Output:
	// true
	// true
}

// Messages are found by their place, by a key, and by time.
func ExampleStore_Query() {
	store := openExample(system.Options{})
	menu(store, "two coffees", "one tea", "one juice")
	ctx := context.Background()
	found, err := store.Query(ctx, messages.QueryMessage{Topic: "orders", Key: "tea", MaxMessages: 10, EndMs: math.MaxInt64})
	must(err)
	fmt.Println(len(found), string(found[0].Body))
	raw, err := store.QueryRecords(ctx, messages.QueryMessage{Topic: "orders", Key: "tea", MaxMessages: 10, EndMs: math.MaxInt64})
	must(err)
	fmt.Println(raw.Status, len(raw.Records)) // the same, uncopied
	raw.Release()
	m, err := store.MessageAt(found[0].PhysicalOffset)
	fmt.Println(m.QueueOffset, err)
	_, err = store.MessageAt(found[0].PhysicalOffset + 1)
	fmt.Println(errors.Is(err, system.ErrNoMessage))

	stored, err := store.StoreTime(orders, m.QueueOffset)
	must(err)
	first, ok := store.EarliestStoreTime(orders)
	fmt.Println(stored >= first, ok)
	at, err := store.OffsetByTime(ctx, orders, first, messages.TimeLower)
	fmt.Println(at, err)
	must(store.Close(ctx))
	// Output:
	// 1 one tea
	// FOUND 1
	// 1 <nil>
	// true
	// true true
	// 0 <nil>
}

// OpenReadOnly looks at a store that somebody else has open; it changes nothing and takes no lock.
func ExampleOpenReadOnly() {
	opt := system.Options{Dir: "orders", Disk: memfs.New(), SegmentBytes: 1 << 20, IndexSlots: 100, IndexEntries: 400}
	store, err := system.Open(opt)
	must(err)
	menu(store, "two coffees", "one tea")
	ctx := context.Background()

	view, err := system.OpenReadOnly(opt)
	must(err)
	menu(store, "too late")
	view.EachQueue(func(key messages.QueueKey, first, end messages.QueueOffset) { fmt.Println(key.Topic, first, end) })
	got, err := view.Get(ctx, messages.GetMessage{Queue: orders, MaxMessages: 10})
	must(err)
	fmt.Println(len(got.Records))
	got.Release()
	from, to := view.LogRange()
	m, err := view.MessageAt(from)
	fmt.Println(string(m.Body), to > from, err)
	found, err := view.Query(ctx, messages.QueryMessage{Topic: "orders", Key: "tea", MaxMessages: 1, EndMs: math.MaxInt64})
	fmt.Println(len(found), err)
	must(view.Close())
	must(store.Close(ctx))
	// Output:
	// orders 0 2
	// 2
	// two coffees true <nil>
	// 1 <nil>
}
