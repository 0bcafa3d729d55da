package system_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/testkit/memfs"
)

// TestACopyOfAMessageDoesNotSpread: who sends a message again sends its properties too, its offsets in further queues among them. They are the first
// message's, also where the store does without further queues but has had them: each start builds them again.
func TestACopyOfAMessageDoesNotSpread(t *testing.T) {
	disk := memfs.New()
	opt := light(disk)
	s := openIn(t, opt)
	for i := range 3 {
		put(t, s, further(fmt.Sprint("f", i), "%LMQ%a,B"))
	}
	closeIn(t, s)

	opt.MultiDispatch, opt.LightTopics = false, false
	s = openIn(t, opt)
	key := messages.QueueKey{Topic: "B", QueueID: 2}
	want := []string{"f0", "f1", "f2"}
	for i := range 5 {
		body := fmt.Sprint("own", i)
		put(t, s, message(key.Topic, key.QueueID, body))
		want = append(want, body)
	}
	for i := range 2 {
		m := message("Copy", 2, "copy")
		first, err := s.MessageAt(0)
		require.NoError(t, err)
		m.Properties = first.Properties.With(messages.PropertyMultiQueueOffset, fmt.Sprintf("%d,%d", i+1, i+1))
		put(t, s, m)
	}
	require.NoError(t, s.AwaitDispatched(t.Context()))
	require.Equal(t, want, read(t, s, key, 0, len(want)))
	killed := disk.Clone()
	closeIn(t, s)
	opt.Disk = killed
	s = openIn(t, opt)
	require.EqualValues(t, len(want), s.MaxOffset(key))
	require.Equal(t, want, read(t, s, key, 0, len(want)))
	closeIn(t, s)
}
