package system_test

import (
	"bytes"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

func TestWarmSegmentsAreLockedTwoAtMostInEveryRole(t *testing.T) { // L12
	for _, role := range []messages.BrokerRole{messages.AsyncMaster, messages.SyncMaster} {
		fixture.Bubble(t, func(t *testing.T) {
			disk := memfs.New()
			opt := small(disk)
			opt.WarmSegments, opt.Role = true, role
			s, err := system.Open(opt)
			require.NoError(t, err)
			settle()
			require.EqualValues(t, opt.SegmentBytes, disk.Locked())
			for range 100 { // more than ten segments
				_, err := s.Put(t.Context(), page(1))
				require.NoError(t, err)
				settle()
				require.LessOrEqual(t, disk.Locked(), 2*opt.SegmentBytes)
			}
			require.Equal(t, 2*opt.SegmentBytes, disk.Locked())
			require.NoError(t, s.Close(t.Context()))
			require.Zero(t, disk.Locked())
			pass(time.Second)
		})
	}
}

func TestWarmingMakesAllPagesPresent(t *testing.T) {
	for mode, want := range map[system.FlushDiskType]int{system.AsyncFlush: 0, system.SyncFlush: 3} {
		fixture.Bubble(t, func(t *testing.T) {
			disk := memfs.New()
			populated, given := int64(0), 0
			disk.Inject(func(op memfs.Op) error {
				if firstSegment(op.Name) && op.Kind == memfs.KindPopulate {
					populated += op.N
				}
				if firstSegment(op.Name) && op.Kind == memfs.KindWriteback {
					given++
				}
				return nil
			})
			opt := small(disk)
			opt.WarmSegments, opt.WarmSyncPages, opt.FlushDiskType = true, 2, mode
			s, err := system.Open(opt)
			require.NoError(t, err)
			settle()
			require.Equal(t, opt.SegmentBytes, populated)
			require.Equal(t, want, given)
			disk.Inject(nil)
			require.NoError(t, s.Close(t.Context()))
			pass(time.Second)
		})
	}
}

// TestPutsDoNotWaitForPages: a segment is handed over before it is warm, and when it can't be warmed.
func TestPutsDoNotWaitForPages(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		warm, refused := make(chan struct{}), atomic.Bool{}
		opt := small(disk)
		window := opt.WindowBytes
		disk.Inject(func(op memfs.Op) error {
			if op.Kind != memfs.KindPopulate || op.Off < window {
				return nil
			}
			<-warm
			refused.Store(true)
			return errDisk
		})
		opt.WarmSegments = true
		s, err := system.Open(opt)
		require.NoError(t, err)
		put(t, s, page(1))
		require.False(t, refused.Load())
		close(warm)
		for range 30 {
			put(t, s, page(1))
		}
		require.True(t, refused.Load())
		require.NoError(t, s.Close(t.Context()))
		pass(time.Second)
	})
}

func TestMemoryThatCannotBeLockedIsToldOnce(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		disk.Inject(failOn(memfs.KindLockPages))
		var log bytes.Buffer
		opt := small(disk)
		opt.WarmSegments, opt.Logger = true, zerolog.New(zerolog.SyncWriter(&log))
		s, err := system.Open(opt)
		require.NoError(t, err)
		for range 30 {
			put(t, s, page(1))
		}
		require.NoError(t, s.Close(t.Context()))
		require.Equal(t, 1, strings.Count(log.String(), "RLIMIT_MEMLOCK"))
		pass(time.Second)
	})
}
