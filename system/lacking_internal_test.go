package system

import (
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

const lackingSegment = 32 << 10

// lacking opens a store in which the queue Idle/0 has 2 of 6 messages, and takes no more: the log has lost the third. Other messages follow.
func lacking(t *testing.T) (*Store, *memfs.Disk, messages.QueueKey) {
	t.Helper()
	disk, idle := memfs.New(), messages.QueueKey{Topic: "Idle"}
	s := openLacking(t, disk)
	var third messages.PutResult
	put := func(topic, body string) messages.PutResult {
		r, err := s.Put(t.Context(), &messages.Message{Topic: topic, Body: []byte(body)})
		require.NoError(t, err)
		return r
	}
	for i := range 5 {
		if r := put(idle.Topic, "m"); i == 2 {
			third = r
		}
	}
	require.NoError(t, s.AwaitDispatched(t.Context()))
	require.NoError(t, s.queues.Lookup(idle).Truncate(2))
	r, err := s.log.ReadFrom(third.PhysicalOffset)
	require.NoError(t, err)
	clear(r.Bytes[:third.Bytes])
	r.Release()
	put(idle.Topic, "m")
	for _, end := s.LogRange(); end < 8*lackingSegment; _, end = s.LogRange() {
		put("T", strings.Repeat("x", 900))
	}
	require.NoError(t, s.AwaitDispatched(t.Context()))
	require.EqualValues(t, 2, s.MaxOffset(idle))
	return s, disk, idle
}

func openLacking(t *testing.T, disk *memfs.Disk) *Store {
	t.Helper()
	s, err := Open(Options{
		Dir: "store", Disk: disk, SegmentBytes: lackingSegment, ConsumeQueueFileBytes: 2000, NoIndex: true, WindowBytes: 8 << 10, BallastBytes: -1,
	})
	require.NoError(t, err)
	return s
}

// TestAQueueThatLacksUnitsGivesNoOffsetsAgain: wherever the store ends, the next start builds it again from the log, or, when its records have left that
// meanwhile, has it go on behind them.
func TestAQueueThatLacksUnitsGivesNoOffsetsAgain(t *testing.T) {
	for name, expire := range map[string]bool{"the log has its records": false, "its records have expired": true} {
		t.Run(name, func(t *testing.T) {
			fixture.Bubble(t, func(t *testing.T) {
				s, disk, idle := lacking(t)
				below := messages.PhysicalOffset(3 * lackingSegment)
				if expire {
					require.NoError(t, s.noteUnwritten(t.Context(), below))
				}
				for range 2 { // the checkpoint has time to say what the queues have
					<-time.After(5 * time.Minute)
					synctest.Wait()
					_, err := s.Put(t.Context(), &messages.Message{Topic: "T"})
					require.NoError(t, err)
				}
				ends := []*memfs.Disk{disk.Clone(), disk.Crash(1), disk.Crash(2)}
				require.NoError(t, s.Close(t.Context()))
				for i, end := range append(ends, disk.Clone(), disk.Crash(3)) {
					if expire {
						for start := int64(0); start < int64(below); start += lackingSegment {
							require.NoError(t, end.Remove(path.Join("store/commitlog", segments.Name(start))))
						}
					}
					for range 2 {
						s := openLacking(t, end)
						require.EqualValues(t, 6, s.MaxOffset(idle), "end %d", i)
						require.NoError(t, s.Close(t.Context()))
					}
					s := openLacking(t, end)
					r, err := s.Put(t.Context(), &messages.Message{Topic: idle.Topic})
					require.NoError(t, err)
					require.EqualValues(t, 6, r.QueueOffset, "end %d", i)
					require.NoError(t, s.Close(t.Context()))
				}
			})
		})
	}
}

// TestANoteOfALifeBeforeIsCorrectedBeforeTheQueuesRecordsGo: a slave has noted where a queue goes on, and then its master has deleted and made the topic
// again. What is noted counts once the log has no record of the queue, and would have it refuse what the master puts.
func TestANoteOfALifeBeforeIsCorrectedBeforeTheQueuesRecordsGo(t *testing.T) {
	disk, again := memfs.New(), messages.QueueKey{Topic: "Again"}
	s := openLacking(t, disk)
	require.NoError(t, s.files.OffsetsKept(map[messages.QueueKey]messages.QueueOffset{again: 100}))
	for range 3 {
		_, err := s.Put(t.Context(), &messages.Message{Topic: again.Topic})
		require.NoError(t, err)
	}
	for _, end := s.LogRange(); end < 8*lackingSegment; _, end = s.LogRange() {
		_, err := s.Put(t.Context(), &messages.Message{Topic: "T", Body: make([]byte, 900)})
		require.NoError(t, err)
	}
	require.NoError(t, s.AwaitDispatched(t.Context()))
	require.NoError(t, s.queues.Sync())
	require.NoError(t, s.noteUnwritten(t.Context(), 3*lackingSegment))
	require.NoError(t, s.Close(t.Context()))
	for start := int64(0); start < 3*lackingSegment; start += lackingSegment {
		require.NoError(t, disk.Remove(path.Join("store/commitlog", segments.Name(start))))
	}
	s = openLacking(t, disk)
	require.EqualValues(t, 3, s.MaxOffset(again))
	require.NoError(t, s.Close(t.Context()))
}
