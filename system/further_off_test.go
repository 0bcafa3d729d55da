package system_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/testkit/memfs"
)

// TestACopyOfAMessageDoesNotSpread: who sends a message again sends its properties too, its offsets in further queues among them. They are the first
// message's, also where the store does without further queues but has had them: each start builds them again. So does the first one of a store that has
// never had any and is given them.
func TestACopyOfAMessageDoesNotSpread(t *testing.T) {
	for _, had := range []bool{false, true} {
		for _, with := range []bool{false, true} {
			for _, batch := range []bool{false, true} {
				if with && !batch {
					continue // it goes to the further queues, and gets offsets there
				}
				copyAndKill(t, had, with, batch)
			}
		}
	}
}

func copyAndKill(t *testing.T, had, with, batch bool) {
	disk := memfs.New()
	opt := light(disk)
	var want []string
	if had {
		s := openIn(t, opt)
		for i := range 3 {
			body := fmt.Sprint("f", i)
			put(t, s, further(body, "%LMQ%a,B"))
			want = append(want, body)
		}
		closeIn(t, s)
	}

	opt.MultiDispatch, opt.LightTopics = with, with
	s := openIn(t, opt)
	key := messages.QueueKey{Topic: "B", QueueID: 2}
	for i := range 5 {
		body := fmt.Sprint("own", i)
		put(t, s, message(key.Topic, key.QueueID, body))
		want = append(want, body)
	}
	var copies []messages.Message
	for i := range 2 {
		m := message("Copy", 2, "copy")
		m.Properties = further("", "%LMQ%a,B").Properties.With(messages.PropertyMultiQueueOffset, fmt.Sprintf("%d,%d", i+1, i+1))
		copies = append(copies, *m)
	}
	if batch {
		body, err := record.EncodeBatchBody(nil, copies)
		require.NoError(t, err)
		_, err = s.PutBatch(t.Context(), message("Copy", 2, string(body)))
		require.NoError(t, err)
	} else {
		put(t, s, &copies[0])
		put(t, s, &copies[1])
	}
	require.NoError(t, s.AwaitDispatched(t.Context()))
	require.Equal(t, want, read(t, s, key, 0, len(want)))
	require.Equal(t, []string{"copy", "copy"}, read(t, s, messages.QueueKey{Topic: "Copy", QueueID: 2}, 0, 2))
	killed := disk.Clone()
	closeIn(t, s)
	opt.Disk, opt.MultiDispatch, opt.LightTopics = killed, true, true
	s = openIn(t, opt)
	require.EqualValues(t, len(want), s.MaxOffset(key), "had %v, with %v, batch %v", had, with, batch)
	require.Equal(t, want, read(t, s, key, 0, len(want)))
	closeIn(t, s)
}
