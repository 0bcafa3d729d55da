package gateway_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/system/gateway/broker"
)

// sending is a send in the short form; changes are name, value pairs of its header.
func sending(topic, body string, changes ...string) *remoting.Command {
	c := req(remoting.RequestSendMessageV2, append([]string{
		"a", "pg", "b", topic, "c", "TBW102", "d", "4", "e", "0", "f", "0", "g", "1700000000000", "h", "5", "i", "KEYS\x01k\x02WAIT\x01true\x02TAGS\x01t",
		"j", "0", "k", "false", "m", "false",
	}, changes...)...)
	c.Body = []byte(body)
	return c
}

// stored reads the message that a send's answer names.
func (w *world) stored(answer *remoting.Command) messages.StoredMessage {
	w.t.Helper()
	require.Equal(w.t, remoting.ResponseSuccess, answer.Code, answer.Remark)
	_, at, err := messages.ParseOffsetMessageID(ext(answer, "msgId"))
	require.NoError(w.t, err)
	m, err := w.store.MessageAt(at)
	require.NoError(w.t, err)
	return m
}

func TestSendStoresTheMessageAsItIs(t *testing.T) {
	w := run(t)
	w.topic("T", 4)
	c := w.dial("broker")
	for i := range 3 {
		a := c.ask(sending("T", "body "+strconv.Itoa(i), "e", "2", "f", "1"))
		require.Equal(t, "2", ext(a, "queueId"))
		require.Equal(t, strconv.Itoa(i), ext(a, "queueOffset"))
		require.Equal(t, "DefaultRegion", ext(a, "MSG_REGION"))
		require.Equal(t, "true", ext(a, "TRACE_ON"))
		require.Empty(t, a.Body)
		m := w.stored(a)
		require.Equal(t, ext(a, "msgId"), m.OffsetMessageID())
		require.Equal(t, "body "+strconv.Itoa(i), string(m.Body))
		require.Equal(t, "T", m.Topic)
		require.Equal(t, int32(5), m.Flag)
		require.Equal(t, int32(1), m.SysFlag)
		require.Equal(t, int64(1700000000000), m.BornTimestampMs)
		require.Equal(t, c.sock.LocalAddr().String(), m.BornHost.String())
		require.Equal(t, "127.0.0.1:10911", m.StoreHost.String())
		require.Equal(t, map[string]string{"KEYS": "k", "TAGS": "t", "CLUSTER": "MadeUpCluster"}, m.Properties.Map(), "no WAIT")
	}
	once := sending("T", "one-way", "e", "3")
	once.Flag = remoting.FlagOneWay
	c.send(once)
	require.Equal(t, "1", ext(c.ask(sending("T", "behind", "e", "3")), "queueOffset"))
	c.silent()
	anywhere := c.ask(sending("T", "x", "e", "-1"))
	require.Equal(t, strconv.Itoa(int(w.stored(anywhere).QueueID)), ext(anywhere, "queueId"))
}

func TestSendChecksInOrder(t *testing.T) {
	w := run(t, func(c *gateway.Config) { c.Broker.Policy.RejectHalf = true })
	w.topic("T", 2)
	c := w.dial("broker")
	for name, x := range map[string]struct {
		request *remoting.Command
		code    int
		remark  string
	}{
		"blank":              {sending("", "b"), remoting.ResponseSystemError, "The specified topic is blank."},
		"illegal characters": {sending("a b", "b"), remoting.ResponseSystemError, "illegal characters"},
		"too long":           {sending(strings.Repeat("x", 128), "b"), remoting.ResponseSystemError, "longer than topic max length"},
		"forbidden":          {sending("SELF_TEST_TOPIC", "b"), remoting.ResponseNoPermission, "Sending message to topic[SELF_TEST_TOPIC] is forbidden."},
		"no template": {sending("New", "b", "c", "T"), remoting.ResponseTopicNotExist,
			"topic[New] not exist, apply first please!\nSee http"},
		"queue":     {sending("T", "b", "e", "2"), remoting.ResponseSystemError, "request queueId[2] is illegal"},
		"half":      {sending("T", "b", "i", "TRAN_MSG\x01true"), remoting.ResponseNoPermission, "transaction message is forbidden"},
		"number":    {sending("T", "b", "e", "zwei"), remoting.ResponseSystemError, `ext field "e"`},
		"delay":     {sending("T", "b", "i", "DELAY\x01soon"), remoting.ResponseMessageIllegal, "DELAY"},
		"too large": {sending("T", strings.Repeat("b", 4<<20+1)), remoting.ResponseMessageIllegal, "the message is illegal"},
		"properties too long": {sending("T", "b", "i", "p\x01"+strings.Repeat("x", 32768)), remoting.ResponseMessageIllegal,
			"the message is illegal"},
		"batch, too long a topic": {sending(strings.Repeat("x", 128), "b", "m", "true"), remoting.ResponseMessageIllegal, "topic length"},
		"batch of retries": {sending("%RETRY%g", "b", "m", "true"), remoting.ResponseMessageIllegal,
			"batch request does not support retry group %RETRY%g"},
		"batch of nonsense": {sending("T", "nonsense", "m", "true"), remoting.ResponseMessageIllegal, "the message is illegal"},
	} {
		t.Run(name, func(t *testing.T) {
			a := c.ask(x.request)
			require.Equal(t, x.code, a.Code, a.Remark)
			require.Contains(t, a.Remark, x.remark)
			require.Equal(t, "DefaultRegion", ext(a, "MSG_REGION"), "on errors too")
			require.Equal(t, "true", ext(a, "TRACE_ON"))
		})
	}
	missing := req(remoting.RequestSendMessage, "topic", "T")
	require.Contains(t, c.ask(missing).Remark, `"producerGroup" is missing`)
	require.Equal(t, "0", ext(c.ask(sending("T", "still works")), "queueOffset"))
	_, end := w.store.LogRange()
	require.Less(t, int64(end), int64(400), "nothing else was stored")
}

func TestSendMakesTopics(t *testing.T) {
	w := run(t)
	c, names := w.dial("broker"), w.dial("namesrv")
	require.Equal(t, remoting.ResponseTopicNotExist, names.ask(req(remoting.RequestGetRouteInfoByTopic, "topic", "Fresh")).Code)
	w.stored(c.ask(sending("Fresh", "b", "d", "3")))
	var route remoting.TopicRouteData
	require.NoError(t, names.ask(req(remoting.RequestGetRouteInfoByTopic, "topic", "Fresh")).DecodeBody(&route), "at once")
	require.Equal(t, []remoting.QueueData{{BrokerName: "broker-a", Perm: 6, ReadQueueNums: 3, WriteQueueNums: 3}}, route.QueueDatas)
	w.stored(c.ask(sending("Clipped", "b", "d", "100")))
	topic, _ := w.node.Broker().Topics.Lookup("Clipped")
	require.Equal(t, 8, topic.WriteQueueNums, "not more than the template has")
}

func TestSendOfAnAbsentTopicWithoutAutoCreation(t *testing.T) {
	w := run(t, func(c *gateway.Config) { c.NoAutoCreateTopic = true })
	c := w.dial("broker")
	require.Equal(t, remoting.ResponseTopicNotExist, c.ask(sending("Fresh", "b")).Code)
	w.stored(c.ask(sending("%RETRY%g", "b")))
	topic, ok := w.node.Broker().Topics.Lookup("%RETRY%g")
	require.True(t, ok, "retry topics are made all the same")
	require.Equal(t, 1, topic.WriteQueueNums)
}

func TestBrokerWithoutWritePermission(t *testing.T) {
	w := run(t, func(c *gateway.Config) { c.Broker.Policy.Perm = metadata.PermRead })
	w.topic("T", 1)
	w.topic("Ordered", 1)
	require.NoError(t, w.node.Broker().Topics.ApplyOrder(t.Context(), []string{"Ordered"}))
	c := w.dial("broker")
	refused := c.ask(sending("Ordered", "b"))
	require.Equal(t, remoting.ResponseNoPermission, refused.Code)
	require.Equal(t, "the broker[127.0.0.1] sending message is forbidden", refused.Remark)
	require.Equal(t, remoting.ResponseSuccess, c.ask(sending("T", "b")).Code, "protected by the route only")
	var route remoting.TopicRouteData
	require.NoError(t, w.dial("namesrv").ask(req(remoting.RequestGetRouteInfoByTopic, "topic", "T")).DecodeBody(&route))
	require.Equal(t, int32(metadata.PermRead), route.QueueDatas[0].Perm)
}

// Each id of a batch names its own message, whatever the members' sizes and the envelope's properties are.
func TestBatch(t *testing.T) {
	w := run(t)
	w.topic("T", 2)
	c := w.dial("broker")
	var list []messages.Message
	for i := range 20 {
		list = append(list, messages.Message{
			Flag: int32(i), Body: []byte(strings.Repeat("x", i*7)),
			Properties: messages.PropertiesOf(map[string]string{"KEYS": fmt.Sprint("k", i), "pad": strings.Repeat("p", i)}),
		})
	}
	body, err := record.EncodeBatchBody(nil, list)
	require.NoError(t, err)
	a := c.ask(func() *remoting.Command {
		s := sending("T", string(body), "e", "1", "m", "true", "i", "WAIT\x01true\x02outer\x01o")
		s.Code = remoting.RequestSendBatchMessage
		return s
	}())
	require.Equal(t, remoting.ResponseSuccess, a.Code, a.Remark)
	require.Equal(t, "0", ext(a, "queueOffset"))
	ids := strings.Split(ext(a, "msgId"), ",")
	require.Len(t, ids, len(list))
	for i, id := range ids {
		_, at, err := messages.ParseOffsetMessageID(id)
		require.NoError(t, err)
		m, err := w.store.MessageAt(at)
		require.NoError(t, err, "id %d", i)
		require.Equal(t, messages.QueueOffset(i), m.QueueOffset)
		require.Equal(t, list[i].Flag, m.Flag)
		require.Equal(t, string(list[i].Body), string(m.Body))
		props := m.Properties.Map()
		require.Equal(t, fmt.Sprint("k", i), props["KEYS"])
		require.Equal(t, "o", props["outer"])
		require.Equal(t, "MadeUpCluster", props["CLUSTER"])
		require.NotContains(t, props, "WAIT")
	}
}

func TestHalfMessageWaitsInItsTopic(t *testing.T) {
	w := run(t)
	w.topic("T", 2)
	a := w.dial("broker").ask(sending("T", "half", "e", "1", "f", "4", "i", "TRAN_MSG\x01true\x02PGROUP\x01pg\x02DELAY\x012"))
	m := w.stored(a)
	require.Equal(t, messages.TopicTransactionHalf, m.Topic)
	require.Zero(t, m.QueueID)
	require.Zero(t, m.SysFlag)
	require.Equal(t, map[string]string{
		"TRAN_MSG": "true", "PGROUP": "pg", "CLUSTER": "MadeUpCluster", "REAL_TOPIC": "T", "REAL_QID": "1",
	}, m.Properties.Map())
	require.Equal(t, "0", ext(a, "queueOffset"), "in the half queue: producers derive the transaction's place from it")
	require.Equal(t, "1", ext(a, "queueId"))
}

// A message whose retries are used up goes to the dead letters at once; the others wait in the schedule topic.
func TestSendBack(t *testing.T) {
	w := run(t)
	w.topic("T", 1)
	c := w.dial("broker")
	first := w.stored(c.ask(sending("T", "again")))
	back := func(m messages.StoredMessage, changes ...string) *remoting.Command {
		return req(remoting.RequestConsumerSendMsgBack, append([]string{
			"offset", strconv.FormatInt(int64(m.PhysicalOffset), 10), "group", "g", "delayLevel", "0", "originTopic", m.Topic,
			"maxReconsumeTimes", "2",
		}, changes...)...)
	}
	_, from := w.store.LogRange()
	require.Equal(t, remoting.ResponseSuccess, c.ask(back(first)).Code)
	second, err := w.store.MessageAt(from)
	require.NoError(t, err)
	require.Equal(t, messages.TopicSchedule, second.Topic)
	require.Equal(t, int32(2), second.QueueID, "level 3 is the first retry's")
	require.Equal(t, int32(1), second.ReconsumeTimes)
	require.Equal(t, "again", string(second.Body))
	require.Equal(t, first.BornTimestampMs, second.BornTimestampMs)
	require.Equal(t, map[string]string{
		"KEYS": "k", "TAGS": "t", "CLUSTER": "MadeUpCluster", "WAIT": "false", "DELAY": "3", "RETRY_TOPIC": "T",
		"ORIGIN_MESSAGE_ID": first.OffsetMessageID(), "REAL_TOPIC": "%RETRY%g", "REAL_QID": "0",
	}, second.Properties.Map())

	_, from = w.store.LogRange()
	require.Equal(t, remoting.ResponseSuccess, c.ask(back(second, "delayLevel", "5")).Code)
	third, err := w.store.MessageAt(from)
	require.NoError(t, err)
	require.Equal(t, int32(4), third.QueueID)
	require.Equal(t, int32(2), third.ReconsumeTimes)

	for _, how := range []*remoting.Command{back(third), back(first, "delayLevel", "-1")} {
		_, from = w.store.LogRange()
		require.Equal(t, remoting.ResponseSuccess, c.ask(how).Code)
		dead, err := w.store.MessageAt(from)
		require.NoError(t, err)
		require.Equal(t, "%DLQ%g", dead.Topic)
		require.Equal(t, "T", dead.Properties.Map()["RETRY_TOPIC"])
		require.Equal(t, first.OffsetMessageID(), dead.Properties.Map()["ORIGIN_MESSAGE_ID"])
		require.Equal(t, "0", dead.Properties.Map()["DELAY"])
	}
	for name, retry := range map[string]int{"%RETRY%g": 1, "%DLQ%g": 1} {
		topic, ok := w.node.Broker().Topics.Lookup(name)
		require.True(t, ok, name)
		require.Equal(t, retry, topic.ReadQueueNums)
		require.Equal(t, 6, topic.Perm)
	}
}

// L80: the Go client takes an error for success and would lose the message: its connection is closed instead.
func TestSendBackThatFails(t *testing.T) {
	w := run(t, func(c *gateway.Config) { c.NoAutoCreateGroup = true })
	back := func(group string, language remoting.Language) *remoting.Command {
		r := req(remoting.RequestConsumerSendMsgBack, "offset", "4711", "group", group, "delayLevel", "0")
		r.Language = language
		return r
	}
	c := w.dial("broker")
	require.Equal(t, remoting.ResponseSubscriptionGroupNotExist, c.ask(back("none", remoting.LanguageJava)).Code)
	a := c.ask(back("TOOLS_CONSUMER", remoting.LanguageJava))
	require.Equal(t, remoting.ResponseSystemError, a.Code)
	require.Contains(t, a.Remark, "look message by offset failed, 4711")
	c.send(back("TOOLS_CONSUMER", remoting.LanguageGo))
	c.gone()
}

// TestAGroupWithABadNameDoesNotExist: it can't be made, so it is not there (spec/remoting.md §9.2, §10.1).
func TestAGroupWithABadNameDoesNotExist(t *testing.T) {
	w := run(t)
	w.topic("T", 1)
	c := w.dial("broker")
	for _, name := range []string{"a b", strings.Repeat("x", messages.MaxGroupBytes+1)} {
		back := req(remoting.RequestConsumerSendMsgBack, "offset", "0", "group", name, "delayLevel", "0")
		for _, r := range []*remoting.Command{pulling("T", 0, "consumerGroup", name), back} {
			a := c.ask(r)
			require.Equal(t, remoting.ResponseSubscriptionGroupNotExist, a.Code, a.Remark)
		}
	}
}

func TestSendToARetryTopic(t *testing.T) {
	w := run(t)
	c := w.dial("broker")
	again := func(times string, changes ...string) messages.StoredMessage {
		return w.stored(c.ask(sending("%RETRY%g", "x", append([]string{"j", times, "i", "DELAY\x013\x02RETRY_TOPIC\x01T"}, changes...)...)))
	}
	require.Equal(t, messages.TopicSchedule, again("1", "l", "3").Topic)
	dead := again("3", "l", "3")
	require.Equal(t, "%DLQ%g", dead.Topic, "at once, whatever its delay was")
	require.Equal(t, "0", dead.Properties.Map()["DELAY"])
	require.Equal(t, messages.TopicSchedule, again("15").Topic)
	require.Equal(t, "%DLQ%g", again("16").Topic, "the group's own limit")
}

// TestALimitOfATopicRefusesWhatIsMore: with SERVICE_NOT_AVAILABLE, on which clients of 4.x try again, and the reason; each message of a batch counts, and the limit can be
// taken back while the node runs.
func TestALimitOfATopicRefusesWhatIsMore(t *testing.T) {
	w := run(t)
	w.topic("T", 2)
	w.topic("free", 2)
	limits, err := broker.ParseLimits("T=3")
	require.NoError(t, err)
	policy := *w.node.Broker().Policy()
	policy.Limits = limits
	w.node.Broker().SetPolicy(policy)
	body, err := record.EncodeBatchBody(nil, []messages.Message{{Body: []byte("a")}, {Body: []byte("b")}, {Body: []byte("c")}})
	require.NoError(t, err)
	batch := sending("T", string(body), "e", "1", "m", "true")
	batch.Code = remoting.RequestSendBatchMessage
	c := w.dial("broker")
	require.Equal(t, remoting.ResponseSuccess, c.ask(batch).Code)
	a := c.ask(sending("T", "b", "e", "1"))
	require.Equal(t, remoting.ResponseServiceNotAvailable, a.Code)
	require.Contains(t, a.Remark, "[TOPIC_LIMIT]")
	require.Contains(t, a.Remark, "T takes 3 messages a second")
	require.EqualValues(t, 1, w.node.Broker().Limited.Messages.Load())
	require.Zero(t, w.node.Broker().Limited.Bytes.Load())
	require.Equal(t, remoting.ResponseSuccess, c.ask(sending("free", "b", "e", "1")).Code)
	policy.Limits, err = broker.ParseLimits("*=,10")
	require.NoError(t, err)
	w.node.Broker().SetPolicy(policy)
	require.Equal(t, remoting.ResponseSuccess, c.ask(sending("T", "twelve bytes", "e", "1")).Code, "nothing had passed")
	a = c.ask(sending("T", "twelve bytes", "e", "1"))
	require.Equal(t, remoting.ResponseServiceNotAvailable, a.Code)
	require.Contains(t, a.Remark, "T takes 10 bytes a second")
	require.EqualValues(t, 1, w.node.Broker().Limited.Bytes.Load())
	policy.Limits = nil
	w.node.Broker().SetPolicy(policy)
	require.Equal(t, remoting.ResponseSuccess, c.ask(sending("T", "b", "e", "1")).Code)
	policy.Limits, err = broker.ParseLimits("T=,,6")
	require.NoError(t, err)
	w.node.Broker().SetPolicy(policy)
	require.NoError(t, w.node.Broker().Store.AwaitDispatched(t.Context()))
	require.Equal(t, remoting.ResponseSuccess, c.ask(sending("T", "b", "e", "0")).Code, "the sixth")
	require.NoError(t, w.node.Broker().Store.AwaitDispatched(t.Context()))
	a = c.ask(sending("T", "b", "e", "1"))
	require.Equal(t, remoting.ResponseServiceNotAvailable, a.Code)
	require.Contains(t, a.Remark, "T keeps 6 messages")
	require.EqualValues(t, 1, w.node.Broker().Limited.Kept.Load())
}
