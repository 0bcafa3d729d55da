package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
)

// Faults that users of such brokers have met: docs/FIELD-REPORTS.md.

// L28: a message is found by its unique id although the client's clock, of which the window is made, is up to ten seconds off.
func TestL28AMessageIsFoundByItsIDInSpiteOfSkew(t *testing.T) {
	w := run(t)
	w.topic("T", 1)
	before := time.Now().UnixMilli()
	w.fill("T", 1, "i", "UNIQ_KEY\x01U\x02KEYS\x01U")
	after := time.Now().UnixMilli()
	c := w.dial("broker")
	query := func(begin, end int64, more ...string) *remoting.Command {
		return c.ask(req(remoting.RequestQueryMessage, append([]string{
			"topic", "T", "key", "U", "maxNum", "2", "beginTimestamp", fmt.Sprint(begin), "endTimestamp", fmt.Sprint(end),
		}, more...)...))
	}
	const forever = 1<<63 - 1
	for _, window := range [][2]int64{{after + 9_000, forever}, {after + 9_000, after + 10_000}, {0, before - 9_000}, {-1 << 63, forever}} {
		require.Len(t, bodies(t, query(window[0], window[1], "_UNIQUE_KEY_QUERY", "true")), 1, "%v", window)
	}
	for _, window := range [][2]int64{{after + 9_000, forever}, {0, before - 9_000}} {
		require.Equal(t, remoting.ResponseQueryNotFound, query(window[0], window[1]).Code, "other keys keep to their window")
	}
}

// L24, W24: no request that reads makes a topic or a queue.
func TestL24RequestsThatReadMakeNothing(t *testing.T) {
	w := run(t)
	w.topic("T", 1)
	w.fill("T", 1)
	c := w.dial("broker")
	topics := w.node.Broker().Topics.Len()
	for _, code := range []int{
		remoting.RequestPullMessage, remoting.RequestQueryMessage, remoting.RequestQueryConsumerOffset, remoting.RequestSearchOffsetByTimestamp,
		remoting.RequestGetMaxOffset, remoting.RequestGetMinOffset, remoting.RequestGetEarliestMsgStoreTime, remoting.RequestGetTopicStatsInfo,
		remoting.RequestGetConsumeStats, remoting.RequestQueryTopicConsumeByWho, remoting.RequestQueryConsumeTimeSpan,
		remoting.RequestQueryCorrectionOffset, remoting.RequestQueryConsumeQueue, remoting.RequestViewBrokerStatsData,
		remoting.RequestGetRouteInfoByTopic,
	} {
		for _, queue := range []string{"0", "7"} {
			for _, topic := range []string{"GhostTopic", "T"} {
				if topic == "T" && queue == "0" {
					continue
				}
				c.ask(req(code, "topic", topic, "queueId", queue, "queueOffset", "3", "offset", "3", "timestamp", "1", "key", "k", "maxNum", "1",
					"beginTimestamp", "0", "endTimestamp", "1", "consumerGroup", "g", "group", "g", "compareGroup", "g", "index", "0", "count", "1",
					"maxMsgNums", "1", "sysFlag", "6", "commitOffset", "0", "suspendTimeoutMillis", "5", "subscription", "*", "subVersion", "0",
					"statsName", "TOPIC_PUT_NUMS", "statsKey", topic, "filterGroups", "g"))
			}
		}
	}
	require.Equal(t, topics, w.node.Broker().Topics.Len())
	w.store.EachQueue(func(key messages.QueueKey, _, _ messages.QueueOffset) {
		require.Equal(t, messages.QueueKey{Topic: "T"}, key)
	})
}
