package system_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/allocator"
	"github.com/actormq/actormq/actors/committer"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/verify"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

const never = 1000 * time.Hour

// pooled is a store with a transient store pool that commits nothing by itself but the first put.
func pooled(disk vfs.Disk) system.Options {
	opt := small(disk)
	opt.TransientPoolEnable = true
	opt.CommitLeastPages, opt.CommitInterval, opt.CommitThorough = math.MaxInt32, never, never
	return opt
}

// bodies puts messages one after the other.
func putBodies(t *testing.T, s *system.Store, from, to int) (list []string) {
	t.Helper()
	for i := from; i < to; i++ {
		body := fmt.Sprint("m", i, strings.Repeat("x", i%50*10))
		put(t, s, message("T", 0, body))
		list = append(list, body)
	}
	return list
}

// TestWhatIsNotCommittedIsLostByAKillAndWhatIsWrittenIsNot is the loss window of the transient store pool.
func TestWhatIsNotCommittedIsLostByAKillAndWhatIsWrittenIsNot(t *testing.T) {
	disk := memfs.New()
	s := open(t, pooled(disk))
	key := messages.QueueKey{Topic: "T"}
	first := putBodies(t, s, 0, 1)
	require.Equal(t, first, read(t, s, key, 0, 1), "after a pause one message is committed at once")
	second := putBodies(t, s, 1, 20)
	require.EqualValues(t, 1, s.MaxOffset(key), "not committed, so not readable")
	st := s.Status()
	require.Greater(t, st.WrittenTo, st.CommittedTo)

	killed := disk.Clone()
	reopened := open(t, pooled(killed))
	require.EqualValues(t, st.CommittedTo, reopened.Status().WrittenTo)
	require.Equal(t, first, read(t, reopened, key, 0, 1))
	require.EqualValues(t, 1, reopened.MaxOffset(key), "what was not committed is lost")
	more := putBodies(t, reopened, 50, 52)
	require.NoError(t, reopened.AwaitDispatched(t.Context()))
	require.Equal(t, more, read(t, reopened, key, 1, 2), "its offsets are given anew: nobody has read them")

	require.NoError(t, s.AwaitDispatched(t.Context()))
	killed = disk.Clone()
	reopened = open(t, small(killed))
	require.Equal(t, append(first, second...), read(t, reopened, key, 0, 20), "what was committed is not lost")
}

// TestTheLossWindowOnARealDisk copies the files of an open store: that is what the kernel has when the process is killed.
func TestTheLossWindowOnARealDisk(t *testing.T) {
	opt := pooled(nil)
	opt.Dir = filepath.Join(t.TempDir(), "store")
	s := open(t, opt)
	key := messages.QueueKey{Topic: "T"}
	first := putBodies(t, s, 0, 1)
	read(t, s, key, 0, 1)
	putBodies(t, s, 1, 20)
	until(t, "the allocator has made both segments ahead, and renames none meanwhile", func() bool {
		logs, err := os.ReadDir(filepath.Join(opt.Dir, "commitlog"))
		return err == nil && len(logs) == 3
	})
	killed := filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.CopyFS(killed, os.DirFS(opt.Dir)))
	plain := small(nil)
	plain.Dir = killed
	reopened := open(t, plain)
	require.EqualValues(t, 1, reopened.MaxOffset(key))
	require.Equal(t, first, read(t, reopened, key, 0, 1))
}

func TestTheCommitterKeepsItsIntervalsAndItsPages(t *testing.T) {
	second := func(o *system.Options) { o.CommitInterval, o.CommitThorough = time.Second, time.Second }
	for name, c := range map[string]struct {
		change func(*system.Options)
		pages  int
		after  time.Duration // until it is readable
	}{
		"commitIntervalCommitLog": {func(o *system.Options) {
			o.CommitInterval, o.CommitThorough, o.CommitLeastPages = 300*time.Millisecond, 400*time.Millisecond, 4
		}, 2, 400 * time.Millisecond},
		"commitCommitLogThoroughInterval":            {second, 0, time.Second},
		"commitCommitLogLeastPages":                  {func(o *system.Options) { second(o); o.CommitLeastPages = 2 }, 2, 0},
		"commitCommitLogLeastPages, fewer":           {func(o *system.Options) { second(o); o.CommitLeastPages = 3 }, 2, time.Second},
		"commitCommitLogLeastPages=0: what is there": {func(o *system.Options) { second(o); o.CommitLeastPages = -1 }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			timed(t, func(o *system.Options) {
				*o = pooled(o.Disk)
				o.SegmentBytes = 1 << 20
				c.change(o)
			}, func(t *testing.T, s *system.Store, _ *syncs) {
				put(t, s, page(0))
				synctest.Wait()
				put(t, s, page(c.pages))
				synctest.Wait()
				if c.after > 0 {
					require.EqualValues(t, 1, s.MaxOffset(page(0).Queue()))
					pass(c.after - time.Millisecond)
					require.EqualValues(t, 1, s.MaxOffset(page(0).Queue()))
					pass(2 * time.Millisecond)
				}
				require.EqualValues(t, 2, s.MaxOffset(page(0).Queue()))
			})
		})
	}
}

// TestAStoreWithAPoolIsLikeAnyOther: over many segments, after a stop, the files are those of a store without one.
func TestAStoreWithAPoolIsLikeAnyOther(t *testing.T) {
	disk := memfs.New()
	opt := pooled(disk)
	opt.CommitLeastPages, opt.CommitInterval, opt.CommitThorough = 0, 0, 0 // the defaults
	s, err := system.Open(opt)
	require.NoError(t, err)
	all := putBodies(t, s, 0, 1000)
	for i := range 10 { // by an offset that was answered a message is found at once
		r, err := s.Put(t.Context(), message("T", 0, fmt.Sprint("by offset", i)))
		require.NoError(t, err)
		m, err := s.MessageAt(r.PhysicalOffset)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint("by offset", i), string(m.Body))
		all = append(all, fmt.Sprint("by offset", i))
	}
	require.Equal(t, all, read(t, s, messages.QueueKey{Topic: "T"}, 0, len(all)))
	require.NoError(t, s.Close(t.Context()))

	plain := small(disk)
	report, err := verify.Run(disk, store.Params{
		Dir: plain.Dir, SegmentBytes: plain.SegmentBytes, ConsumeQueueFileBytes: plain.ConsumeQueueFileBytes,
		IndexSlots: plain.IndexSlots, IndexEntries: plain.IndexEntries, CheckCRC: true, MessageIndex: true,
	}, nil)
	require.NoError(t, err)
	require.True(t, report.Whole, "%v", report.Findings)
	s = open(t, plain)
	require.Equal(t, all, read(t, s, messages.QueueKey{Topic: "T"}, 0, len(all)))
	s2 := putBodies(t, s, 2000, 2010)
	require.Equal(t, s2, read(t, s, messages.QueueKey{Topic: "T"}, messages.QueueOffset(len(all)), 10))
}

// TestSegmentsWithoutABuffer: one buffer, and nothing of it is committed, so that it does not come back.
func TestSegmentsWithoutABuffer(t *testing.T) {
	fill := func(t *testing.T, s *system.Store, all []string) ([]string, error) {
		synctest.Wait()
		for range 100 {
			body := strings.Repeat("y", 1000)
			r, err := s.Put(t.Context(), message("T", 0, body))
			if err != nil {
				require.Equal(t, messages.CreateMapedFileFailed, r.Status)
				return all, err
			}
			all = append(all, body)
		}
		return all, nil
	}
	key := messages.QueueKey{Topic: "T"}
	t.Run("fastFailIfNoBufferInStorePool=false", func(t *testing.T) {
		fixture.Bubble(t, func(t *testing.T) {
			opt := pooled(memfs.New())
			opt.TransientPoolSize = 1
			s := openIn(t, opt)
			all := putBodies(t, s, 0, 1)
			read(t, s, key, 0, 1)
			all, err := fill(t, s, all)
			require.NoError(t, err, "it is written through the map")
			require.EqualValues(t, 1, s.MaxOffset(key), "and readable in its turn")
			require.NoError(t, s.AwaitDispatched(t.Context()))
			require.Equal(t, all, read(t, s, key, 0, len(all)))
			closeIn(t, s)
		})
	})
	t.Run("fastFailIfNoBufferInStorePool=true", func(t *testing.T) {
		fixture.Bubble(t, func(t *testing.T) {
			opt := pooled(memfs.New())
			opt.TransientPoolSize, opt.TransientPoolFailFast = 1, true
			s := openIn(t, opt)
			all, err := fill(t, s, putBodies(t, s, 0, 1))
			require.ErrorIs(t, err, allocator.ErrNoBuffer)
			require.Greater(t, len(all), 20)
			require.NoError(t, s.AwaitDispatched(t.Context()), "what is full is committed, and its buffer comes back")
			sleep(0)
			before := len(all)
			all, err = fill(t, s, all)
			require.ErrorIs(t, err, allocator.ErrNoBuffer)
			require.Greater(t, len(all), before)
			require.NoError(t, s.AwaitDispatched(t.Context()))
			require.Equal(t, all, read(t, s, key, 0, len(all)))
			closeIn(t, s)
		})
	})
}

func TestACommitThatFailsEndsAcknowledging(t *testing.T) {
	disk := memfs.New()
	failed := make(chan messages.Failed, 1)
	opt := pooled(disk)
	opt.OnFailed = func(m messages.Failed) { failed <- m }
	s, err := system.Open(opt)
	require.NoError(t, err)
	all := putBodies(t, s, 0, 1)
	read(t, s, messages.QueueKey{Topic: "T"}, 0, 1)
	put(t, s, message("T", 0, "acknowledged, not committed"))
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindWrite && strings.HasSuffix(op.Name, segments.Name(0)) && !strings.Contains(op.Name, "queue") {
			return errDisk
		}
		return nil
	})
	require.ErrorIs(t, s.AwaitDispatched(t.Context()), errDisk)
	require.ErrorIs(t, (<-failed).Cause, committer.ErrCommit)
	r, err := s.Put(t.Context(), message("T", 0, "x"))
	require.ErrorIs(t, err, errDisk, "the reason")
	require.Equal(t, messages.ServiceNotAvailable, r.Status)
	require.Equal(t, all, read(t, s, messages.QueueKey{Topic: "T"}, 0, 1), "reads go on")
	disk.Inject(nil)
	require.ErrorIs(t, s.Close(context.WithoutCancel(t.Context())), errDisk)
	s = open(t, pooled(disk))
	require.Equal(t, all, read(t, s, messages.QueueKey{Topic: "T"}, 0, 1))
}

// TestACommitThatFindsNoRoomIsTriedAgain: a file system may have no room though the file has been reserved.
func TestACommitThatFindsNoRoomIsTriedAgain(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		s := openIn(t, pooled(disk))
		all := putBodies(t, s, 0, 1)
		read(t, s, messages.QueueKey{Topic: "T"}, 0, 1)
		all = append(all, putBodies(t, s, 1, 5)...)
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindWrite && strings.HasSuffix(op.Name, segments.Name(0)) && !strings.Contains(op.Name, "queue") {
				return vfs.ErrNoSpace
			}
			return nil
		})
		require.ErrorIs(t, s.AwaitDispatched(t.Context()), vfs.ErrNoSpace)
		synctest.Wait()
		r, err := s.Put(t.Context(), message("T", 0, "x"))
		require.ErrorIs(t, err, messages.ErrDiskFull)
		require.Equal(t, messages.ServiceNotAvailable, r.Status)
		disk.Inject(nil)
		sleep(2 * time.Second)
		all = append(all, putBodies(t, s, 5, 6)...)
		require.NoError(t, s.AwaitDispatched(t.Context()))
		require.Equal(t, all, read(t, s, messages.QueueKey{Topic: "T"}, 0, len(all)))
		closeIn(t, s)
	})
}

// TestAPanicInTheCommitter is as an error of the disk: what is not in the files is not acknowledged any further, reads go on.
func TestAPanicInTheCommitter(t *testing.T) {
	disk := memfs.New()
	s, err := system.Open(pooled(disk))
	require.NoError(t, err)
	all := putBodies(t, s, 0, 1)
	read(t, s, messages.QueueKey{Topic: "T"}, 0, 1)
	put(t, s, message("T", 0, "acknowledged, not committed"))
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindWrite && firstSegment(op.Name) {
			panic("a bug")
		}
		return nil
	})
	require.ErrorIs(t, s.AwaitDispatched(t.Context()), messages.ErrPanicked)
	r, err := s.Put(t.Context(), message("T", 0, "x"))
	require.ErrorIs(t, err, messages.ErrPanicked)
	require.Equal(t, messages.ServiceNotAvailable, r.Status)
	require.Equal(t, all, read(t, s, messages.QueueKey{Topic: "T"}, 0, 1))
	disk.Inject(nil)
	require.Error(t, s.Close(context.WithoutCancel(t.Context())))
	s = open(t, pooled(disk))
	require.Equal(t, all, read(t, s, messages.QueueKey{Topic: "T"}, 0, 1))
}

// TestTheTransientPoolIsForAsynchronousMastersOnly: with SYNC_FLUSH puts are answered as ever (L17).
func TestTheTransientPoolIsForAsynchronousMastersOnly(t *testing.T) {
	opt := pooled(memfs.New())
	opt.FlushDiskType = system.SyncFlush
	var said bytes.Buffer
	opt.Logger = zerolog.New(zerolog.SyncWriter(&said))
	s := openIn(t, opt)
	all := putBodies(t, s, 0, 1000)
	require.Equal(t, all, read(t, s, messages.QueueKey{Topic: "T"}, 0, len(all)))
	st := s.Status()
	require.Equal(t, st.WrittenTo, st.FlushedTo)
	require.NoError(t, s.Close(t.Context()))
	require.Contains(t, said.String(), "transientStorePoolEnable has no effect")
}
