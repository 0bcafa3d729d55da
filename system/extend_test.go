package system_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/extension"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// seen collects the bodies that a dispatcher gets.
type seen struct {
	mu     sync.Mutex
	bodies []string
}

func (s *seen) handle(_ context.Context, b *system.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for m, err := range b.Messages() {
		if err != nil {
			return err
		}
		s.bodies = append(s.bodies, string(m.Body))
	}
	return nil
}

func (s *seen) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.bodies
	s.bodies = nil
	return got
}

// following are options with one dispatcher.
func following(disk vfs.Disk, d system.Dispatcher) system.Options {
	opt := small(disk)
	d.Name = "mine"
	opt.Dispatchers = []system.Dispatcher{d}
	return opt
}

func fillBodies(t *testing.T, s *system.Store, from, to int) (want []string) {
	t.Helper()
	for i := from; i < to; i++ {
		want = append(want, fmt.Sprint("body ", i))
		_, err := s.Put(t.Context(), message("T", int32(i%3), want[len(want)-1]))
		require.NoError(t, err)
	}
	return want
}

func status(t *testing.T, s *system.Store, name string) system.ExtensionStatus {
	t.Helper()
	for _, e := range s.Extensions() {
		if e.Name == name {
			return e
		}
	}
	require.Fail(t, "no extension of that name", name)
	return system.ExtensionStatus{}
}

func TestADispatcherSeesTheLogInOrderAndGoesOnWhereItWas(t *testing.T) {
	disk, got := memfs.New(), &seen{}
	opt := following(disk, system.Dispatcher{Handle: got.handle})
	s := openIn(t, opt)
	want := fillBodies(t, s, 0, 1500)
	require.NoError(t, s.AwaitExtension(t.Context(), "mine"))
	require.Equal(t, want, got.take())
	st := status(t, s, "mine")
	require.Equal(t, system.ExtensionStatus{
		Kind: extension.KindDispatcher, Name: "mine", State: extension.Running, Handled: 1500, Position: st.Position, LastTook: st.LastTook,
	}, st)
	_, end := s.LogRange()
	require.Equal(t, end, st.Position)
	require.NoError(t, s.Close(t.Context()))

	s = openIn(t, opt)
	want = fillBodies(t, s, 1500, 1600)
	require.NoError(t, s.AwaitExtension(t.Context(), "mine"))
	require.Equal(t, want, got.take(), "a clean stop repeats nothing")
	require.NoError(t, s.Close(t.Context()))

	opt.Dispatchers = append(opt.Dispatchers, system.Dispatcher{Name: "later", Handle: got.handle},
		system.Dispatcher{Name: "new", Handle: func(context.Context, *system.Batch) error { return errors.New("old news") }, FromEnd: true})
	s = open(t, opt)
	require.NoError(t, s.AwaitExtension(t.Context(), "later"))
	require.Len(t, got.take(), 1600, "one that comes later begins at the log's beginning")
	require.NoError(t, s.AwaitExtension(t.Context(), "new"))
	require.ErrorIs(t, s.AwaitExtension(t.Context(), "nobody"), system.ErrNoExtension)
	require.ErrorIs(t, s.ResumeExtension("nobody"), system.ErrNoExtension)
}

func TestADispatcherMissesNothingWhateverIsCutOff(t *testing.T) {
	for seed := range uint64(12) {
		fixture.Bubble(t, func(t *testing.T) {
			disk, got := memfs.New(), &seen{}
			opt := following(disk, system.Dispatcher{Handle: got.handle, SaveInterval: time.Second})
			s := openIn(t, opt)
			fillBodies(t, s, 0, 200)
			sleep(1500 * time.Millisecond) // a position is saved
			before := len(got.take())
			fillBodies(t, s, 200, 300)
			left := disk.Crash(seed)
			if seed%3 == 0 {
				left = disk.Clone()
			}
			require.NoError(t, s.Close(t.Context()))
			require.Equal(t, 200, before)
			got.take()

			opt.Disk = left
			all := &seen{}
			opt.Dispatchers = append(opt.Dispatchers, system.Dispatcher{Name: "all", Handle: all.handle})
			s = openIn(t, opt)
			last := fillBodies(t, s, 300, 310)
			require.NoError(t, s.AwaitExtension(t.Context(), "mine"))
			require.NoError(t, s.AwaitExtension(t.Context(), "all"))
			inLog := all.take()
			require.Subset(t, inLog, last)
			require.Subset(t, got.take(), inLog[200:], "what is in the log behind the position is dispatched again")
			require.NoError(t, s.Close(t.Context()))
		})
	}
}

// RocketMQ, or a restored copy, has put other messages where the dispatcher had been.
func TestAPositionOfAnotherLogIsIgnored(t *testing.T) {
	disk, got := memfs.New(), &seen{}
	opt := following(disk, system.Dispatcher{Handle: got.handle})
	s := openIn(t, opt)
	fillBodies(t, s, 0, 50)
	require.NoError(t, s.AwaitExtension(t.Context(), "mine"))
	require.NoError(t, s.Close(t.Context()))

	other := memfs.New()
	opt2 := small(other)
	s = openIn(t, opt2)
	want := fillBodies(t, s, 100, 190)
	require.NoError(t, s.Close(t.Context()))
	copyFile(t, disk, other, "store/extensions/mine.json")
	got.take()
	opt.Disk = other
	s = open(t, opt)
	require.NoError(t, s.AwaitExtension(t.Context(), "mine"))
	require.Equal(t, want, got.take())
}

func copyFile(t *testing.T, from, to vfs.Disk, name string) {
	t.Helper()
	f, err := from.Open(name, false)
	require.NoError(t, err)
	st, err := from.Stat(name)
	require.NoError(t, err)
	b := make([]byte, st.Size)
	_, err = f.ReadAt(b, 0)
	require.NoError(t, err)
	require.NoError(t, to.MkdirAll("store/extensions"))
	g, err := to.Create(name)
	require.NoError(t, err)
	_, err = g.WriteAt(b, 0)
	require.NoError(t, err)
	require.NoError(t, errors.Join(f.Close(), g.Close()))
}

func TestADispatcherThatPanicsIsParkedReportedAndResumed(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		got := &seen{}
		var broken atomic.Bool
		broken.Store(true)
		s := openIn(t, following(memfs.New(), system.Dispatcher{Handle: func(ctx context.Context, b *system.Batch) error {
			if broken.Load() {
				panic("on each message")
			}
			return got.handle(ctx, b)
		}}))
		want := fillBodies(t, s, 0, 10)
		sleep(time.Minute)
		st := status(t, s, "mine")
		require.Equal(t, extension.Parked, st.State)
		require.ErrorIs(t, st.LastError, messages.ErrPanicked)
		require.EqualValues(t, 5, st.Failures)
		require.EqualValues(t, 4, st.Restarts)
		require.Zero(t, st.Position)
		require.Positive(t, st.LagBytes)
		want = append(want, fillBodies(t, s, 10, 2000)...) // puts go on
		broken.Store(false)
		require.NoError(t, s.ResumeExtension("mine"))
		require.NoError(t, s.AwaitExtension(t.Context(), "mine"))
		require.Equal(t, want, got.take())
		require.Equal(t, extension.Running, status(t, s, "mine").State)
		require.NoError(t, s.Close(t.Context()))
	})
}

func TestAnErrorOfADispatcherIsBorneForAsLongAsItTakes(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		got, down := &seen{}, time.Now().Add(time.Hour)
		s := openIn(t, following(memfs.New(), system.Dispatcher{Handle: func(ctx context.Context, b *system.Batch) error {
			if time.Now().Before(down) {
				return errors.New("the database is down")
			}
			return got.handle(ctx, b)
		}}))
		want := fillBodies(t, s, 0, 10)
		sleep(30 * time.Minute)
		require.Equal(t, extension.BackingOff, status(t, s, "mine").State)
		sleep(31 * time.Minute)
		require.Equal(t, want, got.take())
		require.NoError(t, s.Close(t.Context()))
	})
}

func TestADispatcherThatBlocksForEverIsReportedAndHoldsUpNobody(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		s := openIn(t, following(memfs.New(), system.Dispatcher{Handle: func(context.Context, *system.Batch) error {
			<-release
			return nil
		}}))
		fillBodies(t, s, 0, 3000)
		require.NoError(t, s.AwaitDispatched(t.Context()))
		sleep(time.Minute)
		st := status(t, s, "mine")
		require.Equal(t, extension.Stalled, st.State)
		require.ErrorIs(t, st.LastError, extension.ErrStalled)
		began := time.Now()
		require.NoError(t, s.Close(t.Context()))
		require.Less(t, time.Since(began), 10*time.Second, "it is left behind")
		close(release)
		sleep(time.Second)
	})
}

func TestAStalledCallThatListensToItsContextIsTriedAgain(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		got := &seen{}
		calls := 0
		s := openIn(t, following(memfs.New(), system.Dispatcher{Handle: func(ctx context.Context, b *system.Batch) error {
			if calls++; calls < 3 {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return got.handle(ctx, b)
		}}))
		_, err := s.Put(t.Context(), message("T", 0, "a"))
		require.NoError(t, err)
		sleep(2 * time.Minute)
		require.Equal(t, []string{"a"}, got.take())
		require.EqualValues(t, 2, status(t, s, "mine").Restarts)
		require.NoError(t, s.Close(t.Context()))
	})
}

// TestCountsKeptWithThePositionAreExact: a dispatcher that keeps its position with its data, in one step, and sees only what is
// durable, counts each message once, whatever a power cut takes.
func TestCountsKeptWithThePositionAreExact(t *testing.T) {
	for seed := range uint64(10) {
		fixture.Bubble(t, func(t *testing.T) {
			var kept struct {
				sync.Mutex
				at    system.Position
				found bool
				count int
			}
			disk := memfs.New()
			opt := following(disk, system.Dispatcher{
				Durable: true,
				Load:    func(*system.Store) (system.Position, bool, error) { return kept.at, kept.found, nil },
				Handle: func(_ context.Context, b *system.Batch) error {
					at, err := b.Position()
					kept.Lock()
					defer kept.Unlock()
					for range b.Messages() {
						kept.count++
					}
					kept.at, kept.found = at, true
					return err
				},
			})
			opt.FlushLeastPages = 1
			s := openIn(t, opt)
			fillBodies(t, s, 0, 100)
			sleep(2 * time.Second)
			fillBodies(t, s, 100, 150)
			left := disk.Crash(seed)
			at, count := kept.at, kept.count
			require.Positive(t, count)
			require.NoError(t, s.Close(t.Context()))

			kept.at, kept.count = at, count
			opt.Disk = left
			all := &seen{}
			opt.Dispatchers = append(opt.Dispatchers, system.Dispatcher{Name: "all", Handle: all.handle})
			s = openIn(t, opt)
			fillBodies(t, s, 150, 160)
			sleep(20 * time.Second)
			require.Len(t, all.take(), kept.count)
			require.NoError(t, s.Close(t.Context()))
		})
	}
}

func TestTwoStoresInOneProcessDoNotKnowEachOther(t *testing.T) {
	disk, first, second := memfs.New(), &seen{}, &seen{}
	opt := following(disk, system.Dispatcher{Handle: first.handle})
	a := open(t, opt)
	_, err := system.Open(opt)
	require.ErrorIs(t, err, vfs.ErrLocked, "not the same folder twice")
	opt = following(disk, system.Dispatcher{Handle: second.handle})
	opt.Dir = "other"
	b := open(t, opt)
	_, err = a.Put(t.Context(), message("T", 0, "of a"))
	require.NoError(t, err)
	_, err = b.Put(t.Context(), message("T", 0, "of b"))
	require.NoError(t, err)
	require.NoError(t, a.AwaitExtension(t.Context(), "mine"))
	require.NoError(t, b.AwaitExtension(t.Context(), "mine"))
	require.Equal(t, []string{"of a"}, first.take())
	require.Equal(t, []string{"of b"}, second.take())
	require.Equal(t, []string{"of a"}, readable(t, a, messages.QueueKey{Topic: "T"}))
}

func TestExtensionsAreChecked(t *testing.T) {
	opt := small(memfs.New())
	nothing := func(*messages.Message) error { return nil }
	opt.PutHooks = []system.PutHook{{Name: "a/b", Func: nothing}, {Name: "same", Func: nothing}}
	opt.Dispatchers = []system.Dispatcher{{Name: "same"}}
	_, err := system.Open(opt)
	require.ErrorIs(t, err, system.ErrOptions)
	for _, part := range []string{`"a/b"`, `two extensions are named "same"`, `the dispatcher "same" needs exactly one`} {
		require.ErrorContains(t, err, part)
	}
}

// TestADamagedMessageHoldsNoDispatcherUp: its body is damaged on the disk before the dispatcher comes to it.
func TestADamagedMessageHoldsNoDispatcherUp(t *testing.T) {
	disk, got, wait := memfs.New(), &seen{}, make(chan struct{})
	s := openIn(t, following(disk, system.Dispatcher{Handle: func(ctx context.Context, b *system.Batch) error {
		<-wait
		return got.handle(ctx, b)
	}}))
	want := fillBodies(t, s, 0, 1)
	bad, err := s.Put(t.Context(), message("T", 0, "to be damaged"))
	require.NoError(t, err)
	want = append(want, fillBodies(t, s, 1, 3)...)
	f, err := disk.Open("store/commitlog/00000000000000000000", true)
	require.NoError(t, err)
	const body = 88 // of a record, behind what has a fixed length
	_, err = f.WriteAt([]byte{0xff}, int64(bad.PhysicalOffset)+body)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	close(wait)
	require.NoError(t, s.AwaitExtension(t.Context(), "mine"))
	require.Equal(t, want, got.take())
	require.EqualValues(t, bad.Bytes, status(t, s, "mine").Skipped)
	require.NoError(t, s.Close(t.Context()))
}
