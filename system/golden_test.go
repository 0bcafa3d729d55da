package system_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/golden"
)

// In a queue whose units have addresses in an extension file in the place of tags codes, nothing that a filter wants is left out: the
// extension is not read, so what it stands for is handed out, and the client filters as it always does. After a rebuild of the queue
// the tags codes are there.
func TestQueuesWithAnExtensionAreRead(t *testing.T) {
	dir, err := golden.Load("cq-ext").Unpack(t.TempDir())
	require.NoError(t, err)
	opt := ofRocketMQ(dir)
	s := open(t, opt)
	none := func(int64) bool { return false }
	queues, all := 0, 0
	s.EachQueue(func(key messages.QueueKey, first, end messages.QueueOffset) {
		queues++
		for at := first; at < end; {
			r, err := s.Get(t.Context(), messages.GetMessage{Queue: key, Offset: at, MaxMessages: 32, Tags: none})
			require.NoError(t, err)
			require.Equal(t, messages.Found, r.Status)
			all += len(r.Records)
			at = r.NextOffset
			r.Release()
		}
	})
	require.Positive(t, queues)
	require.Equal(t, 60, all)
	var some messages.QueueKey
	s.EachQueue(func(key messages.QueueKey, _, _ messages.QueueOffset) { some = key })
	m := message(some.Topic, some.QueueID, "ours")
	m.Properties = messages.PropertiesOf(map[string]string{messages.PropertyTags: "our tag"})
	r, err := s.Put(t.Context(), m)
	require.NoError(t, err)
	require.NoError(t, s.AwaitDispatched(t.Context()))
	got, err := s.Get(t.Context(), messages.GetMessage{Queue: some, Offset: r.QueueOffset, MaxMessages: 1, Tags: none})
	require.NoError(t, err)
	require.Equal(t, messages.NoMatchedMessage, got.Status, "ours has its tags code")
	got.Release()
}

// TestTagsCodesInAnExtension: with enableConsumeQueueExt they are looked up, those that RocketMQ has written and ours, through stops and kills.
func TestTagsCodesInAnExtension(t *testing.T) {
	dir, err := golden.Load("cq-ext").Unpack(t.TempDir())
	require.NoError(t, err)
	opt := ofRocketMQ(dir)
	opt.ConsumeQueueExt, opt.ConsumeQueueExtBytes = true, 64<<10
	none := func(int64) bool { return false }
	key := messages.QueueKey{Topic: "ExtA"}
	tagged := func(tag string) *messages.Message {
		m := message(key.Topic, key.QueueID, "ours")
		m.Properties = messages.PropertiesOf(map[string]string{messages.PropertyTags: tag})
		return m
	}
	for round := range 4 {
		s := openIn(t, opt)
		r, err := s.Get(t.Context(), messages.GetMessage{Queue: key, MaxMessages: 32, Tags: none})
		require.NoError(t, err)
		require.Equal(t, messages.NoMatchedMessage, r.Status, "every address is resolved")
		r.Release()
		first := s.MaxOffset(key)
		tag := fmt.Sprint("tag", round)
		putAll(t, s, tagged("another"), tagged(tag))
		require.NoError(t, s.AwaitDispatched(t.Context()))
		want := int64(messages.JavaHash(tag))
		r, err = s.Get(t.Context(), messages.GetMessage{
			Queue: key, MaxMessages: 32, Tags: func(code int64) bool { return code == want },
		})
		require.NoError(t, err)
		require.Len(t, r.Records, 1)
		require.Equal(t, first+2, r.NextOffset)
		r.Release()
		require.NoError(t, s.Close(t.Context()))
		u, err := os.ReadFile(filepath.Join(dir, "consumequeue", "ExtA", "0", segments.Name(0)))
		require.NoError(t, err)
		last := consumequeue.DecodeUnit(u[(first+1)*consumequeue.UnitBytes:])
		require.Less(t, last.TagsCode, int64(math.MinInt32))
	}
}

// TestLightQueuesOfRocketMQGoOn: with enableMultiDispatch they are judged, built again when they are missing, and grow.
func TestLightQueuesOfRocketMQGoOn(t *testing.T) {
	dir, err := golden.Load("lmq").Unpack(t.TempDir())
	require.NoError(t, err)
	opt := ofRocketMQ(dir)
	opt.MultiDispatch = true
	s := openIn(t, opt)
	ends := map[messages.QueueKey]messages.QueueOffset{}
	s.EachQueue(func(key messages.QueueKey, _, end messages.QueueOffset) { ends[key] = end })
	var light string
	for key := range ends {
		if strings.HasPrefix(key.Topic, messages.LMQTopicPrefix) {
			light = key.Topic
		}
	}
	require.NotEmpty(t, light)
	put(t, s, further("ours", light))
	key := messages.QueueKey{Topic: light}
	require.Equal(t, []string{"ours"}, read(t, s, key, ends[key], 1))
	require.NoError(t, s.Close(t.Context()))
	require.NoError(t, removeAll(vfs.New(), filepath.Join(dir, "consumequeue", light)))
	s = openIn(t, opt)
	defer s.Close(t.Context())
	require.Equal(t, ends[key]+1, s.MaxOffset(key))
	s.EachQueue(func(other messages.QueueKey, _, end messages.QueueOffset) {
		if other != key && other.Topic != "T" {
			require.Equal(t, ends[other], end, "%v", other)
		}
	})
}

// Light queues that RocketMQ has written can be read, are left alone, and the log goes on beside them.
func TestLightQueuesOfRocketMQAreLeftAlone(t *testing.T) {
	dir, err := golden.Load("lmq").Unpack(t.TempDir())
	require.NoError(t, err)
	opt := ofRocketMQ(dir)
	for range 2 {
		s := openIn(t, opt)
		light := 0
		s.EachQueue(func(key messages.QueueKey, first, end messages.QueueOffset) {
			if len(key.Topic) < 5 || key.Topic[:5] != messages.LMQTopicPrefix {
				return
			}
			for at := first; at < end; at++ {
				r, err := s.Get(t.Context(), messages.GetMessage{Queue: key, Offset: at, MaxMessages: 1})
				require.NoError(t, err)
				require.Equal(t, messages.Found, r.Status)
				_, _, err = record.Parse(r.Records[0], true)
				require.NoError(t, err)
				r.Release()
				light++
			}
		})
		require.Positive(t, light)
		putAll(t, s, message("T", 0, "beside"))
		require.NoError(t, s.Close(t.Context()))
	}
}
