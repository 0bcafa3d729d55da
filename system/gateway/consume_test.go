package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// pulling is a pull with the subscription in the request; changes are name, value pairs.
func pulling(topic string, at int, changes ...string) *remoting.Command {
	return req(remoting.RequestPullMessage, append([]string{
		"consumerGroup", "g", "topic", topic, "queueId", "0", "queueOffset", strconv.Itoa(at), "maxMsgNums", "32", "sysFlag", "4",
		"commitOffset", "0", "suspendTimeoutMillis", "20000", "subscription", "*", "subVersion", "0", "expressionType", "TAG",
	}, changes...)...)
}

// beating is a heartbeat of a consumer of one topic.
func beating(id, group, topic string, version int64, change ...func(*remoting.ConsumerData)) *remoting.Command {
	d := remoting.ConsumerData{
		ConsumeFromWhere: "CONSUME_FROM_FIRST_OFFSET", ConsumeType: messages.ConsumePassively, GroupName: group,
		MessageModel: messages.Clustering, SubscriptionDataSet: []remoting.SubscriptionData{
			{ExpressionType: "TAG", SubString: "*", SubVersion: version, Topic: topic},
		},
	}
	for _, f := range change {
		f(&d)
	}
	c := req(remoting.RequestHeartbeat)
	c.Body, _ = json.Marshal(remoting.HeartbeatData{ClientID: id, ConsumerDataSet: []remoting.ConsumerData{d}})
	return c
}

// fill sends n messages to queue 0 of a topic and waits until they can be pulled.
func (w *world) fill(topic string, n int, changes ...string) {
	w.t.Helper()
	c := w.dial("broker")
	for i := range n {
		s := sending(topic, fmt.Sprint("m", i), changes...)
		a := c.ask(s)
		if i == n-1 {
			w.settle(a)
		}
	}
}

func bodies(t *testing.T, a *remoting.Command) []string {
	t.Helper()
	list, err := record.DecodeAll(a.Body)
	require.NoError(t, err)
	var texts []string
	for _, m := range list {
		texts = append(texts, string(m.Body))
	}
	return texts
}

func TestPull(t *testing.T) {
	w := run(t)
	w.topic("T", 1)
	w.fill("T", 5)
	c := w.dial("broker")
	a := c.ask(pulling("T", 1, "maxMsgNums", "3"))
	require.Equal(t, remoting.ResponseSuccess, a.Code, a.Remark)
	require.Equal(t, "FOUND", a.Remark)
	require.Equal(t, []string{"m1", "m2", "m3"}, bodies(t, a))
	require.Equal(t, "4", ext(a, "nextBeginOffset"))
	require.Equal(t, "0", ext(a, "minOffset"))
	require.Equal(t, "5", ext(a, "maxOffset"))
	require.Equal(t, "0", ext(a, "suggestWhichBrokerId"))

	for name, x := range map[string]struct {
		request *remoting.Command
		code    int
		remark  string
		next    string
	}{
		"at the end":   {pulling("T", 5), remoting.ResponsePullNotFound, "OFFSET_OVERFLOW_ONE", "5"},
		"far behind":   {pulling("T", 999), remoting.ResponsePullOffsetMoved, "OFFSET_OVERFLOW_BADLY", "5"},
		"negative":     {pulling("T", -1), remoting.ResponsePullOffsetMoved, "OFFSET_TOO_SMALL", "0"},
		"another tag":  {pulling("T", 0, "subscription", "other"), remoting.ResponsePullRetryImmediately, "NO_MATCHED_MESSAGE", "5"},
		"one of tags":  {pulling("T", 4, "subscription", "other || t"), remoting.ResponseSuccess, "FOUND", "5"},
		"empty queue":  {pulling("SELF_TEST_TOPIC", 0), remoting.ResponsePullNotFound, "NO_MESSAGE_IN_QUEUE", "0"},
		"empty, ahead": {pulling("SELF_TEST_TOPIC", 7), remoting.ResponsePullOffsetMoved, "NO_MESSAGE_IN_QUEUE", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			a := c.ask(x.request)
			require.Equal(t, x.code, a.Code)
			require.Equal(t, x.remark, a.Remark)
			require.Equal(t, x.next, ext(a, "nextBeginOffset"))
			for _, field := range []string{"minOffset", "maxOffset", "suggestWhichBrokerId"} {
				require.NotEmpty(t, ext(a, field))
			}
		})
	}
}

func TestPullChecks(t *testing.T) {
	w := run(t, func(c *gateway.Config) {
		c.NoAutoCreateGroup = true
		c.Broker.Policy.FilterByProperty = true
	})
	b := w.node.Broker()
	w.topic("T", 1)
	w.topic("NoRead", 1)
	require.NoError(t, b.Topics.Update(t.Context(), metadata.TopicConfig{TopicName: "NoRead", ReadQueueNums: 1, WriteQueueNums: 1, Perm: metadata.PermWrite}))
	group := metadata.SubscriptionGroupConfig{GroupName: "g", ConsumeEnable: true, RetryMaxTimes: 16, RetryQueueNums: 1}
	require.NoError(t, b.Groups.Update(t.Context(), group))
	group.GroupName, group.ConsumeEnable = "disabled", false
	require.NoError(t, b.Groups.Update(t.Context(), group))
	w.fill("T", 2)
	w.fill("T", 1, "i", "KEYS\x01wanted")
	c := w.dial("broker")
	c.ask(beating("id", "g", "T", 7, func(d *remoting.ConsumerData) {
		d.SubscriptionDataSet = append(d.SubscriptionDataSet,
			remoting.SubscriptionData{ExpressionType: "SQL92", SubString: "bad >", Topic: "NoRead"},
			remoting.SubscriptionData{ExpressionType: "SQL92", SubString: "bad >", Topic: "SELF_TEST_TOPIC"})
	}))
	for name, x := range map[string]struct {
		request *remoting.Command
		code    int
	}{
		"no group":                {pulling("T", 0, "consumerGroup", "none"), remoting.ResponseSubscriptionGroupNotExist},
		"disabled group":          {pulling("T", 0, "consumerGroup", "disabled"), remoting.ResponseNoPermission},
		"no topic":                {pulling("None", 0), remoting.ResponseTopicNotExist},
		"unreadable topic":        {pulling("NoRead", 0), remoting.ResponseNoPermission},
		"queue":                   {pulling("T", 0, "queueId", "1"), remoting.ResponseSystemError},
		"negative queue":          {pulling("T", 0, "queueId", "-1"), remoting.ResponseSystemError},
		"subscription":            {pulling("T", 0, "subscription", "||"), remoting.ResponseSubscriptionParseFailed},
		"expression":              {pulling("T", 0, "subscription", "bad >", "expressionType", "SQL92"), remoting.ResponseSubscriptionParseFailed},
		"offline group":           {pulling("T", 0, "sysFlag", "0", "consumerGroup", "TOOLS_CONSUMER"), remoting.ResponseSubscriptionNotExist},
		"topic not subscribed":    {pulling("TBW102", 0, "sysFlag", "0"), remoting.ResponseSubscriptionNotExist},
		"newer subscription":      {pulling("T", 0, "sysFlag", "0", "subVersion", "8"), remoting.ResponseSubscriptionNotLatest},
		"the one registered":      {pulling("T", 0, "sysFlag", "0", "subVersion", "7"), remoting.ResponseSuccess},
		"expression not compiled": {pulling("SELF_TEST_TOPIC", 0, "sysFlag", "0"), remoting.ResponseFilterDataNotExist},
		"number missing":          {req(remoting.RequestPullMessage, "consumerGroup", "g", "topic", "T"), remoting.ResponseSystemError},
	} {
		t.Run(name, func(t *testing.T) {
			a := c.ask(x.request)
			require.Equal(t, x.code, a.Code, a.Remark)
		})
	}
	a := c.ask(pulling("T", 0, "subscription", "KEYS = 'wanted'", "expressionType", "SQL92"))
	require.Equal(t, []string{"m0"}, bodies(t, a))
	require.Equal(t, "3", ext(a, "nextBeginOffset"))
	a = c.ask(pulling("T", 0, "subscription", "KEYS = 'unwanted'", "expressionType", "SQL92"))
	require.Equal(t, remoting.ResponsePullRetryImmediately, a.Code)
	require.Equal(t, "3", ext(a, "nextBeginOffset"))
	require.Empty(t, a.Body)
}

func TestBroadcastingCanBeForbidden(t *testing.T) {
	w := run(t)
	w.topic("T", 1)
	require.NoError(t, w.node.Broker().Groups.Update(t.Context(), metadata.SubscriptionGroupConfig{GroupName: "g", ConsumeEnable: true}))
	c := w.dial("broker")
	c.ask(beating("id", "g", "T", 1, func(d *remoting.ConsumerData) { d.MessageModel = messages.Broadcasting }))
	require.Equal(t, remoting.ResponseNoPermission, c.ask(pulling("T", 0, "sysFlag", "0")).Code)
}

// A held pull is answered when a message comes that it wants, not before; others of its connection go on meanwhile.
func TestLongPolling(t *testing.T) {
	w := run(t)
	w.topic("T", 1)
	w.group("g")
	c := w.dial("broker")
	held := pulling("T", 0, "sysFlag", "6", "subscription", "wanted", "suspendTimeoutMillis", "600000")
	c.send(held)
	require.Equal(t, remoting.ResponseSuccess, c.ask(req(remoting.RequestGetMaxOffset, "topic", "T", "queueId", "0")).Code)
	w.fill("T", 3)
	c.silent()
	w.fill("T", 1, "i", "TAGS\x01wanted")
	a := c.response(held)
	require.Equal(t, remoting.ResponseSuccess, a.Code, a.Remark)
	require.Equal(t, []string{"m0"}, bodies(t, a))
	require.Equal(t, "4", ext(a, "nextBeginOffset"))
}

func TestHeldPullExpires(t *testing.T) {
	w := run(t)
	w.topic("T", 1)
	w.group("g")
	c := w.dial("broker")
	began := time.Now()
	a := c.ask(pulling("T", 0, "sysFlag", "6", "suspendTimeoutMillis", "60"))
	require.Equal(t, remoting.ResponsePullNotFound, a.Code)
	require.GreaterOrEqual(t, time.Since(began), 60*time.Millisecond)
	for _, past := range []string{"0", "-5", "-9300000000000"} { // the last one has no number of nanoseconds
		require.Equal(t, remoting.ResponsePullNotFound, c.ask(pulling("T", 0, "sysFlag", "6", "suspendTimeoutMillis", past)).Code)
	}
}

func TestHeldPullsAreBoundedAndEnd(t *testing.T) {
	w := run(t, func(c *gateway.Config) { c.Broker.MaxHeldPulls = 2 })
	w.topic("T", 1)
	w.group("g")
	c, other := w.dial("broker"), w.dial("broker")
	var held []*remoting.Command
	for range 2 {
		p := pulling("T", 0, "sysFlag", "6", "suspendTimeoutMillis", "600000")
		c.send(p)
		held = append(held, p)
	}
	require.Equal(t, remoting.ResponseSystemBusy, c.ask(pulling("T", 0, "sysFlag", "6")).Code)
	other.send(pulling("T", 0, "sysFlag", "6", "suspendTimeoutMillis", "600000"))
	require.NoError(t, other.sock.Close(), "a pull ends with its connection")
	w.eventually(func() bool { return w.node.Connections() == 1 })

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- w.node.Stop(ctx) }()
	for range held {
		require.Equal(t, remoting.ResponsePullNotFound, c.read().Code, "a stop answers what is held")
	}
	c.gone()
	require.NoError(t, c.sock.Close())
	require.NoError(t, <-stopped)
}

// Whatever comes of the pull, its commit counts; that of a wake-up does not count again.
func TestPullCommits(t *testing.T) {
	w := run(t)
	w.topic("T", 1)
	c := w.dial("broker")
	c.ask(pulling("T", 99, "sysFlag", "5", "commitOffset", "42"))
	query := req(remoting.RequestQueryConsumerOffset, "consumerGroup", "g", "topic", "T", "queueId", "0")
	require.Equal(t, "42", ext(c.ask(query), "offset"))
	c.ask(pulling("T", 0, "commitOffset", "43"))
	require.Equal(t, "42", ext(c.ask(query), "offset"), "without its bit it means nothing")
}

func TestAPullAtASlaveCommitsNothing(t *testing.T) {
	w := run(t, func(c *gateway.Config) { c.Broker.BrokerID = 1 })
	w.topic("T", 1)
	w.group("g")
	c := w.dial("broker")
	require.Equal(t, remoting.ResponsePullNotFound, c.ask(pulling("T", 0, "sysFlag", "5", "commitOffset", "3")).Code)
	require.Equal(t, messages.NoOffset, w.node.Broker().Offsets.Lookup("g", messages.QueueKey{Topic: "T"}))
}

// On OFFSET_MOVED a client drops what it has pulled and commits the offset that the answer names: at a slave that lags, behind messages
// that nobody has consumed.
func TestAPullAheadOfASlaveIsNotMoved(t *testing.T) { // spec/remoting.md §9.3
	for check, want := range map[bool]int{false: remoting.ResponsePullRetryImmediately, true: remoting.ResponsePullOffsetMoved} {
		slave, err := system.Open(system.Options{
			Dir: "store", Disk: memfs.New(), SegmentBytes: 8 << 20, WindowBytes: 64 << 10, Role: messages.Slave, CheckOffsetsInSlave: check,
		})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, slave.Close(context.Background())) })
		w := run(t, func(c *gateway.Config) { c.Store, c.Broker.BrokerID = slave, 1 })
		w.topic("T", 1)
		w.group("g")
		a := w.dial("broker").ask(pulling("T", 5))
		require.Equal(t, want, a.Code)
		if !check {
			require.Equal(t, "5", ext(a, "nextBeginOffset"))
		}
	}
}

func TestOffsets(t *testing.T) {
	w := run(t)
	w.topic("T", 2)
	w.fill("T", 3)
	c := w.dial("broker")
	queue := []string{"topic", "T", "queueId", "0"}
	of := func(code int, more ...string) *remoting.Command { return c.ask(req(code, append(more, queue...)...)) }
	require.Equal(t, "3", ext(of(remoting.RequestGetMaxOffset), "offset"))
	require.Equal(t, "0", ext(of(remoting.RequestGetMinOffset), "offset"))
	require.NotEqual(t, "-1", ext(of(remoting.RequestGetEarliestMsgStoreTime), "timestamp"))
	require.Equal(t, "0", ext(of(remoting.RequestSearchOffsetByTimestamp, "timestamp", "5"), "offset"))
	require.Equal(t, "3", ext(of(remoting.RequestSearchOffsetByTimestamp, "timestamp", "9999999999999"), "offset"), "the queue's end")

	queue[3] = "1"
	require.Equal(t, "0", ext(of(remoting.RequestGetMaxOffset), "offset"))
	require.Equal(t, "-1", ext(of(remoting.RequestGetEarliestMsgStoreTime), "timestamp"))

	// A new group on a young queue begins at 0, on an unknown topic too.
	require.Equal(t, "0", ext(of(remoting.RequestQueryConsumerOffset, "consumerGroup", "g"), "offset"))
	queue[1] = "GhostTopic"
	for code, field := range map[int]string{
		remoting.RequestQueryConsumerOffset: "offset", remoting.RequestGetMaxOffset: "offset", remoting.RequestGetMinOffset: "offset",
		remoting.RequestGetEarliestMsgStoreTime: "timestamp",
	} {
		want := map[string]string{"offset": "0", "timestamp": "-1"}[field]
		require.Equal(t, want, ext(of(code, "consumerGroup", "g"), field), code)
	}
	w.store.EachQueue(func(key messages.QueueKey, _, _ messages.QueueOffset) {
		require.NotEqual(t, "GhostTopic", key.Topic, "asking makes no queue")
	})

	queue[1] = "T"
	require.Equal(t, remoting.ResponseSuccess, of(remoting.RequestUpdateConsumerOffset, "consumerGroup", "g", "commitOffset", "7").Code)
	once := req(remoting.RequestUpdateConsumerOffset, append(queue, "consumerGroup", "g", "commitOffset", "6")...)
	once.Flag = remoting.FlagOneWay
	c.send(once)
	require.Equal(t, "6", ext(of(remoting.RequestQueryConsumerOffset, "consumerGroup", "g"), "offset"), "it may go back")
}

// An error would make the Java client skip to the end of the queue.
func TestOffsetQueryIsNeverAnsweredWithAnError(t *testing.T) {
	w := run(t)
	c := w.dial("broker")
	c.send(req(remoting.RequestQueryConsumerOffset, "consumerGroup", "g", "topic", "T"))
	c.gone()
	require.NoError(t, w.node.Broker().Offsets.Close())
	c = w.dial("broker")
	c.send(req(remoting.RequestQueryConsumerOffset, "consumerGroup", "g", "topic", "T", "queueId", "0"))
	c.gone()
}

func TestHeartbeatMakesGroupAndRetryTopic(t *testing.T) {
	w := run(t)
	c := w.dial("broker")
	a := c.ask(beating("id-1", "g", "T", 1))
	require.Equal(t, remoting.ResponseSuccess, a.Code, a.Remark)
	require.Equal(t, 407, a.Version)
	_, ok := w.node.Broker().Groups.Lookup("g")
	require.True(t, ok)
	require.Equal(t, remoting.ResponseSuccess, w.dial("namesrv").ask(req(remoting.RequestGetRouteInfoByTopic, "topic", "%RETRY%g")).Code)
	list := c.ask(req(remoting.RequestGetConsumerListByGroup, "consumerGroup", "g"))
	require.JSONEq(t, `{"consumerIdList":["id-1"]}`, string(list.Body))
	bad := req(remoting.RequestHeartbeat)
	bad.Body = []byte(`{"clientID":`)
	require.Equal(t, remoting.ResponseSystemError, c.ask(bad).Code)
}

// Heartbeats and the pulls behind them, written back to back, are handled in order: the pull knows the new subscription.
func TestPullBehindHeartbeatSeesIt(t *testing.T) {
	w := run(t)
	w.topic("T", 1)
	w.fill("T", 1)
	c := w.dial("broker")
	var pulls []*remoting.Command
	for v := int64(1); v < 50; v++ {
		c.send(beating("id", "g", "T", v))
		p := pulling("T", 0, "sysFlag", "0", "subVersion", strconv.FormatInt(v, 10))
		c.send(p)
		pulls = append(pulls, p)
	}
	for _, p := range pulls {
		require.Equal(t, remoting.ResponseSuccess, c.response(p).Code)
	}
}

// Who joins is told of it behind the answer to its heartbeat: a Java client that is told while a heartbeat is unanswered does not
// send the next one, which its pulls need.
func TestGroupMembersAreTold(t *testing.T) {
	w := run(t)
	a, b := w.dial("broker"), w.dial("broker")
	told := func(c *client) {
		t.Helper()
		n := c.read()
		require.Equal(t, remoting.RequestNotifyConsumerIdsChanged, n.Code)
		require.True(t, n.IsOneWay())
		require.Equal(t, "g", ext(n, "consumerGroup"))
	}
	beat := beating("a", "g", "T", 1)
	a.send(beat)
	require.True(t, a.read().IsResponse(), "answered before it is told")
	told(a)
	require.Equal(t, remoting.ResponseSuccess, a.ask(beating("a", "g", "T", 1)).Code)
	a.silent()
	b.ask(beating("b", "g", "T", 1))
	told(a)
	require.NoError(t, b.sock.Close())
	told(a)
	list := a.ask(req(remoting.RequestGetConsumerListByGroup, "consumerGroup", "g"))
	require.JSONEq(t, `{"consumerIdList":["a"]}`, string(list.Body))
	require.Equal(t, remoting.ResponseSuccess, a.ask(req(remoting.RequestUnregisterClient, "clientID", "a", "consumerGroup", "g")).Code)
	require.Equal(t, remoting.ResponseSystemError, a.ask(req(remoting.RequestGetConsumerListByGroup, "consumerGroup", "g")).Code)
}

func TestNotificationsCanBeSwitchedOff(t *testing.T) {
	w := run(t, func(c *gateway.Config) { c.Broker.Policy.NotifyOff = true })
	c := w.dial("broker")
	beat := beating("a", "g", "T", 1)
	c.send(beat)
	require.True(t, c.read().IsResponse())
	c.silent()
}

func TestLocks(t *testing.T) {
	w := run(t)
	c := w.dial("broker")
	lock := func(code int, id string, queues ...int) *remoting.Command {
		body := remoting.LockBatch{ClientID: id, ConsumerGroup: "g"}
		for _, q := range queues {
			body.MQSet = append(body.MQSet, remoting.MessageQueue{BrokerName: "broker-a", QueueID: int32(q), Topic: "T"})
		}
		r := req(code)
		r.Body, _ = json.Marshal(body)
		return c.ask(r)
	}
	granted := func(a *remoting.Command) int {
		var body remoting.LockBatchAnswer
		require.NoError(t, a.DecodeBody(&body))
		return len(body.LockOKMQSet)
	}
	require.Equal(t, 2, granted(lock(remoting.RequestLockBatchMQ, "a", 0, 1)))
	require.Equal(t, 1, granted(lock(remoting.RequestLockBatchMQ, "b", 1, 2)))
	require.Equal(t, remoting.ResponseSuccess, lock(remoting.RequestUnlockBatchMQ, "b", 1).Code)
	require.Zero(t, granted(lock(remoting.RequestLockBatchMQ, "b", 1)), "not the owner's")
	require.Equal(t, remoting.ResponseSuccess, lock(remoting.RequestUnlockBatchMQ, "a", 1).Code)
	require.Equal(t, 1, granted(lock(remoting.RequestLockBatchMQ, "b", 1)))
}

func TestRequestReply(t *testing.T) {
	w := run(t)
	requester, replier := w.dial("broker"), w.dial("broker")
	beat := req(remoting.RequestHeartbeat)
	beat.Body = []byte(`{"clientID":"asker","producerDataSet":[{"groupName":"pg"}]}`)
	requester.ask(beat)
	reply := func(properties string) *remoting.Command {
		s := sending("MadeUpCluster_REPLY_TOPIC", "pong", "i", properties)
		s.Code = remoting.RequestSendReplyMessageV2
		return s
	}
	s := reply("REPLY_TO_CLIENT\x01asker\x02CORRELATION_ID\x017")
	replier.send(s)
	push := requester.read()
	require.Equal(t, remoting.RequestPushReplyMessageToClient, push.Code)
	require.Equal(t, "pong", string(push.Body))
	require.Contains(t, ext(push, "properties"), "PUSH_REPLY_TIME")
	require.Equal(t, replier.sock.LocalAddr().String(), ext(push, "bornHost"))
	replier.silent()
	requester.send(push.Answer(remoting.ResponseSuccess, ""))
	require.Equal(t, "pong", string(w.stored(replier.response(s)).Body))

	s = reply("REPLY_TO_CLIENT\x01asker")
	replier.send(s)
	requester.send(requester.read().Answer(remoting.ResponseSystemError, "do not want"))
	failed := replier.response(s)
	require.Equal(t, remoting.ResponseSystemError, failed.Code)
	require.Equal(t, "push reply message to askerfail.", failed.Remark)
	require.Equal(t, "1", ext(failed, "queueOffset"), "stored all the same")
	require.Contains(t, replier.ask(reply("REPLY_TO_CLIENT\x01nobody")).Remark, "channel of <nobody> not found")
	require.Contains(t, replier.ask(reply("a\x01b")).Remark, "[REPLY_TO_CLIENT] is null")
}

// TestALightTopicIsPulledWithoutAConfiguration: with enableLmq, from its one queue.
func TestALightTopicIsPulledWithoutAConfiguration(t *testing.T) {
	w := run(t, func(c *gateway.Config) { c.Broker.Policy.LightTopics = true })
	w.topic("T", 1)
	c := w.dial("broker")
	w.settle(c.ask(sending("T", "light", "i", "INNER_MULTI_DISPATCH\x01%LMQ%a")))
	a := c.ask(pulling("%LMQ%a", 0))
	require.Equal(t, remoting.ResponseSuccess, a.Code, a.Remark)
	require.Equal(t, []string{"light"}, bodies(t, a))
	require.Equal(t, remoting.ResponseSystemError, c.ask(pulling("%LMQ%a", 0, "queueId", "1")).Code)

	commit := req(remoting.RequestUpdateConsumerOffset, "consumerGroup", "%LMQ%g", "topic", "%LMQ%a", "queueId", "0", "commitOffset", "1")
	require.Equal(t, remoting.ResponseSuccess, c.ask(commit).Code)
	require.NoError(t, w.node.Broker().Offsets.Save(t.Context()))
	require.JSONEq(t, `{"lmqOffsetTable":{"%LMQ%a@%LMQ%g":1},"offsetTable":{}}`,
		string(fixture.ReadFile(t, w.disk, "store/config/lmqConsumerOffset.json")))
}
