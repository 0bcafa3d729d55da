package indexer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/index"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

const (
	dir     = "store/index"
	startMs = 1_700_000_000_000
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a running index builder and its dispatcher's side.
type rig struct {
	t      *testing.T
	disk   *memfs.Disk
	set    *index.Set
	params index.Params
	peer   actors.Peer
	box    *mailbox.Combining
	stop   func()

	told   chan messages.IndexFlushed
	broken chan error
	back   chan *messages.Delivery
	sent   int // records

	mu  sync.Mutex
	log []messages.DispatchRequest
}

// reread is the log's side: three records at a time.
func (r *rig) reread(from, to messages.PhysicalOffset) (*messages.DispatchBatch, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := &messages.DispatchBatch{UpTo: from}
	for i := from / 100; b.UpTo < to && len(b.Requests) < 3; i++ {
		b.Requests = append(b.Requests, r.log[i])
		b.UpTo = r.log[i].End()
	}
	return b, nil
}

func newRig(t *testing.T, p index.Params, disk *memfs.Disk) *rig {
	t.Helper()
	system := actor.NewActorSystem(fixture.Quiet, actor.WithDeadLetterThrottleInterval(time.Millisecond))
	t.Cleanup(system.Shutdown)
	r := &rig{
		t: t, disk: disk, params: p, box: mailbox.New(mailbox.Options{}), told: make(chan messages.IndexFlushed, 100),
		broken: make(chan error, 10), back: make(chan *messages.Delivery, 100),
	}
	var err error
	r.set, err = index.Open(disk, dir, p)
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.set.Close() })
	flusher := actor.PropsFromFunc(func(ctx actor.Context) {
		if m, ok := ctx.Message().(messages.IndexFlushed); ok {
			r.told <- m
		}
	})
	flusherPID := system.Root.Spawn(flusher)
	t.Cleanup(func() { _ = system.Root.StopFuture(flusherPID).Wait() })
	a := New(Config{
		Index: r.set, Flusher: actors.NewPeer(system.Root, flusherPID), OnBroken: func(err error) { r.broken <- err },
		Reread: r.reread,
	})
	props := actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithMailbox(r.box.Producer()))
	pid, err := system.Root.SpawnNamed(props, "indexer")
	require.NoError(t, err)
	r.peer = actors.NewPeer(system.Root, pid)
	r.stop = sync.OnceFunc(func() { _ = system.Root.StopFuture(pid).Wait() })
	t.Cleanup(r.stop)
	return r
}

// batch makes n requests: record i has the keys a<i>, b<i> and the unique key u<i>.
func (r *rig) batch(n int) *messages.DispatchBatch {
	b := &messages.DispatchBatch{}
	for range n {
		i := r.sent
		r.sent++
		b.Requests = append(b.Requests, messages.DispatchRequest{
			Queue: messages.QueueKey{Topic: "T"}, PhysicalOffset: messages.PhysicalOffset(i * 100), SizeBytes: 100,
			StoreTimestampMs: startMs + int64(i), Keys: fmt.Appendf(nil, "a%d  b%d", i, i), UniqKey: fmt.Appendf(nil, "u%d", i),
		})
		b.UpTo = b.Requests[len(b.Requests)-1].End()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, b.Requests...)
	return b
}

func (r *rig) deliver(b *messages.DispatchBatch) {
	d := messages.NewDelivery(0, func(d *messages.Delivery) { r.back <- d })
	d.Load(b)
	r.box.PostUserMessage(d)
}

// built waits for the answer to one delivery.
func (r *rig) built() error {
	r.t.Helper()
	return receive(r.t, r.back).Err
}

func receive[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(20 * time.Second):
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}

func (r *rig) flush() (int64, error) {
	r.t.Helper()
	answer := messages.NewAnswer[int64]()
	r.box.PostUserMessage(messages.FlushIndex{Answer: answer})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	ms, err := answer.Wait(ctx)
	require.NotErrorIs(r.t, err, context.DeadlineExceeded, "no answer")
	return ms, err
}

// verify looks up every key of the first n records.
func (r *rig) verify(set *index.Set, n int) {
	r.t.Helper()
	for i := range n {
		for _, key := range []string{"a%d", "b%d", "u%d"} {
			found, err := set.Query("T", fmt.Sprintf(key, i), 64, 0, 1<<60)
			require.NoError(r.t, err)
			require.Contains(r.t, found, messages.PhysicalOffset(i*100), key, i)
		}
	}
}

func TestKeysAreFound(t *testing.T) {
	r := newRig(t, index.Params{Slots: 50, Entries: 100}, memfs.New()) // several files
	for range 10 {
		r.deliver(r.batch(50))
	}
	rolledBack := r.batch(1)
	rolledBack.Requests[0].SysFlag = messages.SysFlagTransactionRollback
	r.deliver(rolledBack)
	for range 11 {
		require.NoError(t, r.built())
	}
	r.verify(r.set, 500)
	found, err := r.set.Query("T", "u500", 64, 0, 1<<60)
	require.NoError(t, err)
	require.NotContains(t, found, messages.PhysicalOffset(500*100))
	require.Greater(t, r.set.Len(), 10)

	ms, err := r.flush()
	require.NoError(t, err)
	require.Equal(t, int64(startMs+500), ms)
	require.Equal(t, int64(startMs+499), receive(t, r.told).StoreTimestampMs, "of the last record with an entry")
	after, err := index.Open(r.disk.Crash(3), dir, r.params)
	require.NoError(t, err)
	r.verify(after, 500)
	require.NoError(t, after.Close())
	_, err = r.flush()
	require.NoError(t, err)
	require.Empty(t, r.told, "nothing new")
}

func TestFlushOnTime(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		t.Cleanup(func() { <-time.After(time.Second) })
		r := newRig(t, index.Params{Slots: 50, Entries: 1000}, memfs.New())
		r.deliver(r.batch(5))
		<-time.After(59 * time.Second)
		synctest.Wait()
		require.Empty(t, r.told)
		<-time.After(2 * time.Second)
		require.Equal(t, int64(startMs+4), (<-r.told).StoreTimestampMs)
		<-time.After(5 * time.Minute)
		synctest.Wait()
		require.Empty(t, r.told)
	})
}

// When the store is stopped, what there is no room for is left: nobody waits, and what was built before stays.
func TestAFullDiskHoldsUpNoStop(t *testing.T) {
	for _, waiting := range []bool{true, false} {
		fixture.Bubble(t, func(t *testing.T) {
			r := newRig(t, index.Params{Slots: 50, Entries: 31}, memfs.New()) // 10 records a file
			r.deliver(r.batch(5))
			require.NoError(t, r.built())
			r.disk.Inject(func(op memfs.Op) error {
				if op.Kind == memfs.KindAllocate {
					return vfs.ErrNoSpace
				}
				return nil
			})
			if waiting {
				r.deliver(r.batch(10))
				<-time.After(time.Second)
				synctest.Wait()
				require.Empty(t, r.back)
			}
			r.box.PostUserMessage(messages.LeaveIndex{})
			if !waiting {
				r.deliver(r.batch(10))
			}
			require.NoError(t, r.built())
			r.verify(r.set, 10)
			_, err := r.flush()
			require.ErrorIs(t, err, vfs.ErrNoSpace, "it lacks records")
		})
	}
}

// noRoom makes a disk refuse room for new files while it is true.
func noRoom(disk *memfs.Disk) *atomic.Bool {
	var full atomic.Bool
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindAllocate && full.Load() {
			return vfs.ErrNoSpace
		}
		return nil
	})
	return &full
}

// Weakness W16: a file that can't be made holds batches back and is tried again, from where it stopped.
func TestAFullDiskIsWaitedFor(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		t.Cleanup(func() { <-time.After(time.Second) })
		r := newRig(t, index.Params{Slots: 50, Entries: 31}, memfs.New()) // 10 records a file
		full := noRoom(r.disk)
		r.deliver(r.batch(5))
		require.NoError(t, r.built())
		full.Store(true)
		r.deliver(r.batch(10))
		r.deliver(r.batch(10))
		<-time.After(2 * time.Second)
		synctest.Wait()
		require.Empty(t, r.back)
		r.verify(r.set, 10)
		ms, err := r.flush()
		require.NoError(t, err)
		require.Equal(t, int64(startMs+4), ms, "the batch is not complete")
		full.Store(false)
		<-time.After(patience)
		require.NoError(t, r.built())
		require.NoError(t, r.built())
		r.verify(r.set, 25)
		require.Empty(t, r.broken)
	})
}

// Weakness W16: who waits behind the index waits for a few seconds. Then dispatching goes on without it, and once there is room the
// index gets from the log what it lacks, and what comes meanwhile.
func TestAnIndexWithoutRoomIsBrokenOffAndTakenUpAgain(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		t.Cleanup(func() { <-time.After(time.Second) })
		r := newRig(t, index.Params{Slots: 50, Entries: 31}, memfs.New()) // 10 records a file
		full := noRoom(r.disk)
		r.deliver(r.batch(5))
		require.NoError(t, r.built())
		full.Store(true)
		began := time.Now()
		r.deliver(r.batch(10))
		r.deliver(r.batch(10))
		require.NoError(t, r.built())
		require.NoError(t, r.built())
		require.LessOrEqual(t, time.Since(began), patience+maxPause)
		require.ErrorIs(t, receive(t, r.broken), vfs.ErrNoSpace)
		for range 20 {
			r.deliver(r.batch(10))
			require.NoError(t, r.built(), "at once")
			<-time.After(time.Second)
		}
		_, err := r.flush()
		require.ErrorIs(t, err, vfs.ErrNoSpace, "it lacks records")
		require.Empty(t, r.broken)
		full.Store(false)
		require.NoError(t, receive(t, r.broken), "it is complete again")
		r.verify(r.set, r.sent)
		r.deliver(r.batch(10))
		require.NoError(t, r.built())
		r.verify(r.set, r.sent)
		_, err = r.flush()
		require.NoError(t, err)
		after, err := index.Open(r.disk.Crash(3), dir, r.params)
		require.NoError(t, err)
		r.verify(after, r.sent)
		require.NoError(t, after.Close())
	})
}

// A disk that runs full again while the index is taken up holds nobody up either, and what fails for good then ends it.
func TestAnIndexThatIsTakenUpMayFailAgain(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		t.Cleanup(func() { <-time.After(time.Second) })
		r := newRig(t, index.Params{Slots: 50, Entries: 31}, memfs.New())
		full := noRoom(r.disk)
		full.Store(true)
		r.deliver(r.batch(50))
		require.NoError(t, r.built())
		require.Error(t, receive(t, r.broken))
		left := 2
		r.disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindAllocate {
				if left--; left < 0 {
					return vfs.ErrNoSpace
				}
			}
			return nil
		})
		<-time.After(time.Minute)
		r.deliver(r.batch(10))
		require.NoError(t, r.built())
		r.verify(r.set, 20)
		gone := errors.New("the disk is gone")
		r.disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindDataSync {
				return gone
			}
			return nil
		})
		require.ErrorIs(t, receive(t, r.broken), gone)
		r.disk.Inject(nil)
		r.deliver(r.batch(10))
		require.NoError(t, r.built())
		_, err := r.flush()
		require.ErrorIs(t, err, gone)
	})
}

func TestAFailedSyncEndsTheIndexButHoldsNobodyUp(t *testing.T) {
	r := newRig(t, index.Params{Slots: 50, Entries: 1000}, memfs.New())
	r.deliver(r.batch(5))
	require.NoError(t, r.built())
	gone := errors.New("the disk is gone")
	r.disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindDataSync {
			return gone
		}
		return nil
	})
	_, err := r.flush()
	require.ErrorIs(t, err, gone)
	require.ErrorIs(t, receive(t, r.broken), gone)
	r.disk.Inject(nil)
	r.deliver(r.batch(5))
	require.NoError(t, r.built(), "who waits for the dispatcher does not wait for the index")
	_, err = r.flush()
	require.ErrorIs(t, err, gone)
	r.verify(r.set, 5)
	require.Empty(t, r.told)
	require.Empty(t, r.broken, "it is told once")
}

func TestAPanicEndsTheIndexButHoldsNobodyUp(t *testing.T) {
	files := 0
	r := newRig(t, index.Params{Slots: 50, Entries: 31, Now: func() time.Time {
		if files++; files == 2 {
			panic("a bug in the clock")
		}
		return time.Now()
	}}, memfs.New())
	for range 3 {
		r.deliver(r.batch(10))
		require.NoError(t, r.built())
	}
	require.ErrorContains(t, receive(t, r.broken), "a bug in the clock")
	r.verify(r.set, 10)
	_, err := r.flush()
	require.ErrorIs(t, err, messages.ErrPanicked)
}

func TestStopAnswersEverything(t *testing.T) {
	r := newRig(t, index.Params{Slots: 50, Entries: 31}, memfs.New())
	r.disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindAllocate {
			return vfs.ErrNoSpace
		}
		return nil
	})
	for range 3 {
		r.deliver(r.batch(10))
	}
	_, err := r.flush() // the batches have been looked at
	require.NoError(t, err)
	require.Empty(t, r.back)
	r.stop()
	r.deliver(r.batch(10))
	for range 4 {
		require.ErrorIs(t, r.built(), messages.ErrClosed)
	}
	_, err = r.flush()
	require.ErrorIs(t, err, messages.ErrClosed)
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	r := newRig(t, index.Params{Slots: 100_000, Entries: 1_000_000}, memfs.New())
	d := messages.NewDelivery(0, func(d *messages.Delivery) { r.back <- d })
	next := func() {
		r.box.PostUserMessage(d)
		<-r.back
	}
	b := r.batch(512)
	d.Load(b)
	next()
	at := messages.PhysicalOffset(r.sent * 100)
	require.Less(t, testing.AllocsPerRun(200, func() {
		for i := range b.Requests {
			b.Requests[i].PhysicalOffset = at
			at += 100
		}
		d.Load(b)
		next()
	}), 5.0, "per batch of 512")
}

func BenchmarkIndex(b *testing.B) {
	set, err := index.Open(memfs.New(), dir, index.Params{Slots: 5_000_000, Entries: 20_000_000})
	require.NoError(b, err)
	b.Cleanup(func() { _ = set.Close() })
	a := New(Config{Index: set, Interval: time.Hour})
	batch := &messages.DispatchBatch{}
	for i := range 512 {
		batch.Requests = append(batch.Requests, messages.DispatchRequest{
			Queue: messages.QueueKey{Topic: "BenchTopic"}, Keys: fmt.Appendf(nil, "key-%d", i), UniqKey: fmt.Appendf(nil, "unique-%d", i),
		})
	}
	at := messages.PhysicalOffset(0)
	b.ReportAllocs()
	for b.Loop() {
		for i := range batch.Requests {
			batch.Requests[i].PhysicalOffset = at
			at += 100
		}
		a.done = 0
		if err := a.buildBatch(batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*512)/b.Elapsed().Seconds(), "msg/s")
}
