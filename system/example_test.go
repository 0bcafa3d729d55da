package system_test

import (
	"context"
	"fmt"
	"os"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system"
)

func Example() {
	dir, err := os.MkdirTemp("", "orders")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()

	store, err := system.Open(system.Options{Dir: dir, SegmentBytes: 1 << 20, IndexSlots: 1000, IndexEntries: 4000})
	if err != nil {
		panic(err)
	}
	defer func() {
		if err := store.Close(ctx); err != nil {
			panic(err)
		}
	}()

	result, err := store.Put(ctx, &messages.Message{Topic: "orders", Body: []byte("two coffees")})
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Status, "at queue offset", result.QueueOffset)

	got, err := store.GetWait(ctx, messages.GetMessage{Queue: messages.QueueKey{Topic: "orders"}, MaxMessages: 32})
	if err != nil {
		panic(err)
	}
	defer got.Release()
	for _, raw := range got.Records {
		r, _, err := record.Parse(raw, true)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(r.Body))
	}
	// Output:
	// PUT_OK at queue offset 0
	// two coffees
}
