package system_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// TestWhatAPowerCutTakesInEachMode measures, on a disk that takes no time, how old the oldest message gets that a power cut would take, and
// cuts the power then: docs/OPERATIONS.md has the numbers. -v shows them.
func TestWhatAPowerCutTakesInEachMode(t *testing.T) {
	const step = 50 * time.Millisecond
	for _, c := range []struct {
		mode         string
		every        time.Duration
		body         int
		set          func(*system.Options)
		least, worst time.Duration
	}{
		{"ASYNC_FLUSH, 20 KiB a second", step, 1000, func(*system.Options) {}, 450 * time.Millisecond, 1500 * time.Millisecond},
		{"ASYNC_FLUSH, 200 KiB a second", step, 10_000, func(*system.Options) {}, 450 * time.Millisecond, 500 * time.Millisecond},
		{"ASYNC_FLUSH, a small message a second", time.Second, 100, func(*system.Options) {}, 9 * time.Second, 10500 * time.Millisecond},
		{"the same, flushCommitLogLeastPages=0", time.Second, 100, func(o *system.Options) { o.FlushLeastPages = -1 }, 450 * time.Millisecond, 500 * time.Millisecond},
		{"SYNC_FLUSH", step, 1000, func(o *system.Options) { o.FlushDiskType = system.SyncFlush }, 0, 0},
	} {
		t.Run(c.mode, func(t *testing.T) {
			fixture.Bubble(t, func(t *testing.T) {
				disk := memfs.New()
				opt := small(disk)
				opt.SegmentBytes = 4 << 20
				c.set(&opt)
				s := open(t, opt)
				var waiting []atRisk
				var worst time.Duration
				var image *memfs.Disk
				var durable messages.PhysicalOffset
				for begin := time.Now(); time.Since(begin) < time.Minute; {
					r, err := s.Put(t.Context(), message("orders", 0, string(make([]byte, c.body))))
					require.NoError(t, err)
					waiting = append(waiting, atRisk{r.End(), time.Now()})
					for range c.every / step {
						<-time.After(step - 1)
						if age := oldest(&waiting, s.FlushedTo()); age > worst {
							worst, image, durable = age, disk.Crash(1), s.FlushedTo()
						}
						<-time.After(1)
					}
				}
				t.Logf("at most %v", worst.Round(step))
				require.GreaterOrEqual(t, worst, c.least)
				require.LessOrEqual(t, worst, c.worst)
				if image == nil {
					return
				}
				opt.Disk = image
				left := open(t, opt)
				_, end := left.LogRange()
				require.GreaterOrEqual(t, end, durable, "what was durable is there")
			})
		})
	}
}

// atRisk is a message that is not durable as far as is known.
type atRisk struct {
	end messages.PhysicalOffset
	at  time.Time
}

// oldest drops what is durable, and tells how old the oldest of the rest is.
func oldest(waiting *[]atRisk, durable messages.PhysicalOffset) time.Duration {
	for len(*waiting) > 0 && (*waiting)[0].end <= durable {
		*waiting = (*waiting)[1:]
	}
	if len(*waiting) == 0 {
		return 0
	}
	return time.Since((*waiting)[0].at)
}
