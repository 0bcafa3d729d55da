package store_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/testkit/memfs"
)

// further is a store with light queues and another further one, old and new, that was closed properly. A start after a crash reads neither of the
// old ones.
func further(t *testing.T, p store.Params) *memfs.Disk {
	t.Helper()
	disk := memfs.New()
	w := newLogWriter(t, disk)
	put := func(n int, names string) {
		for i := range n {
			m := w.message(messages.QueueKey{Topic: "T", QueueID: 2}, "x")
			m.Properties = m.Properties.With(messages.PropertyMultiDispatch, names).
				With(messages.PropertyMultiQueueOffset, fmt.Sprintf("%d,%d", i, i))
			w.append(m)
		}
	}
	put(12, "%LMQ%old,Old")
	w.fill(150)
	put(6, "%LMQ%new,New")
	s, err := store.Open(disk, p, testOptions())
	require.NoError(t, err)
	require.NoError(t, s.CloseClean())
	return disk
}

// furtherLosses are what makes a start build queues again.
var furtherLosses = map[string]func(*testing.T, *memfs.Disk){
	"all queues": func(t *testing.T, d *memfs.Disk) { removeTree(t, d, "s/consumequeue") },
	"nothing, but a marker": func(t *testing.T, d *memfs.Disk) {
		markQueues(t, d, "0\n")
	},
	"a unit of old ones": func(t *testing.T, d *memfs.Disk) {
		for _, topic := range []string{"%LMQ%old", "Old"} {
			overwrite(t, d, queueFile(topic, map[string]int{"Old": 2}[topic]), 3*20, zeroBytes(20))
		}
	},
	"the last units, in a crash": func(t *testing.T, d *memfs.Disk) {
		for _, topic := range []string{"%LMQ%new", "New"} {
			overwrite(t, d, queueFile(topic, map[string]int{"New": 2}[topic]), 2*20, zeroBytes(4*20))
		}
		createFile(t, d, "s/abort", 0)
	},
}

// TestFurtherQueuesThatAreBuiltAgainMayBeInterrupted, also by starts of which each does without them: these begin with the same queues, and no later one
// would know.
func TestFurtherQueuesThatAreBuiltAgainMayBeInterrupted(t *testing.T) {
	with := testParams()
	with.MultiDispatch = true
	contentIn := func(disk *memfs.Disk, p store.Params) content {
		s, err := store.Open(disk, p, testOptions())
		require.NoError(t, err)
		c := contentOf(t, s)
		require.NoError(t, s.CloseClean())
		return c
	}
	whole := further(t, with)
	want := contentIn(whole.Clone(), with)
	require.Len(t, want.Queues, 11)
	for name, lose := range furtherLosses {
		for _, without := range []bool{false, true} {
			first := with
			first.MultiDispatch = !without
			disk := whole.Clone()
			lose(t, disk)
			everyEndIn(t, disk, first, testOptions(), func(memfs.Op) error { return nil }, func(left *memfs.Disk, step int) {
				if without {
					contentIn(left, first)
				}
				require.Equal(t, want, contentIn(left, with), "%s, without %v, step %d", name, without, step)
			})
		}
	}
}

// TestLightQueuesOfAnotherProgramAreBuiltByAStartWithoutThem: RocketMQ leaves no marker.
func TestLightQueuesOfAnotherProgramAreBuiltByAStartWithoutThem(t *testing.T) {
	with := testParams()
	with.MultiDispatch = true
	disk := further(t, with)
	require.NoError(t, disk.Remove("s/furtherqueues"))
	require.NoError(t, disk.SyncDir("s"))
	markQueues(t, disk, "0\n")
	want, err := store.Open(disk.Clone(), with, testOptions())
	require.NoError(t, err)
	everyEnd(t, disk, func(left *memfs.Disk, step int) {
		s, err := store.Open(left, testParams(), testOptions())
		require.NoError(t, err)
		require.Equal(t, want.QueueOffsets, s.QueueOffsets, "step %d", step)
		require.NoError(t, s.Close())
	})
	require.NoError(t, want.Close())
}
