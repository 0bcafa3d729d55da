package gateway_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/record"
)

// sendingBack is a send-back of a stored message.
func sendingBack(m messages.StoredMessage, level int) *remoting.Command {
	return req(remoting.RequestConsumerSendMsgBack, "offset", strconv.FormatInt(int64(m.PhysicalOffset), 10), "group", "g",
		"delayLevel", strconv.Itoa(level), "originTopic", m.Topic, "maxReconsumeTimes", "16")
}

func TestWhatIsSentBackComesToTheRetryTopic(t *testing.T) {
	w := run(t)
	w.topic("T", 1)
	c := w.dial("broker")
	first := w.stored(c.ask(sending("T", "again")))
	require.Equal(t, remoting.ResponseSuccess, c.ask(sendingBack(first, 1)).Code)
	retry := messages.QueueKey{Topic: "%RETRY%g"}
	w.eventually(func() bool { return w.store.MaxOffset(retry) == 1 }) // a second
	second := w.at(retry, 0)
	require.Equal(t, "again", string(second.Body))
	require.Equal(t, int32(1), second.ReconsumeTimes)
	require.GreaterOrEqual(t, second.StoreTimestampMs, first.StoreTimestampMs+1000)
	require.Equal(t, map[string]string{ // as RocketMQ stores them
		"KEYS": "k", "TAGS": "t", "CLUSTER": "MadeUpCluster", "WAIT": "false", "DELAY": "1", "RETRY_TOPIC": "T",
		"ORIGIN_MESSAGE_ID": first.OffsetMessageID(), "REAL_TOPIC": "%RETRY%g", "REAL_QID": "0",
	}, second.Properties.Map())
	require.Equal(t, remoting.ResponseSuccess, c.ask(sendingBack(second, -1)).Code)
	dead := messages.QueueKey{Topic: "%DLQ%g"}
	w.eventually(func() bool { return w.store.MaxOffset(dead) == 1 }) // at once: L58
	require.Equal(t, "0", w.at(dead, 0).Properties.Map()["DELAY"])
	require.Equal(t, int32(2), w.at(dead, 0).ReconsumeTimes)
}

// at reads one message of a queue.
func (w *world) at(key messages.QueueKey, at messages.QueueOffset) messages.StoredMessage {
	w.t.Helper()
	r, err := w.store.Get(w.t.Context(), messages.GetMessage{Queue: key, Offset: at, MaxMessages: 1})
	require.NoError(w.t, err)
	defer r.Release()
	require.Len(w.t, r.Records, 1)
	list, err := record.DecodeAll(r.Records[0])
	require.NoError(w.t, err)
	return list[0]
}

// TestAMessageWithoutRoomForARetrysPropertiesIsNotStuck: L03. It is retried while there is room, a dead letter when there is
// none, and never refused.
func TestAMessageWithoutRoomForARetrysPropertiesIsNotStuck(t *testing.T) {
	w := run(t)
	w.topic("T", 1)
	c := w.dial("broker")
	dead := 0
	for size := messages.MaxPropertiesBytes - 400; size <= messages.MaxPropertiesBytes; size += 8 {
		cluster := len("\x02CLUSTER\x01MadeUpCluster")
		text := "TAGS\x01t\x02p\x01"
		text += strings.Repeat("x", size-cluster-len(text))
		m := w.stored(c.ask(sending("T", strconv.Itoa(size), "i", text)))
		require.Len(t, m.Properties, size)
		require.Equal(t, remoting.ResponseSuccess, c.ask(sendingBack(m, 18)).Code, "%d bytes", size)
		_, end := w.store.LogRange()
		copied, err := w.store.MessageAt(m.PhysicalOffset + messages.PhysicalOffset(m.StoreSize))
		require.NoError(t, err)
		require.Equal(t, end, copied.PhysicalOffset+messages.PhysicalOffset(copied.StoreSize))
		require.Equal(t, m.Body, copied.Body)
		require.Equal(t, m.Properties.Map()["p"], copied.Properties.Map()["p"])
		if copied.Topic == "%DLQ%g" {
			dead++
		} else {
			require.Equal(t, messages.TopicSchedule, copied.Topic)
			require.Zero(t, dead, "dead letters are the largest only")
		}
	}
	require.Greater(t, dead, 5)
	require.Less(t, dead, 40)
}
