package deadletter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/ext/deadletter"
	"github.com/actormq/actormq/testkit/dispatching"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
	"github.com/actormq/actormq/testkit/probe"
)

func options(disk vfs.Disk) system.Options {
	return system.Options{
		Dir: "store", Disk: disk, SegmentBytes: 64 << 10, ConsumeQueueFileBytes: 2000, IndexSlots: 50, IndexEntries: 200,
		WindowBytes: 8 << 10,
	}
}

func dead(group, topic, body string) *messages.Message {
	return &messages.Message{Topic: messages.DLQTopicPrefix + group, Body: []byte(body), ReconsumeTimes: 16, Properties: messages.PropertiesOf(
		map[string]string{messages.PropertyRetryTopic: topic, messages.PropertyKeys: "k " + body, messages.PropertyDelay: "0"})}
}

func list(t testing.TB, l *deadletter.Letters, s *system.Store, f deadletter.Filter) []string {
	t.Helper()
	var bodies []string
	for letter, err := range l.List(context.Background(), s, f) {
		require.NoError(t, err)
		bodies = append(bodies, string(letter.Body))
	}
	return bodies
}

func TestDeadLettersAreListedFilteredAndSentAgainOnceAtARate(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		opt := options(memfs.New())
		l := deadletter.New()
		l.Plug(&opt)
		s, err := system.Open(opt)
		require.NoError(t, err)
		ctx := t.Context()
		for i := range 40 {
			_, err := s.Put(ctx, dead("g", "Orders", fmt.Sprint(i)))
			require.NoError(t, err)
		}
		<-time.After(time.Second)
		later := time.Now()
		for _, m := range []*messages.Message{dead("g", "Bills", "bill"), dead("other", "Orders", "of another"), dead("lost", "", "whose?")} {
			_, err := s.Put(ctx, m)
			require.NoError(t, err)
		}
		require.NoError(t, s.AwaitDispatched(ctx))
		require.Len(t, list(t, l, s, deadletter.Filter{}), 43)
		require.Equal(t, []string{"bill"}, list(t, l, s, deadletter.Filter{Group: "g", After: later}))
		require.Len(t, list(t, l, s, deadletter.Filter{Group: "g", Before: later}), 40)
		require.Equal(t, []string{"7"}, list(t, l, s, deadletter.Filter{Topic: "Orders", Key: "7"}))

		began := time.Now()
		n, err := l.Resend(ctx, s, deadletter.Resend{Filter: deadletter.Filter{Group: "g"}, Operator: "ops", PerSecond: 10, Limit: 21})
		require.NoError(t, err)
		require.Equal(t, 21, n)
		require.Equal(t, 2*time.Second, time.Since(began))
		m := probe.Follow(t, s, "Orders", 0).Next(ctx)
		require.Equal(t, "0", string(m.Body))
		require.Zero(t, m.ReconsumeTimes)
		require.Equal(t, messages.Properties("KEYS\x01k 0"), m.Properties)
		var a deadletter.Audit
		require.NoError(t, json.Unmarshal(probe.Follow(t, s, deadletter.AuditTopic, 0).Next(ctx).Body, &a))
		require.Equal(t, deadletter.Audit{
			Operator: "ops", At: a.At, Group: "g", DeadLetter: 0, Topic: "Orders", PhysicalOffset: int64(m.PhysicalOffset),
		}, a)
		require.NoError(t, s.Close(ctx))

		s, err = system.Open(opt)
		require.NoError(t, err)
		n, err = l.Resend(ctx, s, deadletter.Resend{Filter: deadletter.Filter{Group: "g"}})
		require.NoError(t, err)
		require.Equal(t, 20, n, "those that were sent are not sent again")
		require.Empty(t, list(t, l, s, deadletter.Filter{Group: "g"}))
		require.Len(t, list(t, l, s, deadletter.Filter{Group: "g", Resent: true}), 41)
		n, err = l.Resend(ctx, s, deadletter.Resend{})
		require.ErrorIs(t, err, deadletter.ErrNoTopic)
		require.Equal(t, 1, n, "one that can't be sent holds up no other")
		require.NoError(t, s.Close(ctx))
	})
}

// TestACrashWhileLettersAreSentAgainSendsNoneTwice: several operators send at once, and the node is killed, or loses its power, at each step.
func TestACrashWhileLettersAreSentAgainSendsNoneTwice(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		const letters = 10
		disk := memfs.New()
		opt := options(disk)
		l := deadletter.New()
		l.Plug(&opt)
		s, err := system.Open(opt)
		require.NoError(t, err)
		for i := range letters {
			_, err := s.Put(t.Context(), dead("g", "Orders", fmt.Sprint(i)))
			require.NoError(t, err)
		}
		require.NoError(t, s.AwaitDispatched(t.Context()))
		require.NoError(t, s.Close(t.Context())) // the letters are durable
		var mu sync.Mutex
		var left []*memfs.Disk
		opt.PutHooks = []system.PutHook{{Name: "crash", Inline: true, Func: func(*messages.Message) error {
			mu.Lock() // in front of each message and each audit record
			defer mu.Unlock()
			left = append(left, disk.Clone(), disk.Crash(uint64(len(left))))
			return nil
		}}}
		s, err = system.Open(opt)
		require.NoError(t, err)
		once := func(s *system.Store) {
			bodies := probe.Follow(t, s, "Orders", 0).All(t.Context())
			slices.Sort(bodies)
			require.Equal(t, slices.Compact(slices.Clone(bodies)), bodies)
			require.Len(t, bodies, letters)
		}
		var operators sync.WaitGroup
		for range 3 {
			operators.Go(func() {
				for {
					n, err := l.Resend(t.Context(), s, deadletter.Resend{Limit: 1})
					if err != nil || n == 0 {
						return
					}
				}
			})
		}
		operators.Wait()
		once(s)
		require.NoError(t, s.Close(t.Context()))
		require.Len(t, left, 4*letters)
		for _, disk := range left {
			opt := options(disk)
			l := deadletter.New()
			l.Plug(&opt)
			s, err := system.Open(opt)
			require.NoError(t, err)
			_, err = l.Resend(t.Context(), s, deadletter.Resend{})
			require.NoError(t, err)
			once(s)
			require.NoError(t, s.Close(t.Context()))
		}
	})
}

// TestContract: what was sent again is known, whatever happens.
func TestContract(t *testing.T) {
	all := deadletter.New()
	dispatching.Contract(t, dispatching.Subject{
		Plug: func(opt *system.Options) dispatching.Check {
			l := deadletter.New()
			l.Plug(opt)
			all = l
			return func(t testing.TB, s *system.Store, acked int) {
				waiting := list(t, l, s, deadletter.Filter{})
				for i := range acked {
					require.NotContains(t, waiting, fmt.Sprint(i))
				}
			}
		},
		Put: func(ctx context.Context, s *system.Store, i int) error {
			if _, err := s.Put(ctx, dead("g", "Orders", fmt.Sprint(i))); err != nil {
				return err
			}
			if err := s.AwaitDispatched(ctx); err != nil {
				return err
			}
			_, err := all.Resend(ctx, s, deadletter.Resend{})
			return err
		},
	})
}

func Example() {
	opt := options(memfs.New()) // a real store names a folder: system.Options{Dir: "/var/lib/orders"}
	letters := deadletter.New()
	letters.Plug(&opt)
	store, err := system.Open(opt)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	if _, err := store.Put(ctx, dead("billing", "Orders", "order 7")); err != nil {
		panic(err)
	}
	if err := store.AwaitDispatched(ctx); err != nil {
		panic(err)
	}
	for letter, err := range letters.List(ctx, store, deadletter.Filter{Group: "billing"}) {
		fmt.Println(letter.Group, letter.Topic, string(letter.Body), err)
	}
	n, err := letters.Resend(ctx, store, deadletter.Resend{Operator: "anna", PerSecond: 100})
	fmt.Println(n, "sent again", err)
	if err := store.Close(ctx); err != nil {
		panic(err)
	}
	// Output:
	// billing Orders order 7 <nil>
	// 1 sent again <nil>
}
