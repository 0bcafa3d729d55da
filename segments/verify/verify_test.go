package verify_test

import (
	"errors"
	"path"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/checkpoint"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/verify"
	"github.com/actormq/actormq/segments/vfs"
)

// TestAMiddleIndexFileIsMissed: recovery does not see that one is missing between others; verify does, and names the first record.
func TestAMiddleIndexFileIsMissed(t *testing.T) {
	p := goldenStore(t, "min-offset")
	disk := vfs.New()
	files, err := disk.List(p.IndexDir())
	require.NoError(t, err)
	require.Greater(t, len(files), 1)
	require.NoError(t, disk.Remove(path.Join(p.IndexDir(), files[0].Name)))
	r, err := verify.Run(disk, p, nil)
	require.NoError(t, err)
	require.Len(t, r.Findings, 1)
	require.Contains(t, r.Findings[0].What, "records lack an entry")

	s, err := store.Open(disk, p, store.Options{FullScan: true, RebuildIndex: true})
	require.NoError(t, err)
	require.NoError(t, s.CloseClean())
	r, err = verify.Run(disk, p, nil)
	require.NoError(t, err)
	require.True(t, r.Whole, "%v", r.Findings)
}

// TestRecordsOfDeletedTopicsNeedNoUnits: nothing is missing when a topic was deleted and its records are still in the log.
func TestRecordsOfDeletedTopicsNeedNoUnits(t *testing.T) {
	p := goldenStore(t, "restart")
	s, err := store.Open(vfs.New(), p, store.Options{})
	require.NoError(t, err)
	for key, at := range s.QueueOffsets {
		if key.Topic == "AgainB" {
			require.Positive(t, at)
			require.NoError(t, s.Queues.Lookup(key).Destroy())
		}
	}
	require.NoError(t, s.TopicDeleted("AgainB", s.Log.End()))
	require.NoError(t, s.CloseClean())
	r, err := verify.Run(vfs.New(), p, nil)
	require.NoError(t, err)
	require.True(t, r.Whole, "%v", r.Findings)
}

// TestARepairedStoreIsWhole: a damaged record whose queue is gone too is replaced by a unit that names no record, between two
// that do. That is all that can be done, so nothing is left to find.
func TestARepairedStoreIsWhole(t *testing.T) {
	p := goldenStore(t, "restart")
	s, err := store.Open(vfs.New(), p, store.Options{})
	require.NoError(t, err)
	var lost consumequeue.Unit
	s.Queues.Each(func(_ messages.QueueKey, q *consumequeue.Queue) {
		if q.Max()-q.Min() < 3 || lost.Size > 0 {
			return
		}
		unit := make([]consumequeue.Unit, 1)
		_, err := q.Read(q.Min()+1, unit)
		require.NoError(t, err)
		lost = unit[0]
		require.NoError(t, q.Destroy())
	})
	require.Positive(t, lost.Size)
	require.NoError(t, s.Close())
	log, err := vfs.New().Open(path.Join(s.Params.CommitLogDir, segments.Name(0)), true)
	require.NoError(t, err)
	_, err = log.WriteAt(make([]byte, lost.Size), int64(lost.PhysicalOffset))
	require.NoError(t, err)
	require.NoError(t, log.Close())

	s, err = store.Open(vfs.New(), p, store.Options{FullScan: true, RebuildIndex: true})
	require.NoError(t, err)
	require.NoError(t, s.CloseClean())
	r, err := verify.Run(vfs.New(), p, nil)
	require.NoError(t, err)
	require.True(t, r.Whole, "%v", r.Findings)
}

// TestWhatTheNextStartCompletesIsNoDamage: units and keys had not been written when the process was killed. After a clean stop they have gone since,
// and what no start touches stays as it is.
func TestWhatTheNextStartCompletesIsNoDamage(t *testing.T) {
	for _, c := range []struct {
		killed, foreign bool
		damage          int
	}{{false, false, 2}, {true, false, 0}, {true, true, 1}} {
		p := goldenStore(t, "file-roll")
		s, err := store.Open(vfs.New(), p, store.Options{})
		require.NoError(t, err)
		var last messages.QueueKey
		s.Queues.Each(func(key messages.QueueKey, q *consumequeue.Queue) {
			if was := s.Queues.Lookup(last); was == nil || q.PhysicalEnd() > was.PhysicalEnd() {
				last = key
			}
		})
		end := s.Queues.Lookup(last).Max()
		require.NoError(t, s.CloseClean())
		dir := path.Join("consumequeue", last.Topic, strconv.Itoa(int(last.QueueID)))
		at := int64(end-1) * consumequeue.UnitBytes
		f, err := vfs.New().Open(path.Join(p.Dir, dir, segments.Name(at-at%p.ConsumeQueueFileBytes)), true)
		require.NoError(t, err)
		_, err = f.WriteAt(make([]byte, consumequeue.UnitBytes), at%p.ConsumeQueueFileBytes)
		require.NoError(t, errors.Join(err, f.Close()))
		files, err := vfs.New().List(p.IndexDir())
		require.NoError(t, err)
		require.NoError(t, vfs.New().Remove(path.Join(p.IndexDir(), files[len(files)-1].Name)))
		if c.killed {
			require.NoError(t, checkpoint.SetAbort(vfs.New(), p.AbortPath()))
		}
		if c.foreign {
			f, err := vfs.New().Create(path.Join(p.ConsumeQueueDir(), last.Topic, "x"))
			require.NoError(t, errors.Join(err, f.Close()))
		}
		r, err := verify.Run(vfs.New(), p, nil)
		require.NoError(t, err)
		require.Len(t, r.Findings, c.damage, "%v", r)
		require.Equal(t, c.damage == 0, r.Whole)
		require.Equal(t, c.killed, len(r.NextStart) > 0, "%v", r)
		for _, f := range r.NextStart {
			require.True(t, f.Part == verify.PartIndex || f.Part == verify.PartQueues)
		}
	}
}

// TestAFileThatWasBeingMadeForAQueueIsNoDamage: the process was killed, and the next start removes it, of a queue that is there and of a new one.
func TestAFileThatWasBeingMadeForAQueueIsNoDamage(t *testing.T) {
	p := goldenStore(t, "file-roll")
	topics, err := vfs.New().List(p.ConsumeQueueDir())
	require.NoError(t, err)
	for _, name := range []string{"0.new", "77.new"} {
		f, err := vfs.New().Create(path.Join(p.ConsumeQueueDir(), topics[0].Name, name))
		require.NoError(t, errors.Join(err, f.Close()))
	}
	require.NoError(t, checkpoint.SetAbort(vfs.New(), p.AbortPath()))
	r, err := verify.Run(vfs.New(), p, nil)
	require.NoError(t, err)
	require.True(t, r.Whole, "%v", r)
	require.Len(t, r.NextStart, 2, "%v", r)
}

// TestAStoreWithoutACheckpointIsWholeUntilItWasClosed: in its first seconds a store has none, and a start after a crash needs none; a clean stop
// leaves one.
func TestAStoreWithoutACheckpointIsWholeUntilItWasClosed(t *testing.T) {
	for _, killed := range []bool{true, false} {
		p := goldenStore(t, "file-roll")
		require.NoError(t, vfs.New().Remove(p.WithDefaults().CheckpointPath()))
		if killed {
			require.NoError(t, checkpoint.SetAbort(vfs.New(), p.AbortPath()))
		}
		r, err := verify.Run(vfs.New(), p, nil)
		require.NoError(t, err)
		require.Equal(t, killed, r.Whole, "%v", r)
		told := append(r.Findings, r.NextStart...)
		require.Len(t, told, 1, "%v", r)
		require.Equal(t, verify.PartCheckpoint, told[0].Part)
	}
	p := goldenStore(t, "missing-one-queue-crash") // units are not written yet either
	require.NoError(t, vfs.New().Remove(p.WithDefaults().CheckpointPath()))
	r, err := verify.Run(vfs.New(), p, nil)
	require.NoError(t, err)
	require.True(t, r.Whole, "%v", r)
	require.Len(t, r.NextStart, 2)
}

// TestAQueueOfWhichTheLogHasNothingIsDamaged: the next start can only guess where it goes on, if anything is left of it at all.
func TestAQueueOfWhichTheLogHasNothingIsDamaged(t *testing.T) {
	for _, left := range []int64{3 * consumequeue.UnitBytes, 0} {
		p := goldenStore(t, "file-roll")
		s, err := store.Open(vfs.New(), p, store.Options{})
		require.NoError(t, err)
		var idle messages.QueueKey
		last := s.Log.View().Last().Start()
		for key := range s.QueueOffsets {
			if q := s.Queues.Lookup(key); q.PhysicalEnd() > 0 && int64(q.PhysicalEnd()) <= last && q.Max() > 6 {
				idle = key
			}
		}
		require.NotEmpty(t, idle.Topic)
		require.NoError(t, s.Close())
		files, err := vfs.New().List(p.WithDefaults().CommitLogDir)
		require.NoError(t, err)
		for _, f := range files {
			if start, err := segments.ParseName(f.Name); err == nil && start < last {
				require.NoError(t, vfs.New().Remove(path.Join(p.WithDefaults().CommitLogDir, f.Name)))
			}
		}
		dir := path.Join("consumequeue", idle.Topic, strconv.Itoa(int(idle.QueueID)))
		units, err := vfs.New().List(path.Join(p.Dir, dir))
		require.NoError(t, err)
		f, err := vfs.New().Open(path.Join(p.Dir, dir, units[len(units)-1].Name), true)
		require.NoError(t, err)
		require.NoError(t, errors.Join(f.Truncate(left), f.Close()))
		for _, u := range units[:len(units)-1] {
			if left == 0 {
				require.NoError(t, vfs.New().Remove(path.Join(p.Dir, dir, u.Name)))
			}
		}
		r, err := verify.Run(vfs.New(), p, nil)
		require.NoError(t, err)
		require.False(t, r.Whole, "%d: %v", left, r)
		require.NotEmpty(t, r.Findings)
		require.Contains(t, r.Findings[0].File, dir)
	}
}

// TestALostIndexIsNotBuiltInMemory: that the next start builds it again from the log is known without doing it, in 420 MB a file.
func TestALostIndexIsNotBuiltInMemory(t *testing.T) {
	p := goldenStore(t, "file-roll")
	s, err := store.Open(vfs.New(), p, store.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	files, err := vfs.New().List(p.IndexDir())
	require.NoError(t, err)
	for _, f := range files {
		require.NoError(t, vfs.New().Remove(path.Join(p.IndexDir(), f.Name)))
	}
	p.IndexSlots, p.IndexEntries = 0, 0
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := verify.Run(vfs.New(), p, nil)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.True(t, r.Whole, "%v", r)
	require.NotEmpty(t, r.NextStart)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20))
}

// FuzzRun: whatever is written over a file, looking does not fail.
func FuzzRun(f *testing.F) {
	p := goldenStore(f, "restart")
	f.Add("commitlog/00000000000000000000", uint32(100), []byte{1, 2, 3})
	f.Add("consumequeue/Again/0/00000000000000000000", uint32(20), []byte{0xff, 0xff})
	f.Add("index/20261129152012125", uint32(40), []byte{0xff, 0xff, 0xff, 0xff})
	f.Add("checkpoint", uint32(0), []byte{0x80})
	f.Fuzz(func(t *testing.T, name string, off uint32, b []byte) {
		disk := vfs.Overlay(vfs.New())
		file, err := disk.Open(path.Join(p.Dir, path.Clean("/"+name)), true)
		if err != nil {
			return
		}
		size, err := file.Size()
		require.NoError(t, err)
		if at := int64(off) % max(size, 1); at+int64(len(b)) <= size && len(b) > 0 {
			_, err = file.WriteAt(b, at)
			require.NoError(t, err)
		}
		require.NoError(t, file.Close())
		_, err = verify.Run(disk, p, nil)
		require.NoError(t, err)
	})
}
