package system_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system"
)

// A dispatcher sees every message, in the order of the log, at least once.
func ExampleDispatcher() {
	var coffees atomic.Int64
	store := openExample(system.Options{Extensions: system.Extensions{Dispatchers: []system.Dispatcher{{
		Name: "coffees",
		Handle: func(_ context.Context, b *system.Batch) error {
			for i := range b.Requests {
				m, err := b.Message(&b.Requests[i])
				if errors.Is(err, system.ErrNoMessage) {
					continue // retention was quicker
				}
				if err != nil {
					return err // it is handled again
				}
				if string(m.Body) == "two coffees" {
					coffees.Add(2)
				}
			}
			return nil
		},
	}}}})
	menu(store, "two coffees", "one tea", "two coffees")
	ctx := context.Background()
	must(store.AwaitExtension(ctx, "coffees"))
	fmt.Println(coffees.Load())
	for _, e := range store.Extensions() {
		fmt.Println(e.Kind, e.Name, e.State, e.Handled, e.LagBytes)
	}
	fmt.Println(store.ResumeExtension("coffees"), errors.Is(store.ResumeExtension("teas"), system.ErrNoExtension))
	must(store.Close(ctx))
	// Output:
	// 4
	// dispatcher coffees running 3 0
	// <nil> true
}

// Who keeps the position with data of its own, in one transaction, sees everything exactly once.
func ExampleDispatcher_exactlyOnce() {
	var kept atomic.Pointer[system.Position] // stands for a database
	plug := system.Dispatcher{
		Name: "ledger", Durable: true,
		Load: func(s *system.Store) (system.Position, bool, error) {
			at := kept.Load()
			if at == nil {
				return system.Position{}, false, nil
			}
			err := s.CheckPosition(*at)
			if errors.Is(err, system.ErrPosition) {
				kept.Store(nil) // with the data: they are of another log
				return system.Position{}, false, nil
			}
			return *at, err == nil, err
		},
		Handle: func(_ context.Context, b *system.Batch) error {
			next, err := b.Position()
			if err != nil {
				return err
			}
			if at := kept.Load(); at != nil && at.Offset >= next.Offset {
				return nil // this batch was had before
			}
			kept.Store(&next) // with what the batch changes, in one transaction
			return nil
		},
	}
	store := openExample(system.Options{
		FlushDiskType: system.SyncFlush, Extensions: system.Extensions{Dispatchers: []system.Dispatcher{plug}},
	})
	menu(store, "two coffees")
	ctx := context.Background()
	must(store.AwaitExtension(ctx, "ledger"))
	_, end := store.LogRange()
	fmt.Println(messages.PhysicalOffset(kept.Load().Offset) == end)
	must(store.Close(ctx))
	// Output: true
}

// A dispatcher may be an actor: it calls Done when it has handled a batch, at once or later.
func ExampleDispatch() {
	var seen atomic.Int64
	props := actor.PropsFromFunc(func(ctx actor.Context) {
		if d, ok := ctx.Message().(*system.Dispatch); ok {
			if d.Store() != system.StoreOf(ctx.ActorSystem()) {
				d.Refuse(errors.New("not our store"))
				return
			}
			for _, err := range d.Messages() {
				if err != nil {
					d.Done(err)
					return
				}
				seen.Add(1)
			}
			d.Done(nil)
		}
	})
	store := openExample(system.Options{Extensions: system.Extensions{Dispatchers: []system.Dispatcher{{Name: "seen", Actor: props}}}})
	menu(store, "two coffees", "one tea")
	ctx := context.Background()
	must(store.AwaitExtension(ctx, "seen"))
	fmt.Println(seen.Load())
	must(store.Close(ctx))
	// Output: 2
}

// Hooks are called in the order of the options; each sees what those before it have made of the message.
func ExamplePutHook() {
	store := openExample(system.Options{Extensions: system.Extensions{PutHooks: []system.PutHook{
		{Name: "polite", Func: func(m *messages.Message) error {
			m.Body = append(m.Body, " please"...)
			return nil
		}},
		{Name: "no-beer", Func: func(m *messages.Message) error {
			if string(m.Body) == "one beer please" {
				return errors.New("no beer")
			}
			return nil
		}},
	}}})
	ctx := context.Background()
	for _, body := range []string{"one tea", "one beer"} {
		result, err := store.Put(ctx, &messages.Message{Topic: "orders", Body: []byte(body)})
		fmt.Println(result.Status, err, errors.Is(err, system.ErrRefused))
	}
	m, err := store.MessageAt(0)
	fmt.Println(string(m.Body), err)
	must(store.Close(ctx))
	// Output:
	// PUT_OK <nil> false
	// MESSAGE_ILLEGAL refused by a put hook: no beer true
	// one tea please <nil>
}

// A listener is told which queues have grown, a service runs from Open to Close.
func ExampleListener() {
	told, began := make(chan messages.QueueOffset, 8), make(chan struct{})
	store := openExample(system.Options{Extensions: system.Extensions{
		Listeners: []system.Listener{{
			Name: "bell", Topics: []string{"orders"},
			Handle: func(_ context.Context, ends map[messages.QueueKey]messages.QueueOffset) error {
				told <- ends[orders]
				return nil
			},
		}},
		Services: []system.Service{{Name: "waiter", Run: func(ctx context.Context, s *system.Store) error {
			close(began)
			<-ctx.Done()
			return nil
		}}},
	}})
	<-began
	menu(store, "two coffees")
	fmt.Println(<-told)
	must(store.Close(context.Background()))
	// Output: 1
}

// An actor takes the place of a part: here one decides what is deleted, one builds an index of its own, and one delivers delayed
// messages.
func ExampleReplacement() {
	places := map[string]messages.PhysicalOffset{} // the index builder's alone
	begun := make(chan struct{})
	store := openExample(system.Options{Extensions: system.Extensions{Replacements: []system.Replacement{
		{Part: system.PartCleaner, Actor: actor.PropsFromFunc(func(ctx actor.Context) {
			if r, ok := ctx.Message().(*system.CleanRound); ok {
				r.Delete(len(r.Segments) - 10) // ten stay, however old they are
			}
		})},
		{Part: system.PartIndex, Actor: actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *system.Dispatch:
				for i := range m.Requests {
					places[string(m.Requests[i].Keys)] = m.Requests[i].PhysicalOffset
				}
				m.Done(nil)
			case *system.IndexQuery:
				if at, ok := places[m.Key]; ok {
					m.Found([]messages.PhysicalOffset{at}, nil)
					return
				}
				m.Found(nil, nil)
			}
		})},
		{Part: system.PartScheduler, Actor: actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case messages.DeliverDelayed:
				m.Answer.Complete(struct{}{}, nil)
				if m.On { // a scheduler that is in earnest reads now what has come before
					close(begun)
				}
			case messages.MessagesArrived: // whatever their level says, they are delivered at once
				store := system.StoreOf(ctx.ActorSystem())
				for _, a := range m.Arrivals {
					got, err := store.Get(context.Background(), messages.GetMessage{Queue: a.Queue, Offset: a.QueueOffset, MaxMessages: 1})
					must(err)
					r, _, err := record.Parse(got.Records[0], true)
					must(err)
					due := r.Stored()
					got.Release()
					due.Topic, _ = due.Properties.Get(messages.PropertyRealTopic)
					store.PutDueAsync(&due.Message, time.Time{}, func(messages.PutResult, error) {})
				}
			}
		})},
	}}})
	menu(store, "two coffees", "one tea")
	ctx := context.Background()
	must(store.AwaitExtension(ctx, string(system.PartIndex)))
	found, err := store.Query(ctx, messages.QueryMessage{Topic: "orders", Key: "tea", MaxMessages: 1, EndMs: math.MaxInt64})
	fmt.Println(len(found), err)
	<-begun
	_, err = store.Put(ctx, &messages.Message{Topic: "later", Body: []byte("one juice"), Properties: messages.PropertiesOf(
		map[string]string{messages.PropertyDelay: "18"})})
	must(err)
	got, err := store.GetWait(ctx, messages.GetMessage{Queue: messages.QueueKey{Topic: "later", QueueID: 17}, MaxMessages: 1})
	fmt.Println(len(got.Records), err)
	got.Release()
	must(store.Close(ctx))
	// Output:
	// 1 <nil>
	// 1 <nil>
}
