package system_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// TestAfterAFailedSyncTheLogIsCopiedToNewFiles restarts the process alone: the page cache still shows what never reached the
// disk, and syncing it again would say nothing (W5, L13).
func TestAfterAFailedSyncTheLogIsCopiedToNewFiles(t *testing.T) {
	disk := memfs.New()
	opt := small(disk)
	opt.FlushDiskType = system.SyncFlush
	s, err := system.Open(opt)
	require.NoError(t, err)
	put(t, s, message("T", 0, "good"))
	flushed := s.FlushedTo()
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindDataSync && firstSegment(op.Name) {
			return errDisk
		}
		return nil
	})
	_, err = s.Put(t.Context(), message("T", 0, "unsure"))
	require.ErrorIs(t, err, errDisk)
	st := s.Status()
	require.ErrorIs(t, st.Cause, errDisk)
	require.Equal(t, messages.FlagNotWriteable, st.Flags)
	require.Equal(t, flushed, st.FlushedTo)
	require.Error(t, s.Close(t.Context()))
	for _, name := range []string{"store/abort", "store/unproven"} {
		_, err = disk.Stat(name)
		require.NoError(t, err, name)
	}

	// The disk lets nothing of a failed sync through a second time: the old file stays as it is.
	copied := false
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindRename && op.To == "store/commitlog/"+segments.Name(0) {
			copied = true
		}
		if op.Kind == memfs.KindDataSync && op.Name == "store/commitlog/"+segments.Name(0) && !copied {
			return errDisk
		}
		return nil
	})
	s, err = system.Open(opt)
	require.NoError(t, err)
	require.True(t, copied)
	require.Equal(t, []string{"good", "unsure"}, read(t, s, messages.QueueKey{Topic: "T"}, 0, 2))
	_, err = disk.Stat("store/unproven")
	require.Error(t, err)
	cut := opt
	cut.Disk = disk.Crash(7) // what was copied is durable
	require.NoError(t, s.Close(t.Context()))
	s = open(t, cut)
	require.Equal(t, []string{"good", "unsure"}, read(t, s, messages.QueueKey{Topic: "T"}, 0, 2))
}

// TestASyncThatFailsLateLeavesTheLogUnproven: when the disk gives up on a sync, the queues' may have failed before it, and the store may
// have been closed, since it would not wait any longer. Nobody is told of the failure a second time (W5).
func TestASyncThatFailsLateLeavesTheLogUnproven(t *testing.T) {
	for name, until := range map[string]func(*testing.T, *system.Store, func() bool){
		"after the queues'": func(t *testing.T, s *system.Store, queues func() bool) {
			pass(2 * time.Minute)
			require.True(t, queues())
			require.Equal(t, messages.FlagQueueError, s.Status().Flags&messages.FlagQueueError)
		},
		"after the store was closed": func(t *testing.T, s *system.Store, _ func() bool) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			require.ErrorIs(t, s.Close(ctx), context.DeadlineExceeded)
		},
	} {
		t.Run(name, func(t *testing.T) {
			fixture.Bubble(t, func(t *testing.T) {
				disk := memfs.New()
				opt := small(disk)
				opt.FlushDiskType = system.SyncFlush
				s, err := system.Open(opt)
				require.NoError(t, err)
				put(t, s, message("T", 0, "good"))
				stall := make(chan struct{})
				var queues atomic.Bool
				disk.Inject(func(op memfs.Op) error {
					switch {
					case op.Kind != memfs.KindDataSync:
					case firstSegment(op.Name):
						<-stall
						return errDisk
					case strings.Contains(op.Name, "/consumequeue/"):
						queues.Store(true)
						return errDisk
					}
					return nil
				})
				r, err := s.Put(t.Context(), page(3))
				require.NoError(t, err)
				require.Equal(t, messages.FlushDiskTimeout, r.Status)
				until(t, s, queues.Load)
				close(stall)
				pass(time.Second)
				_ = s.Close(t.Context()) // it says what has failed
				disk.Inject(nil)
				s, err = system.Open(opt)
				require.NoError(t, err)
				require.NoError(t, s.Close(t.Context()))
				for seed := range uint64(8) {
					opt.Disk = disk.Crash(seed)
					s, err = system.Open(opt)
					require.NoError(t, err)
					require.Equal(t, []string{"good", string(page(3).Body)}, read(t, s, messages.QueueKey{Topic: "T"}, 0, 2))
					require.NoError(t, s.Close(t.Context()))
				}
				pass(time.Second)
			})
		})
	}
}

// TestASyncOfRecoveryThatFailsIsNotTriedAgain: the kernel says of what a killed process has left in the page cache just once that it cannot
// be written (W5).
func TestASyncOfRecoveryThatFailsIsNotTriedAgain(t *testing.T) {
	disk := memfs.New()
	opt := small(disk)
	opt.FlushInterval = time.Hour
	s, err := system.Open(opt)
	require.NoError(t, err)
	put(t, s, page(3))
	killed := disk.Clone()
	require.NoError(t, s.Close(t.Context()))
	killed.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindDataSync && firstSegment(op.Name) {
			return errDisk
		}
		return nil
	})
	opt.Disk = killed
	_, err = system.Open(opt)
	require.ErrorIs(t, err, errDisk)
	killed.Inject(nil)
	s, err = system.Open(opt)
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))
	for seed := range uint64(8) {
		opt.Disk = killed.Crash(seed)
		s = open(t, opt)
		require.Equal(t, []string{string(page(3).Body)}, read(t, s, messages.QueueKey{Topic: "T"}, 0, 1))
	}
}

// TestADiskThatCannotBeProvenIsReadOnly: what is there is served, nothing is taken or changed, and nobody else opens it meanwhile.
func TestADiskThatCannotBeProvenIsReadOnly(t *testing.T) {
	disk := memfs.New()
	opt := small(disk)
	opt.TransientPoolEnable, opt.Role, opt.HAListen = true, messages.SyncMaster, "127.0.0.1:0"
	plain := small(disk)
	s, err := system.Open(plain)
	require.NoError(t, err)
	m := message("T", 0, "x")
	m.Properties = "KEYS\x01k"
	put(t, s, m)
	require.NoError(t, s.Close(t.Context()))
	require.NoError(t, store.MarkUnproven(disk, store.Params{Dir: "store"}, 0, errDisk))
	unwell := func(op memfs.Op) error { // from the first sync on it changes nothing any more
		if op.Kind == memfs.KindDataSync {
			return errDisk
		}
		return nil
	}
	disk.Inject(unwell)
	s, err = system.Open(opt)
	require.NoError(t, err)
	disk.Inject(func(op memfs.Op) error {
		if op.Kind.Changes() && op.Kind != memfs.KindLock && op.Kind != memfs.KindMkdir {
			t.Errorf("%v of %s", op.Kind, op.Name)
		}
		return unwell(op)
	})
	require.ErrorIs(t, s.Writable(), system.ErrReadOnly)
	require.ErrorIs(t, s.Writable(), store.ErrUnproven)
	require.Equal(t, messages.FlagNotWriteable, s.Status().Flags)
	require.Equal(t, []string{"x"}, read(t, s, m.Queue(), 0, 1))
	found, err := s.Query(t.Context(), messages.QueryMessage{Topic: "T", Key: "k", MaxMessages: 2, EndMs: 1 << 60})
	require.NoError(t, err)
	require.Len(t, found, 1)
	r, err := s.Put(t.Context(), m)
	require.ErrorIs(t, err, errDisk, "the reason")
	require.Equal(t, messages.ServiceNotAvailable, r.Status)
	require.ErrorIs(t, s.DeleteTopic(t.Context(), "T"), system.ErrReadOnly)
	require.ErrorIs(t, s.DeleteExpiredQueues(t.Context()), system.ErrReadOnly)
	require.ErrorIs(t, s.DeliverDelayed(t.Context(), true), system.ErrReadOnly)
	require.NoError(t, s.AwaitDispatched(t.Context()))
	_, err = system.Open(plain)
	require.ErrorIs(t, err, vfs.ErrLocked)
	require.ErrorIs(t, s.Close(t.Context()), system.ErrReadOnly)
	disk.Inject(nil)
	s = open(t, plain) // the disk is well again
	require.Equal(t, []string{"x"}, read(t, s, m.Queue(), 0, 1))
	put(t, s, m)
}

// TestAnExtensionFindsAReadOnlyStoreReadOnly from its first call on: what it put would only be in memory.
func TestAnExtensionFindsAReadOnlyStoreReadOnly(t *testing.T) {
	disk := memfs.New()
	s, err := system.Open(small(disk))
	require.NoError(t, err)
	put(t, s, message("T", 0, "x"))
	require.NoError(t, s.Close(t.Context()))
	require.NoError(t, store.MarkUnproven(disk, store.Params{Dir: "store"}, 0, errDisk))
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindDataSync {
			return errDisk
		}
		return nil
	})
	opt := small(disk)
	loading, serving := make(chan error, 1), make(chan error, 1)
	opt.Dispatchers = []system.Dispatcher{{
		Name: "loads", Handle: func(context.Context, *system.Batch) error { return nil },
		Load: func(s *system.Store) (system.Position, bool, error) {
			_, err := s.Put(t.Context(), message("T", 0, "lost"))
			loading <- err
			return system.Position{}, false, nil
		},
	}}
	opt.Services = []system.Service{{Name: "puts", Run: func(ctx context.Context, s *system.Store) error {
		_, err := s.Put(ctx, message("T", 0, "lost"))
		serving <- err
		return nil
	}}}
	s, err = system.Open(opt)
	require.NoError(t, err)
	require.ErrorIs(t, <-loading, system.ErrReadOnly)
	require.ErrorIs(t, <-serving, system.ErrReadOnly)
	require.EqualValues(t, 1, s.MaxOffset(messages.QueueKey{Topic: "T"}))
	require.ErrorIs(t, s.Close(t.Context()), system.ErrReadOnly)
}

// TestAnUnprovenLogThatCannotBeReadKeepsTheStoreClosed.
func TestAnUnprovenLogThatCannotBeReadKeepsTheStoreClosed(t *testing.T) {
	disk := memfs.New()
	s, err := system.Open(small(disk))
	require.NoError(t, err)
	put(t, s, message("T", 0, "x"))
	require.NoError(t, s.Close(t.Context()))
	require.NoError(t, store.MarkUnproven(disk, store.Params{Dir: "store"}, 0, errDisk))
	disk.Inject(func(op memfs.Op) error {
		if firstSegment(op.Name) && (op.Kind == memfs.KindRead || op.Kind == memfs.KindMap) {
			return errDisk
		}
		return nil
	})
	_, err = system.Open(small(disk))
	require.ErrorIs(t, err, store.ErrUnproven)
	require.ErrorIs(t, err, errDisk)
}

// TestProvingTheLogMayBeInterrupted kills the process, and cuts the power, at every change of the disk meanwhile.
func TestProvingTheLogMayBeInterrupted(t *testing.T) {
	disk := memfs.New()
	s, err := system.Open(small(disk))
	require.NoError(t, err)
	want := []string{}
	for range 60 {
		want = append(want, string(page(0).Body)+"some text of a length")
		put(t, s, message("T", 0, want[len(want)-1]))
	}
	require.NoError(t, s.Close(t.Context()))
	require.NoError(t, store.MarkUnproven(disk, store.Params{Dir: "store"}, 0, errDisk))
	var left []*memfs.Disk
	disk.Inject(func(op memfs.Op) error {
		if op.Kind.Changes() {
			left = append(left, disk.Clone(), disk.Crash(uint64(len(left))))
		}
		return nil
	})
	files, err := store.Open(disk, store.Params{Dir: "store", SegmentBytes: 32 << 10, ConsumeQueueFileBytes: 2000, IndexSlots: 50, IndexEntries: 200, MessageIndex: true}, store.Options{})
	require.NoError(t, err)
	require.NoError(t, files.CloseClean())
	require.NotEmpty(t, left)
	for _, d := range left {
		s, err := system.Open(small(d))
		require.NoError(t, err)
		require.Equal(t, want, read(t, s, messages.QueueKey{Topic: "T"}, 0, len(want)))
		require.NoError(t, s.Close(t.Context()))
	}
}
