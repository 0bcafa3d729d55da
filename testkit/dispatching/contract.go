package dispatching

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// Check requires that what the extension shows has every message that was acknowledged: those from 0 to acked.
type Check func(t testing.TB, s *system.Store, acked int)

// Subject is an extension under test.
type Subject struct {
	// Plug makes a new instance, plugs it into the options, and returns how to check it.
	Plug func(*system.Options) Check
	// Put puts message i as users of the extension do, and returns nil when it is acknowledged.
	Put func(ctx context.Context, s *system.Store, i int) error
	// Settle is how long, in virtual time, the extension may take once nothing is put any more; 0: a second.
	Settle time.Duration
	// Messages are how many are put; 0: 20.
	Messages int
}

// options are those of a small store that acknowledges what is durable.
func options(disk vfs.Disk) system.Options {
	return system.Options{
		Dir: "store", Disk: disk, SegmentBytes: 64 << 10, ConsumeQueueFileBytes: 2000, IndexSlots: 50, IndexEntries: 200,
		WindowBytes: 8 << 10, FlushDiskType: system.SyncFlush,
	}
}

// Contract runs the suite; call it outside of a synctest bubble.
func Contract(t *testing.T, s Subject) {
	if s.Settle == 0 {
		s.Settle = time.Second
	}
	if s.Messages == 0 {
		s.Messages = 20
	}
	for _, c := range []struct {
		name string
		test func(*testing.T, Subject)
	}{
		{"crash at every step", crashes}, {"stop and start", restarts}, {"every batch twice", twice}, {"calls panic and fail", faults},
		{"services end and begin again", again}, {"slow disk", slow},
	} {
		t.Run(c.name, func(t *testing.T) { fixture.Bubble(t, func(t *testing.T) { c.test(t, s) }) })
	}
}

// run opens a store, puts the messages, lets everything settle, checks, and closes.
func run(t *testing.T, s Subject, opt system.Options, check Check, put int) {
	t.Helper()
	store, err := system.Open(opt)
	require.NoError(t, err)
	for i := range put {
		require.NoError(t, s.Put(t.Context(), store, i))
	}
	settle(t.Context(), s.Settle)
	check(named{t, store, "after all puts"}, store, put)
	require.NoError(t, store.Close(t.Context()))
	settle(t.Context(), time.Second)
}

func settle(ctx context.Context, d time.Duration) {
	pause(ctx, d)
	synctest.Wait()
}

// pause lets virtual time pass.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// picture is what a crash has left.
type picture struct {
	disk  *memfs.Disk
	acked int
	what  string
}

func crashes(t *testing.T, s Subject) {
	disk := memfs.New()
	opt := options(disk)
	s.Plug(&opt)
	store, err := system.Open(opt)
	require.NoError(t, err)
	var pictures []picture
	acked, steps := 0, 0
	take := make(chan struct{}, 1) // one at a time, as several goroutines use the disk
	disk.Inject(func(op memfs.Op) error {
		if !op.Kind.Changes() {
			return nil
		}
		take <- struct{}{}
		defer func() { <-take }()
		if steps++; steps%3 == 0 {
			what := fmt.Sprintf("before step %d, %v of %s", steps, op.Kind, op.Name)
			pictures = append(pictures, picture{disk.Clone(), acked, what + ", killed"},
				picture{disk.Crash(uint64(steps)), acked, what + ", power cut"})
		}
		return nil
	})
	for i := range s.Messages {
		require.NoError(t, s.Put(t.Context(), store, i))
		take <- struct{}{}
		acked = i + 1
		<-take
	}
	settle(t.Context(), s.Settle)
	disk.Inject(nil)
	require.NoError(t, store.Close(t.Context()))
	require.Greater(t, len(pictures), 10)
	for i := 0; i < len(pictures); i += len(pictures)/60 | 1 { // an odd stride, as every other picture is a power cut
		p := pictures[i]
		opt := options(p.disk)
		check := s.Plug(&opt)
		store, err := system.Open(opt)
		require.NoError(t, err, p.what)
		settle(t.Context(), s.Settle)
		check(named{t, store, p.what}, store, p.acked)
		require.NoError(t, store.Close(t.Context()), p.what)
	}
	settle(t.Context(), time.Second)
}

// restarts stops in good order, when the positions are saved, and goes on with a new instance: what only the old one knew is missed.
func restarts(t *testing.T, s Subject) {
	disk := memfs.New()
	opt := options(disk)
	check := s.Plug(&opt)
	run(t, s, opt, check, s.Messages)
	opt = options(disk)
	check = s.Plug(&opt)
	store, err := system.Open(opt)
	require.NoError(t, err)
	settle(t.Context(), s.Settle)
	check(named{t, store, "after a stop and a start"}, store, s.Messages)
	require.NoError(t, store.Close(t.Context()))
	settle(t.Context(), time.Second)
}

// named says, when a check fails, where a crash was, and how the extensions are: a handler's error is seen nowhere else.
type named struct {
	testing.TB
	store *system.Store
	what  string
}

func (n named) Errorf(format string, args ...any) {
	n.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, n.what+": "+format, args...)
	for _, e := range n.store.Extensions() {
		fmt.Fprintf(&text, "\n%s %s: %s, %d handled, %d failures", e.Kind, e.Name, e.State, e.Handled, e.Failures)
		if e.LastError != nil {
			fmt.Fprintf(&text, ", the last: %v", e.LastError)
		}
	}
	n.TB.Errorf("%s", text.String())
}

// change puts something around the handlers of all dispatchers, and around what actors receive.
func change(opt *system.Options, wrap func(handle) handle, receive actor.ReceiverMiddleware) {
	for i := range opt.Dispatchers {
		if d := &opt.Dispatchers[i]; d.Handle != nil {
			d.Handle = wrap(d.Handle)
		} else {
			d.Actor = d.Actor.Clone(actor.WithReceiverMiddleware(receive))
		}
	}
}

type handle = func(context.Context, *system.Batch) error

func twice(t *testing.T, s Subject) {
	opt := options(memfs.New())
	check := s.Plug(&opt)
	change(&opt, func(next handle) handle {
		return func(ctx context.Context, b *system.Batch) error { return errors.Join(next(ctx, b), next(ctx, b)) }
	}, func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
			if d, ok := e.Message.(*system.Dispatch); ok {
				first := &system.Dispatch{Batch: d.Batch, Answer: messages.NewAnswer[struct{}]()}
				next(c, &actor.MessageEnvelope{Header: e.Header, Message: first, Sender: e.Sender})
			}
			next(c, e)
		}
	})
	run(t, s, opt, check, s.Messages)
}

func faults(t *testing.T, s Subject) {
	opt := options(memfs.New())
	check := s.Plug(&opt)
	change(&opt, func(next handle) handle {
		calls := 0
		return func(ctx context.Context, b *system.Batch) error {
			switch calls++; {
			case calls == 2 || calls == 7:
				panic("in the middle")
			case calls%3 == 0:
				return errors.Join(next(ctx, b), errors.New("after it was done"))
			}
			return next(ctx, b)
		}
	}, panicking(2, 7))
	s.Settle += 10 * time.Second
	run(t, s, opt, check, s.Messages)
}

// panicking has actors panic when they are told something for the so manyth time, before and after they have handled it in turn.
func panicking(at ...int) actor.ReceiverMiddleware {
	return func(next actor.ReceiverFunc) actor.ReceiverFunc {
		calls := 0
		return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
			switch e.Message.(type) {
			case actor.SystemMessage, actor.AutoReceiveMessage:
				next(c, e)
				return
			}
			calls++
			which := slices.Index(at, calls)
			if which < 0 || which%2 == 1 {
				next(c, e)
			}
			if which >= 0 {
				panic("in the middle")
			}
		}
	}
}

// again ends services now and then: by a panic once their context has ended, and those that are actors in the middle of a message.
func again(t *testing.T, s Subject) {
	opt := options(memfs.New())
	check := s.Plug(&opt)
	if len(opt.Services) == 0 {
		t.Skip("the extension has no service")
	}
	for i := range opt.Services {
		v := &opt.Services[i]
		if v.Run == nil {
			v.Actor = v.Actor.Clone(actor.WithReceiverMiddleware(panicking(1, 3, 9)))
			continue
		}
		next, lives := v.Run, 0
		v.Run = func(ctx context.Context, store *system.Store) error {
			if lives++; lives > 3 {
				return next(ctx, store)
			}
			short, end := context.WithTimeout(ctx, time.Duration(lives)*300*time.Millisecond)
			defer end()
			err := next(short, store)
			if ctx.Err() == nil && short.Err() != nil {
				panic("in the middle")
			}
			return err
		}
	}
	s.Settle += 10 * time.Second
	run(t, s, opt, check, s.Messages)
}

func slow(t *testing.T, s Subject) {
	disk := memfs.New()
	opt := options(disk)
	check := s.Plug(&opt)
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindWrite || op.Kind == memfs.KindDataSync {
			pause(t.Context(), 20*time.Millisecond)
		}
		return nil
	})
	s.Settle += 10 * time.Second
	run(t, s, opt, check, s.Messages)
}
