package system_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

const unprovenQueues = "store/unprovenqueues"

// ofQueue fails operations of a kind on what is, or lies below, a topic's folder of queues; without a topic the folder of all.
func ofQueue(topic string, kinds ...memfs.Kind) func(memfs.Op) error {
	return func(op memfs.Op) error {
		for _, k := range kinds {
			if op.Kind == k && strings.HasPrefix(op.Name, strings.TrimSuffix("store/consumequeue/"+topic, "/")) {
				return errDisk
			}
		}
		return nil
	}
}

// fillOther puts so much elsewhere that a clean start no longer looks at what was there before, and closes the store.
func fillOther(t *testing.T, s *system.Store) {
	t.Helper()
	for range 50 {
		put(t, s, message("Other", 0, strings.Repeat("x", 4096)))
	}
	require.NoError(t, s.Close(t.Context()))
}

// requireQueue opens what power cuts leave of a store and reads a queue.
func requireQueue(t *testing.T, disk *memfs.Disk, topic string, want []string) {
	t.Helper()
	for seed := range uint64(8) {
		s, err := system.Open(small(disk.Crash(seed)))
		require.NoError(t, err)
		require.EqualValues(t, len(want), s.MaxOffset(messages.QueueKey{Topic: topic}))
		require.Equal(t, want, read(t, s, messages.QueueKey{Topic: topic}, 0, len(want)))
		require.NoError(t, s.Close(t.Context()))
	}
}

// TestQueuesWhoseSyncHasFailedAreBuiltAgain restarts the process alone, stops it in order, and cuts the power: what the page cache has shown
// of the queue was never on the disk.
func TestQueuesWhoseSyncHasFailedAreBuiltAgain(t *testing.T) {
	for name, c := range map[string]struct {
		kind  memfs.Kind
		later int  // messages for the queue after the restart
		other bool // somebody else has stopped the store in order since
	}{
		"short":                      {kind: memfs.KindDataSync},
		"a page of zeros":            {kind: memfs.KindDataSync, later: 150},
		"written back":               {kind: memfs.KindWriteback},
		"written back, zeros":        {kind: memfs.KindWriteback, later: 150},
		"another program has run":    {kind: memfs.KindDataSync, other: true},
		"another has run, and zeros": {kind: memfs.KindDataSync, later: 150, other: true},
	} {
		t.Run(name, func(t *testing.T) {
			fixture.Bubble(t, func(t *testing.T) {
				disk := memfs.New()
				opt := small(disk)
				s := openIn(t, opt)
				var want []string
				more := func(n int) {
					for range n {
						want = append(want, fmt.Sprintf("message %d", len(want)))
						put(t, s, message("T", 0, want[len(want)-1]))
					}
				}
				more(1)
				pass(2 * time.Minute)
				disk.Inject(ofQueue("T", c.kind))
				more(5)
				pass(2 * time.Minute)
				require.Equal(t, messages.FlagQueueError, s.Status().Flags&messages.FlagQueueError)
				require.ErrorIs(t, s.Close(t.Context()), errDisk)
				disk.Inject(nil)
				_, err := disk.Stat(unprovenQueues)
				require.NoError(t, err)
				if c.other {
					require.NoError(t, disk.Remove("store/abort"))
				}

				s = openIn(t, opt)
				require.Equal(t, want, read(t, s, messages.QueueKey{Topic: "T"}, 0, len(want)))
				more(c.later)
				fillOther(t, s)
				_, err = disk.Stat(unprovenQueues)
				require.Error(t, err)
				requireQueue(t, disk, "T", want)
				pass(time.Second)
			})
		})
	}
}

// TestASyncOfQueuesThatFailsWhileOpening: a kernel says of what a killed process has left in the page cache just once that it cannot be
// written.
func TestASyncOfQueuesThatFailsWhileOpening(t *testing.T) {
	for name, c := range map[string]struct {
		queues int
		topic  string
		kind   memfs.Kind
	}{
		"a file":      {queues: 1, topic: "T", kind: memfs.KindDataSync},
		"all of them": {queues: 100, kind: memfs.KindSyncDir},
	} {
		t.Run(name, func(t *testing.T) {
			fixture.Bubble(t, func(t *testing.T) {
				disk := memfs.New()
				opt := small(disk)
				opt.QueueFlushThorough = time.Hour
				opt.QueueFlushLeastPages = 1000
				s := openIn(t, opt)
				for i := range c.queues {
					put(t, s, message("Q", int32(i), "x"))
				}
				put(t, s, message("T", 0, "x"))
				read(t, s, messages.QueueKey{Topic: "T"}, 0, 1)
				var written atomic.Int64
				disk.Inject(func(op memfs.Op) error { // killed between writing and syncing
					if op.Kind == memfs.KindDataSync && strings.HasPrefix(op.Name, "store/consumequeue/") {
						written.Add(1)
						return errDisk
					}
					return nil
				})
				_ = s.Close(t.Context())
				require.NotZero(t, written.Load())
				_ = disk.Remove(unprovenQueues)
				killed := disk.Clone()
				killed.Inject(ofQueue(c.topic, c.kind))
				opt.Disk = killed
				_, err := system.Open(opt)
				require.ErrorIs(t, err, errDisk)
				killed.Inject(nil)
				fillOther(t, openIn(t, opt))
				requireQueue(t, killed, "T", []string{"x"})
				pass(time.Second)
			})
		})
	}
}

// TestAnIndexWhoseSyncHasFailedIsBuiltAgain: it needs no marker, since nobody stops such a store in order but who deletes the file.
func TestAnIndexWhoseSyncHasFailedIsBuiltAgain(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		s := openIn(t, opt)
		m := message("T", 0, "x")
		m.Properties = messages.PropertiesOf(map[string]string{messages.PropertyKeys: "k"})
		put(t, s, m)
		pass(2 * time.Minute)
		put(t, s, m)
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindDataSync && strings.HasPrefix(op.Name, "store/index") {
				return errDisk
			}
			return nil
		})
		pass(2 * time.Minute)
		require.ErrorIs(t, s.Close(t.Context()), errDisk)
		disk.Inject(nil)
		fillOther(t, openIn(t, opt))
		for seed := range uint64(8) {
			s = openIn(t, small(disk.Crash(seed)))
			found, err := s.Query(t.Context(), messages.QueryMessage{Topic: "T", Key: "k", MaxMessages: 9, EndMs: 1 << 60})
			require.NoError(t, err)
			require.Len(t, found, 2)
			require.NoError(t, s.Close(t.Context()))
		}
		pass(time.Second)
	})
}

// TestDamageOfAQueueThatAReaderMeetsIsRepairedByTheNextStart, though the store is stopped in order.
func TestDamageOfAQueueThatAReaderMeetsIsRepairedByTheNextStart(t *testing.T) {
	for name, count := range map[string]int{"some": 1, "page by page": 32} {
		t.Run(name, func(t *testing.T) {
			disk := memfs.New()
			var said fixture.Said
			opt := small(disk)
			opt.Logger = zerolog.New(&said)
			s := openIn(t, opt)
			var want []string
			for i := range 250 {
				want = append(want, fmt.Sprintf("message %d", i))
				put(t, s, message("T", 0, want[i]))
			}
			fillOther(t, s)
			f, err := disk.Open("store/consumequeue/T/0/"+segments.Name(0), true)
			require.NoError(t, err)
			_, err = f.WriteAt(make([]byte, 20), 50*20)
			require.NoError(t, err)
			require.NoError(t, f.Close())

			s = openIn(t, opt)
			for range 2 {
				_, err = s.Get(t.Context(), messages.GetMessage{Queue: messages.QueueKey{Topic: "T"}, Offset: 50, MaxMessages: count})
				var damage *segments.CorruptionError
				require.ErrorAs(t, err, &damage)
			}
			require.Equal(t, 1, strings.Count(said.String(), "a consume queue is damaged"))
			require.NoError(t, s.Close(t.Context()))
			s = openIn(t, opt)
			require.Equal(t, want, read(t, s, messages.QueueKey{Topic: "T"}, 0, len(want)))
			require.NoError(t, s.Close(t.Context()))
			requireQueue(t, disk, "T", want)
		})
	}
}
