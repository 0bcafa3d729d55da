package crash_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/memfs"
)

// panics make one operation, or every one that matches, panic inside the actor that does it.
func panics(match func(memfs.Op) bool, every bool) func(memfs.Op) error {
	done := false
	return locked(func(op memfs.Op) error {
		if match(op) && (every || !done) {
			done = true
			panic("a bug at " + op.Name)
		}
		return nil
	})
}

// bugs are panics in the actors that use the disk, by actor, and what becomes of the store: docs/TESTING.md has the table.
var bugs = map[string]struct {
	match func() func(memfs.Op) bool
	every bool
	down  bool
}{
	"allocator, once":          {func() func(memfs.Op) bool { return on("/prepare/", memfs.KindAllocate) }, false, false},
	"allocator, always":        {func() func(memfs.Op) bool { return on("/prepare/", memfs.KindAllocate) }, true, false},
	"allocator, moving in":     {func() func(memfs.Op) bool { return on("/commitlog", memfs.KindSyncDir) }, false, false},
	"allocator, populating":    {func() func(memfs.Op) bool { return on("", memfs.KindPopulate) }, true, false},
	"flusher, sync":            {syncOfLog, false, true},
	"flusher, checkpoint":      {func() func(memfs.Op) bool { return on("checkpoint") }, true, false},
	"queue builder, write":     {func() func(memfs.Op) bool { return on("/consumequeue/", memfs.KindWrite) }, false, true},
	"queue builder, sync":      {func() func(memfs.Op) bool { return on("/consumequeue/", memfs.KindDataSync) }, false, true},
	"cleaner, usage":           {func() func(memfs.Op) bool { return on("", memfs.KindUsage) }, true, false},
	"delay scheduler, offsets": {func() func(memfs.Op) bool { return on("delayOffset.json") }, true, false},
	"index builder, new file":  {func() func(memfs.Op) bool { return on("/index", memfs.KindCreate) }, false, false},
	"index builder, full file": {func() func(memfs.Op) bool { return on("/index", memfs.KindDataSync) }, true, false},
}

// L108: a panic in a storage actor answers every put once, ends no process, and takes away nothing that was acknowledged. The
// others go on, or the store turns read-only and says why.
func TestPanicsInStorageActors(t *testing.T) {
	for name, b := range bugs {
		t.Run(name, func(t *testing.T) {
			var hits atomic.Int64
			defer func() { require.Positive(t, hits.Load(), "nothing panicked") }()
			inBubble(t, func(t *testing.T) {
				for i := range slower(8) {
					mode, lift := modes[i%2], i/2%2 == 0
					out, err := trial(uint64(i), mode, counted(&hits, panics(b.match(), b.every)), lift).Run()
					require.NoError(t, err, "%v, lifted %v: %v", mode, lift, out)
					if b.down {
						require.ErrorIs(t, out.Down, messages.ErrPanicked, "%v: %v", mode, out)
						continue
					}
					goesOn(t, out, lift)
				}
			})
		})
	}
}

// What a caller does with an answer runs on the writer's or the flusher's goroutine: a panic there is the caller's own, and
// concerns no other put.
func TestACallerThatPanicsOnItsAnswer(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			s, err := system.Open(system.Options{Dir: "store", Disk: memfs.New(), SegmentBytes: 8192, FlushDiskType: mode})
			require.NoError(t, err)
			const count = 100
			var answers atomic.Int64
			done := make(chan error, count)
			for i := range count {
				m := messages.Message{Topic: "T", Body: []byte("body")}
				s.PutAsync(&m, true, time.Time{}, func(_ messages.PutResult, err error) {
					answers.Add(1)
					done <- err
					if i%3 == 0 {
						panic("a bug of the caller")
					}
				})
			}
			for range count {
				require.NoError(t, <-done)
			}
			require.NoError(t, s.Writable())
			r, err := s.Put(t.Context(), &messages.Message{Topic: "T", Body: []byte("last")})
			require.NoError(t, err)
			require.EqualValues(t, count, r.QueueOffset)
			require.NoError(t, s.Close(context.Background()))
			require.EqualValues(t, count, answers.Load())
		})
	}
}

// A pull whose wake-up panics costs no other pull its own.
func TestAPullThatPanicsWhenItIsWoken(t *testing.T) {
	s, err := system.Open(system.Options{Dir: "store", Disk: memfs.New(), SegmentBytes: 8192})
	require.NoError(t, err)
	const count = 9
	woken := make(chan messages.WakeReason, count)
	for i := range count {
		s.Park(&messages.ParkPull{Queue: messages.QueueKey{Topic: "T"}, Wake: func(why messages.WakeReason) {
			woken <- why
			if i%3 == 0 {
				panic("a bug of a connection")
			}
		}})
	}
	_, err = s.Put(t.Context(), &messages.Message{Topic: "T", Body: []byte("body")})
	require.NoError(t, err)
	for range count {
		require.Equal(t, messages.WakeArrived, <-woken)
	}
	require.NoError(t, s.Close(context.Background()))
}
