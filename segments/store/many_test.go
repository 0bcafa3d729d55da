package store_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/testkit/memfs"
)

// TestManyQueuesAfterAKill (W28, L93): 2,000 queues are found again, and made durable by a few calls, not by some for each of them.
// testkit/manyqueues does the same with 100,000 on a real disk, and measures it.
func TestManyQueuesAfterAKill(t *testing.T) {
	disk := memfs.New()
	w := newLogWriter(t, disk)
	w.intervalMs = 1
	for i := range 400 * 5 {
		w.put(fmt.Sprint("Topic", i/5), int32(i%5), "x")
	}
	s := open(t, disk)
	require.Len(t, s.QueueOffsets, 2000)
	require.NoError(t, s.Close())

	var syncs, truncates atomic.Int64
	disk.Inject(func(op memfs.Op) error {
		switch op.Kind {
		case memfs.KindDataSync, memfs.KindSyncDir:
			syncs.Add(1)
		case memfs.KindTruncate:
			truncates.Add(1)
		}
		return nil
	})
	s = open(t, disk)
	disk.Inject(nil)
	require.Empty(t, s.Report.Plan.Queues, "nothing is to be done to any of them")
	require.Less(t, syncs.Load(), int64(1000), "they are for the segments of log and index")
	require.Zero(t, truncates.Load())
	require.Equal(t, w.next, s.QueueOffsets)
	require.NoError(t, s.Close())
	disk = disk.Crash(1)
	s = open(t, disk)
	require.Equal(t, w.next, s.QueueOffsets)
	q := s.Queues.Lookup(messages.QueueKey{Topic: "Topic399", QueueID: 4})
	require.EqualValues(t, w.puts[1999].to, q.PhysicalEnd())
	require.NoError(t, s.Close())
}
