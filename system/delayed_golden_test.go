package system_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/golden"
)

// ofRocketMQ are options for the golden store of delayed messages: level 1 has been delivered by RocketMQ, the others wait.
func ofRocketMQ(dir string) system.Options {
	return system.Options{
		Dir: dir, Disk: vfs.New(), SegmentBytes: 262_144, ConsumeQueueFileBytes: 20_000, IndexSlots: 500, IndexEntries: 2000, WindowBytes: -1,
	}
}

// rawOf returns the records of both destinations of that store by their bodies, in queue order, each without its place in
// log and queue, which no two share.
func rawOf(t *testing.T, s *system.Store) map[string][][]byte {
	t.Helper()
	all := map[string][][]byte{}
	for _, topic := range []string{"LaterA", "LaterB"} {
		for queue := range int32(2) {
			key := messages.QueueKey{Topic: topic, QueueID: queue}
			for at, end := s.MinOffset(key), s.MaxOffset(key); at < end; {
				r, err := s.Get(t.Context(), messages.GetMessage{Queue: key, Offset: at, MaxMessages: 32})
				require.NoError(t, err)
				for _, raw := range r.Records {
					raw = bytes.Clone(raw)
					rec, _, err := record.Parse(raw, true)
					require.NoError(t, err)
					record.SetPlace(raw, 0, 0, 0)
					all[string(rec.Body)] = append(all[string(rec.Body)], raw)
				}
				at = r.NextOffset
				r.Release()
			}
		}
	}
	return all
}

// TestDeliveryGoesOnWhereRocketMQEnded: nothing that RocketMQ has delivered comes again, and everything that it has not does.
func TestDeliveryGoesOnWhereRocketMQEnded(t *testing.T) {
	dir, err := golden.Load("delay").Unpack(t.TempDir())
	require.NoError(t, err)
	fixture.Bubble(t, func(t *testing.T) {
		s, err := system.Open(ofRocketMQ(dir))
		require.NoError(t, err)
		settle()
		all := rawOf(t, s)
		waiting := map[string]bool{}
		for level := range int32(18) {
			for _, m := range stored(t, s, messages.QueueKey{Topic: messages.TopicSchedule, QueueID: level}) {
				waiting[string(m.Body)] = true
			}
		}
		require.Greater(t, len(waiting), 6)
		for body := range waiting {
			require.Len(t, all[body], 1, body)
		}
		require.NoError(t, s.Close(t.Context()))
		text, err := os.ReadFile(filepath.Join(dir, "config/delayOffset.json.bak"))
		require.NoError(t, err)
		require.Equal(t, `{"offsetTable":{1:6}}`, strings.Join(strings.Fields(string(text)), ""), "RocketMQ's own file is kept")
	})
}

// TestOurDeliveryIsRocketMQsByteForByte: without the offsets the messages of level 1 are delivered once more, by us; those
// that RocketMQ delivered lie beside them.
func TestOurDeliveryIsRocketMQsByteForByte(t *testing.T) {
	dir, err := golden.Load("delay").Unpack(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, "config/delayOffset.json")))
	fixture.Bubble(t, func(t *testing.T) {
		s, err := system.Open(ofRocketMQ(dir))
		require.NoError(t, err)
		settle()
		all := rawOf(t, s)
		level1 := stored(t, s, messages.QueueKey{Topic: messages.TopicSchedule})
		require.Len(t, level1, 6)
		for _, m := range level1 {
			both := all[string(m.Body)]
			require.Len(t, both, 2, "%s", m.Body)
			require.Equal(t, fmt.Sprintf("%x", both[0]), fmt.Sprintf("%x", both[1]))
		}
		require.NoError(t, s.Close(t.Context()))
	})
}
