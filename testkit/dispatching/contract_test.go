package dispatching_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/dispatching"
	"github.com/actormq/actormq/testkit/probe"
)

func put(ctx context.Context, s *system.Store, i int) error {
	_, err := s.Put(ctx, &messages.Message{Topic: "Orders", Body: fmt.Append(nil, "body ", i)})
	<-time.After(100 * time.Millisecond)
	return err
}

// copied requires that topic Copies has what was acknowledged.
func copied(t testing.TB, s *system.Store, acked int) {
	there := probe.Follow(t, s, "Copies", 0).All(context.Background())
	for i := range acked {
		require.Contains(t, there, fmt.Sprint("body ", i))
	}
}

// copyAll is a dispatcher that is an actor: it puts each message to topic Copies, without waiting.
func copyAll(ctx actor.Context) {
	d, ok := ctx.Message().(*system.Dispatch)
	if !ok {
		return
	}
	var left atomic.Int64
	var failed atomic.Pointer[error]
	answered := func(_ messages.PutResult, err error) {
		if err != nil {
			failed.Store(&err)
		}
		if left.Add(-1) > 0 {
			return
		}
		if why := failed.Load(); why != nil {
			d.Done(*why)
			return
		}
		d.Done(nil)
	}
	left.Store(1)
	for m, err := range d.Messages() {
		if err != nil {
			failed.Store(&err)
			break
		}
		if m.Topic != "Orders" {
			continue
		}
		left.Add(1)
		m.Message.Topic = "Copies"
		d.Store().PutAsync(&m.Message, true, time.Time{}, answered)
	}
	answered(messages.PutResult{}, nil)
}

func TestADispatcherThatIsAnActor(t *testing.T) {
	dispatching.Contract(t, dispatching.Subject{
		Plug: func(opt *system.Options) dispatching.Check {
			opt.Dispatchers = append(opt.Dispatchers, system.Dispatcher{Name: "copier", Actor: actor.PropsFromFunc(copyAll)})
			return copied
		},
		Put: put,
	})
}

// TestAServiceOfItsOwn copies a queue and keeps its place there in a queue of its own.
func TestAServiceOfItsOwn(t *testing.T) {
	orders, places := messages.QueueKey{Topic: "Orders"}, messages.QueueKey{Topic: "Places"}
	run := func(ctx context.Context, s *system.Store) error {
		if err := s.AwaitDispatched(ctx); err != nil {
			return nil // it is ending
		}
		for at := s.MaxOffset(places); ctx.Err() == nil; at++ { // a place says no more than that there is one more
			r, err := s.GetWait(ctx, messages.GetMessage{Queue: orders, Offset: at, MaxMessages: 1})
			if err != nil || len(r.Records) == 0 {
				return nil // it is ending
			}
			rec, _, err := record.Parse(r.Records[0], true)
			if err != nil {
				return err
			}
			m := rec.Stored()
			r.Release()
			m.Message.Topic = "Copies"
			if _, err := s.Put(ctx, &m.Message); err != nil {
				return err
			}
			if _, err := s.Put(ctx, &messages.Message{Topic: "Places", Body: []byte("x")}); err != nil {
				return err
			}
		}
		return nil
	}
	dispatching.Contract(t, dispatching.Subject{
		Plug: func(opt *system.Options) dispatching.Check {
			opt.Services = append(opt.Services, system.Service{Name: "copier", Run: run})
			return copied
		},
		Put: put,
	})
}
