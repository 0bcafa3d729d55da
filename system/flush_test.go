package system_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/checkpoint"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

var errDisk = errors.New("the disk says no")

// timed runs a test with a clock of its own and a store in it, which is closed at the end.
func timed(t *testing.T, change func(*system.Options), test func(*testing.T, *system.Store, *syncs)) {
	fixture.Bubble(t, func(t *testing.T) {
		w := &syncs{began: time.Now()}
		disk := memfs.New()
		opt := small(disk)
		opt.SegmentBytes = 1 << 20
		change(&opt)
		s, err := system.Open(opt)
		require.NoError(t, err)
		synctest.Wait() // the first segment is there
		disk.Inject(w.look)
		test(t, s, w)
		disk.Inject(nil)
		require.NoError(t, s.Close(t.Context()))
		pass(time.Second) // lets the timers of the actor library end
	})
}

// pass lets time go by, in the test's own clock.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// syncs notes when files of a folder were synced.
type syncs struct {
	mu    sync.Mutex
	began time.Time
	seen  map[string][]time.Duration // by the first folder below the root
}

func (w *syncs) look(op memfs.Op) error {
	if op.Kind == memfs.KindDataSync {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.seen == nil {
			w.seen = map[string][]time.Duration{}
		}
		dir := strings.Split(op.Name, "/")[1]
		if firstSegment(op.Name) {
			dir = "commitlog"
		}
		w.seen[dir] = append(w.seen[dir], time.Since(w.began).Round(time.Millisecond))
	}
	return nil
}

// firstSegment tells whether a file is the log's first one, which keeps the name under which it was made.
func firstSegment(name string) bool {
	return strings.HasSuffix(name, "/"+segments.Name(0)) && !strings.Contains(name, "queue")
}

// take returns what was synced of a folder since the last call.
func (w *syncs) take(dir string) []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.seen[dir]
	delete(w.seen, dir)
	return list
}

// page is a message that fills so many pages.
func page(n int) *messages.Message { return message("T", 0, strings.Repeat("x", n*4096)) }

func put(t *testing.T, s *system.Store, m *messages.Message) {
	t.Helper()
	r, err := s.Put(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, messages.PutOK, r.Status)
}

func TestAsynchronousFlushKeepsItsIntervalAndItsPages(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*system.Options)
		pages  int
		want   []time.Duration
	}{
		"flushIntervalCommitLog":         {func(o *system.Options) { o.FlushInterval = 300 * time.Millisecond }, 5, []time.Duration{300 * time.Millisecond}},
		"too few pages wait":             {func(*system.Options) {}, 2, []time.Duration{10 * time.Second}},
		"flushCommitLogLeastPages":       {func(o *system.Options) { o.FlushLeastPages = 2 }, 2, []time.Duration{500 * time.Millisecond}},
		"flushCommitLogLeastPages=0":     {func(o *system.Options) { o.FlushLeastPages = -1 }, 0, []time.Duration{500 * time.Millisecond}},
		"flushCommitLogThoroughInterval": {func(o *system.Options) { o.FlushThorough = 2 * time.Second }, 0, []time.Duration{2 * time.Second}},
		"flushCommitLogTimed=false":      {func(o *system.Options) { o.FlushAtOnce = true }, 5, []time.Duration{0}},
		"flushCommitLogTimed=false, too few pages": {func(o *system.Options) { o.FlushAtOnce = true }, 1,
			[]time.Duration{10 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			timed(t, c.change, func(t *testing.T, s *system.Store, w *syncs) {
				put(t, s, page(c.pages))
				pass(11 * time.Second)
				require.Equal(t, c.want, w.take("commitlog"))
				_, end := s.LogRange()
				require.Equal(t, end, s.FlushedTo())
				pass(time.Minute)
				require.Empty(t, w.take("commitlog"), "nothing to flush, no flush (W13)")
			})
		})
	}
}

func TestAPutThatDoesNotWaitIsFlushedAtOnceUnderSyncFlush(t *testing.T) {
	timed(t, func(o *system.Options) { o.FlushDiskType = system.SyncFlush }, func(t *testing.T, s *system.Store, w *syncs) {
		m := message("T", 0, "x")
		m.Properties = messages.PropertiesOf(map[string]string{messages.PropertyWait: "false"})
		put(t, s, m)
		synctest.Wait()
		require.Equal(t, []time.Duration{0}, w.take("commitlog"))
		_, end := s.LogRange()
		require.Equal(t, end, s.FlushedTo())
	})
}

func TestSyncFlushTimeoutBoundsTheWaitForTheDisk(t *testing.T) { // L17
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		opt.FlushDiskType, opt.SyncFlushTimeout = system.SyncFlush, 2500*time.Millisecond
		s, err := system.Open(opt)
		require.NoError(t, err)
		synctest.Wait()
		stall := make(chan struct{})
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindDataSync && firstSegment(op.Name) {
				<-stall
			}
			return nil
		})
		began := time.Now()
		r, err := s.Put(t.Context(), message("T", 0, "slow"))
		require.NoError(t, err)
		require.Equal(t, messages.FlushDiskTimeout, r.Status)
		require.Equal(t, 2500*time.Millisecond, time.Since(began), "before a client's 3 s")
		close(stall)
		require.NoError(t, s.Close(t.Context()))
		pass(time.Second)
	})
}

func TestConsumeQueuesKeepTheirFlushIntervalsAndPages(t *testing.T) {
	const unitsAPage = 4096/20 + 1
	for name, c := range map[string]struct {
		change func(*system.Options)
		units  int
		want   time.Duration
	}{
		"flushIntervalConsumeQueue":         {func(o *system.Options) { o.QueueFlushInterval = 3 * time.Second }, 3 * unitsAPage, 3 * time.Second},
		"flushConsumeQueueLeastPages":       {func(o *system.Options) { o.QueueFlushLeastPages = 1 }, unitsAPage, time.Second},
		"flushConsumeQueueLeastPages=0":     {func(o *system.Options) { o.QueueFlushLeastPages = -1 }, 1, time.Second},
		"flushConsumeQueueThoroughInterval": {func(o *system.Options) { o.QueueFlushThorough = 20 * time.Second }, 1, 20 * time.Second},
		"the defaults":                      {func(*system.Options) {}, unitsAPage, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			change := func(o *system.Options) { o.ConsumeQueueFileBytes = 1 << 20; c.change(o) }
			timed(t, change, func(t *testing.T, s *system.Store, w *syncs) {
				for range c.units {
					put(t, s, message("T", 0, "x"))
				}
				pass(2 * time.Minute)
				synced := w.take("consumequeue")
				require.Len(t, synced, 1)
				require.InDelta(t, c.want, synced[0], float64(time.Second), "a tick is the unit of it")
			})
		})
	}
}

// TestTheCheckpointNeverRunsAheadOfASync cuts the power at every change of the disk: whatever the checkpoint on it says is
// flushed is there (W18).
func TestTheCheckpointNeverRunsAheadOfASync(t *testing.T) {
	for _, mode := range []system.FlushDiskType{system.AsyncFlush, system.SyncFlush} {
		fixture.Bubble(t, func(t *testing.T) {
			disk := memfs.New()
			opt := small(disk)
			opt.FlushDiskType, opt.QueueFlushThorough, opt.FlushThorough = mode, 3*time.Second, time.Second
			s, err := system.Open(opt)
			require.NoError(t, err)
			var stored sync.Map // end of each record by its store timestamp
			var seed uint64
			var mu sync.Mutex
			checked := 0
			disk.Inject(func(op memfs.Op) error {
				if !op.Kind.Changes() {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				seed++
				checked += vouched(t, disk.Crash(seed), opt, &stored)
				return nil
			})
			for range 40 {
				r, err := s.Put(t.Context(), message("T", 0, strings.Repeat("x", 500)))
				require.NoError(t, err)
				stored.Store(r.StoreTimestampMs, r)
				pass(170 * time.Millisecond)
			}
			disk.Inject(nil)
			require.NoError(t, s.Close(t.Context()))
			require.Greater(t, checked, 100, "the checkpoint has vouched for records")
			pass(time.Second)
		})
	}
}

// vouched looks for every record that the checkpoint of a disk vouches for, and returns their number.
func vouched(t *testing.T, disk *memfs.Disk, opt system.Options, stored *sync.Map) (n int) {
	v, err := checkpoint.Load(disk, "store/checkpoint")
	require.NoError(t, err)
	log, _, err := commitlog.Open(disk, "store/commitlog", opt.SegmentBytes)
	require.NoError(t, err)
	stored.Range(func(key, value any) bool {
		if key.(int64) > v.PhysicMs {
			return true
		}
		r := value.(messages.PutResult)
		slice, err := log.Read(r.PhysicalOffset, int(r.Bytes))
		require.NoError(t, err)
		_, _, err = record.Parse(slice.Bytes, true)
		require.NoError(t, err, "the checkpoint says %d, the record at %d is of %d", v.PhysicMs, r.PhysicalOffset, key)
		slice.Release()
		n++
		return true
	})
	require.NoError(t, log.Close())
	return n
}

// A put that waits is made durable without what lies elsewhere in its segment, and the zeros ahead of it are on their way to the disk
// before: in a segment that was made, and in one that was opened again.
func TestASyncCoversWhatWasPutAndZerosGoAhead(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		opt.SegmentBytes, opt.WindowBytes, opt.FlushDiskType = 4<<20, 1<<20, system.SyncFlush
		for range 2 {
			s, err := system.Open(opt)
			require.NoError(t, err)
			synctest.Wait()
			zeros, synced := int64(0), int64(0)
			disk.Inject(func(op memfs.Op) error {
				switch {
				case !firstSegment(op.Name):
				case op.Kind == memfs.KindWriteback:
					zeros = max(zeros, op.Off+op.N)
				case op.Kind == memfs.KindDataSync:
					require.True(t, synced == 0 || synced == op.Off, "from %d, synced up to %d", op.Off, synced)
					synced = op.Off + op.N
				}
				return nil
			})
			for range 90 {
				r, err := s.Put(t.Context(), page(2))
				require.NoError(t, err)
				require.EqualValues(t, r.End(), synced)
			}
			synctest.Wait()
			require.Greater(t, zeros, synced)
			disk.Inject(nil)
			require.NoError(t, s.Close(t.Context()))
			pass(time.Second)
		}
	})
}
