package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
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

func decoded[T any](t *testing.T, a *remoting.Command) T {
	t.Helper()
	require.Equal(t, remoting.ResponseSuccess, a.Code, a.Remark)
	var v T
	require.NoError(t, a.DecodeBody(&v))
	return v
}

func TestNameServer(t *testing.T) {
	w := run(t, func(c *gateway.Config) { c.OrderMessages = true })
	w.topic("T", 2)
	c := w.dial("namesrv")
	info := decoded[remoting.ClusterInfo](t, c.ask(req(remoting.RequestGetBrokerClusterInfo)))
	require.Equal(t, map[string][]string{"MadeUpCluster": {"broker-a"}}, info.ClusterAddrTable)
	require.Equal(t, "127.0.0.1:10911", info.BrokerAddrTable["broker-a"].BrokerAddrs[0])

	topics := func(code int, pairs ...string) []string {
		return decoded[remoting.TopicList](t, c.ask(req(code, pairs...))).TopicList
	}
	require.Contains(t, topics(remoting.RequestGetAllTopicListFromNameServer), "T")
	require.Contains(t, topics(remoting.RequestGetTopicsByCluster, "cluster", "MadeUpCluster"), "T")
	require.Empty(t, topics(remoting.RequestGetTopicsByCluster, "cluster", "none"))
	require.Equal(t, []string{"MadeUpCluster", "broker-a"}, topics(remoting.RequestGetSystemTopicListFromNS))
	w.node.Broker().Topics.EnsureRetry(t.Context(), "unit", 1, true)
	require.Equal(t, []string{"%RETRY%unit"}, topics(remoting.RequestGetHasUnitSubTopicList))
	require.Equal(t, []string{"%RETRY%unit"}, topics(remoting.RequestGetHasUnitSubUnunitTopicList))
	require.Empty(t, topics(remoting.RequestGetUnitTopicList))

	route := func() remoting.TopicRouteData {
		a := c.ask(req(remoting.RequestGetRouteInfoByTopic, "topic", "T"))
		require.NotContains(t, string(a.Body), " ", "the Go client takes the text apart")
		return decoded[remoting.TopicRouteData](t, a)
	}
	require.Empty(t, route().OrderTopicConf)
	c.ask(req(remoting.RequestPutKVConfig, "namespace", "ORDER_TOPIC_CONFIG", "key", "T", "value", "broker-a:2"))
	require.Equal(t, "broker-a:2", route().OrderTopicConf)
	n := ext(c.ask(req(remoting.RequestWipeWritePermOfBroker, "brokerName", "broker-a")), "wipeTopicCount")
	require.Equal(t, fmt.Sprint(w.node.Broker().Topics.Len()), n)
	require.Equal(t, int32(4), route().QueueDatas[0].Perm)
	require.Equal(t, "0", ext(c.ask(req(remoting.RequestAddWritePermOfBroker, "brokerName", "other")), "addTopicCount"))
	require.Equal(t, int32(4), route().QueueDatas[0].Perm)
	require.Equal(t, n, ext(c.ask(req(remoting.RequestAddWritePermOfBroker, "brokerName", "broker-a")), "addTopicCount"))
	require.Equal(t, int32(6), route().QueueDatas[0].Perm)

	require.Equal(t, remoting.ResponseRequestCodeNotSupported, c.ask(sending("T", "x")).Code, "no broker on this port")
	require.Contains(t, string(c.ask(req(remoting.RequestGetNamesrvConfig)).Body), "kvConfigPath=")
	for text, code := range map[string]int{
		"": remoting.ResponseSuccess, "kvConfigPath=/tmp/x\n": remoting.ResponseNoPermission, "rocketmqHome=/\n": remoting.ResponseNoPermission,
		"clusterTest=true": remoting.ResponseNoPermission, "nonsense": remoting.ResponseSystemError,
	} {
		r := req(remoting.RequestUpdateNamesrvConfig)
		r.Body = []byte(text)
		require.Equal(t, code, c.ask(r).Code, text)
	}
}

// What is put into a namespace is there after a restart, and after a power cut once it is answered.
func TestKVConfigIsKept(t *testing.T) {
	w := run(t)
	c := w.dial("namesrv")
	put := func(pairs ...string) int { return c.ask(req(remoting.RequestPutKVConfig, pairs...)).Code }
	require.Equal(t, remoting.ResponseSuccess, put("namespace", "N", "key", "k1", "value", "v1"))
	require.Equal(t, remoting.ResponseSuccess, put("namespace", "N", "key", "k2", "value", "v\u4e2d"))
	require.Equal(t, remoting.ResponseSystemError, put("namespace", "N", "key", "k3"))
	require.Equal(t, remoting.ResponseSuccess, c.ask(req(remoting.RequestDeleteKVConfig, "namespace", "N", "key", "k1")).Code)
	require.Equal(t, remoting.ResponseSuccess, c.ask(req(remoting.RequestDeleteKVConfig, "namespace", "N", "key", "never")).Code)

	w.disk = w.disk.Crash(7)
	again := run(t, func(cfg *gateway.Config) { cfg.Disk = w.disk })
	c = again.dial("namesrv")
	table := decoded[remoting.KVTable](t, c.ask(req(remoting.RequestGetKVListByNamespace, "namespace", "N")))
	require.Equal(t, map[string]string{"k2": "v\u4e2d"}, table.Table)
	require.Equal(t, remoting.ResponseQueryNotFound, c.ask(req(remoting.RequestGetKVConfig, "namespace", "N", "key", "k1")).Code)
	require.Equal(t, "v\u4e2d", ext(c.ask(req(remoting.RequestGetKVConfig, "namespace", "N", "key", "k2")), "value"))
	require.Equal(t, remoting.ResponseSuccess, c.ask(req(remoting.RequestDeleteKVConfig, "namespace", "N", "key", "k2")).Code)
	require.Equal(t, remoting.ResponseQueryNotFound, c.ask(req(remoting.RequestGetKVListByNamespace, "namespace", "N")).Code)
}

func TestTopicsOfTools(t *testing.T) {
	w := run(t)
	c := w.dial("broker")
	create := func(topic string, changes ...string) *remoting.Command {
		return c.ask(req(remoting.RequestUpdateAndCreateTopic, append([]string{
			"topic", topic, "defaultTopic", "TBW102", "readQueueNums", "3", "writeQueueNums", "2", "perm", "6",
			"topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "true",
		}, changes...)...))
	}
	require.Equal(t, remoting.ResponseSuccess, create("T").Code)
	topic, _ := w.node.Broker().Topics.Lookup("T")
	require.Equal(t, metadata.TopicConfig{
		TopicName: "T", ReadQueueNums: 3, WriteQueueNums: 2, Perm: 6, TopicFilterType: "SINGLE_TAG",
	}, topic, "order is not taken from tools")
	for bad, remark := range map[string]string{
		"TBW102": "The topic[TBW102] is conflict with system topic.", "a b": "illegal characters", "": "blank",
	} {
		a := create(bad)
		require.Equal(t, remoting.ResponseSystemError, a.Code)
		require.Contains(t, a.Remark, remark)
	}
	require.Equal(t, remoting.ResponseSystemError, create("T", "readQueueNums", "-1").Code)

	w.fill("T", 3)
	stats := decoded[remoting.TopicStats](t, c.ask(req(remoting.RequestGetTopicStatsInfo, "topic", "T")))
	require.Len(t, stats.OffsetTable, 2)
	first := stats.OffsetTable[remoting.MessageQueue{BrokerName: "broker-a", Topic: "T"}]
	require.Equal(t, int64(3), first.MaxOffset)
	require.NotZero(t, first.LastUpdateTimestampMs)
	require.Zero(t, stats.OffsetTable[remoting.MessageQueue{BrokerName: "broker-a", QueueID: 1, Topic: "T"}])
	require.Equal(t, remoting.ResponseTopicNotExist, c.ask(req(remoting.RequestGetTopicStatsInfo, "topic", "none")).Code)
	all := decoded[remoting.TopicConfigTable](t, c.ask(req(remoting.RequestGetAllTopicConfig)))
	require.Equal(t, int32(3), all.TopicConfigTable["T"].ReadQueueNums)
	require.Equal(t, remoting.ResponseSystemError, c.ask(req(remoting.RequestDeleteTopicInBroker, "topic", "TBW102")).Code)
}

// L89, L91: with a topic its groups' progress goes: one that is made again begins anew.
func TestDeletedTopicLeavesNothing(t *testing.T) {
	w := run(t)
	w.topic("T", 1)
	w.fill("T", 2)
	c, names := w.dial("broker"), w.dial("namesrv")
	commit := req(remoting.RequestUpdateConsumerOffset, "consumerGroup", "g", "topic", "T", "queueId", "0", "commitOffset", "2")
	c.ask(commit)
	require.Equal(t, remoting.ResponseSuccess, c.ask(req(remoting.RequestDeleteTopicInBroker, "topic", "T")).Code)
	require.Equal(t, remoting.ResponseSuccess, c.ask(req(remoting.RequestDeleteTopicInBroker, "topic", "T")).Code, "missing is fine")
	require.Equal(t, remoting.ResponseTopicNotExist, names.ask(req(remoting.RequestGetRouteInfoByTopic, "topic", "T")).Code)
	require.Equal(t, remoting.ResponseTopicNotExist, c.ask(pulling("T", 0)).Code)
	require.Equal(t, messages.NoOffset, w.node.Broker().Offsets.Lookup("g", messages.QueueKey{Topic: "T"}))
}

func TestGroupsOfTools(t *testing.T) {
	w := run(t)
	c := w.dial("broker")
	update := func(body string) int {
		r := req(remoting.RequestUpdateAndCreateSubscriptionGroup)
		r.Body = []byte(body)
		return c.ask(r).Code
	}
	require.Equal(t, remoting.ResponseSuccess, update(`{"groupName":"g","retryMaxTimes":5,"consumeBroadcastEnable":false}`))
	require.Equal(t, remoting.ResponseSystemError, update(`{"groupName":"a b"}`))
	table := decoded[remoting.SubscriptionGroupTable](t, c.ask(req(remoting.RequestGetAllSubscriptionGroupConfig)))
	require.Equal(t, remoting.SubscriptionGroupConfig{
		GroupName: "g", RetryMaxTimes: 5, ConsumeEnable: true, ConsumeFromMinEnable: true, NotifyConsumerIdsChangedEnable: true,
		RetryQueueNums: 1, WhichBrokerWhenConsumeSlowly: 1,
	}, table.SubscriptionGroupTable["g"])

	c.ask(req(remoting.RequestUpdateConsumerOffset, "consumerGroup", "g", "topic", "T", "queueId", "0", "commitOffset", "2"))
	require.Equal(t, remoting.ResponseSuccess, c.ask(req(remoting.RequestCloneGroupOffset, "srcGroup", "g", "destGroup", "h", "topic", "T")).Code)
	who := decoded[remoting.GroupList](t, c.ask(req(remoting.RequestQueryTopicConsumeByWho, "topic", "T")))
	require.Equal(t, []string{"g", "h"}, who.GroupList)
	require.Equal(t, remoting.ResponseSuccess, c.ask(req(remoting.RequestDeleteSubscriptionGroup, "groupName", "g", "removeOffset", "true")).Code)
	_, there := w.node.Broker().Groups.Lookup("g")
	require.False(t, there)
	who = decoded[remoting.GroupList](t, c.ask(req(remoting.RequestQueryTopicConsumeByWho, "topic", "T")))
	require.Equal(t, []string{"h"}, who.GroupList)
}

func TestProgressOfGroups(t *testing.T) {
	w := run(t)
	w.topic("T", 2)
	w.fill("T", 3)
	c := w.dial("broker")
	c.ask(beating("id", "g", "T", 1))
	for topic, at := range map[string]string{"T": "2", "TBW102": "1"} { // the second one is not subscribed any more
		c.ask(req(remoting.RequestUpdateConsumerOffset, "consumerGroup", "g", "topic", topic, "queueId", "0", "commitOffset", at))
	}
	stats := decoded[remoting.ConsumeStats](t, c.ask(req(remoting.RequestGetConsumeStats, "consumerGroup", "g")))
	require.Len(t, stats.OffsetTable, 2)
	first := stats.OffsetTable[remoting.MessageQueue{BrokerName: "broker-a", Topic: "T"}]
	require.Equal(t, int64(3), first.BrokerOffset)
	require.Equal(t, int64(2), first.ConsumerOffset)
	require.NotZero(t, first.LastTimestampMs)

	spans := decoded[remoting.ConsumeTimeSpans](t, c.ask(req(remoting.RequestQueryConsumeTimeSpan, "topic", "T", "group", "g")))
	require.Len(t, spans.ConsumeTimeSpanSet, 2)
	require.Regexp(t, `^\d{4}-\d\d-\d\d#\d\d:\d\d:\d\d:\d{3}$`, spans.ConsumeTimeSpanSet[0].MaxTimestampStr)
	all := decoded[remoting.BrokerConsumeStats](t, c.ask(req(remoting.RequestGetBrokerConsumeStats, "isOrder", "false")))
	require.Equal(t, int64(1), all.TotalDiff)
	least := decoded[remoting.CorrectionOffsets](t, c.ask(req(remoting.RequestQueryCorrectionOffset, "topic", "T", "compareGroup", "g")))
	require.Equal(t, map[int32]int64{0: 2}, least.CorrectionOffsets)
}

// L81: what consoles ask for by key, unique id and offset id.
func TestMessagesByIDAndKey(t *testing.T) {
	w := run(t)
	w.topic("T", 1)
	w.fill("T", 3)
	w.fill("T", 1, "i", "KEYS\x01other\x02UNIQ_KEY\x01U\x02TAGS\x01x")
	c := w.dial("broker")
	query := func(key string, more ...string) *remoting.Command {
		return c.ask(req(remoting.RequestQueryMessage, append([]string{
			"topic", "T", "key", key, "maxNum", "2", "beginTimestamp", "0", "endTimestamp", "9223372036854775807",
		}, more...)...))
	}
	a := query("k")
	require.Len(t, bodies(t, a), 2, "not more than was asked for")
	require.NotEqual(t, "0", ext(a, "indexLastUpdateTimestamp"))
	require.Len(t, bodies(t, query("k", "_UNIQUE_KEY_QUERY", "true")), 3)
	require.Equal(t, []string{"m0"}, bodies(t, query("U")))
	none := query("nokey")
	require.Equal(t, remoting.ResponseQueryNotFound, none.Code)
	require.NotEmpty(t, ext(none, "indexLastUpdatePhyoffset"))

	pulled := c.ask(pulling("T", 3)).Body
	list, err := record.DecodeAll(pulled)
	require.NoError(t, err)
	view := c.ask(req(remoting.RequestViewMessageByID, "offset", fmt.Sprint(list[0].PhysicalOffset)))
	require.Equal(t, pulled, view.Body, "the very record")
	for _, at := range []string{"1", "-5", "99999999"} {
		require.Equal(t, remoting.ResponseSystemError, c.ask(req(remoting.RequestViewMessageByID, "offset", at)).Code)
	}
	units := decoded[remoting.ConsumeQueueData](t, c.ask(req(remoting.RequestQueryConsumeQueue, "topic", "T", "queueId", "0", "index", "1", "count", "9")))
	require.Len(t, units.QueueData, 3)
	require.Equal(t, int64(messages.JavaHash("x")), units.QueueData[2].TagsCode)
	require.Equal(t, int64(list[0].PhysicalOffset), units.QueueData[2].PhysicOffset)
	require.Equal(t, remoting.ResponseSystemError, c.ask(req(remoting.RequestQueryConsumeQueue, "topic", "none", "count", "1")).Code)
}

func TestClientsOfTools(t *testing.T) {
	w := run(t)
	c := w.dial("broker")
	require.Equal(t, remoting.ResponseConsumerNotOnline, c.ask(req(remoting.RequestGetConsumerConnectionList, "consumerGroup", "g")).Code)
	require.Equal(t, remoting.ResponseSystemError, c.ask(req(remoting.RequestGetProducerConnectionList, "producerGroup", "pg")).Code)
	c.ask(beating("id", "g", "T", 1))
	beat := req(remoting.RequestHeartbeat)
	beat.Body = []byte(`{"clientID":"id","producerDataSet":[{"groupName":"pg"}]}`)
	c.ask(beat)
	me := remoting.Connection{ClientAddr: c.sock.LocalAddr().String(), ClientID: "id", Language: "JAVA", Version: 407}
	consumers := decoded[remoting.ConsumerConnection](t, c.ask(req(remoting.RequestGetConsumerConnectionList, "consumerGroup", "g")))
	require.Equal(t, []remoting.Connection{me}, consumers.ConnectionSet)
	require.Equal(t, "*", consumers.SubscriptionTable["T"].SubString)
	producers := decoded[remoting.ProducerConnection](t, c.ask(req(remoting.RequestGetProducerConnectionList, "producerGroup", "pg")))
	require.Equal(t, []remoting.Connection{me}, producers.ConnectionSet)
	all := decoded[remoting.ProducerTable](t, c.ask(req(remoting.RequestGetAllProducerInfo)))
	require.Equal(t, "/"+me.ClientAddr, all.Data["pg"][0].RemoteIP)
}

// What a client says of itself is handed on byte by byte, JSON or not.
func TestRelays(t *testing.T) {
	w := run(t)
	w.topic("T", 1)
	consumer, tool := w.dial("broker"), w.dial("broker")
	consumer.join(beating("id", "g", "T", 1))
	info := req(remoting.RequestGetConsumerRunningInfo, "consumerGroup", "g", "clientId", "id", "jstackEnable", "true", "extra", "kept")
	tool.send(info)
	asked := consumer.read()
	require.Equal(t, remoting.RequestGetConsumerRunningInfo, asked.Code)
	require.Equal(t, "kept", ext(asked, "extra"))
	reply := asked.Answer(0, "as it is")
	reply.Body = []byte("{not JSON\x00")
	consumer.send(reply)
	a := tool.response(info)
	require.Equal(t, "as it is", a.Remark)
	require.Equal(t, reply.Body, a.Body)

	m := w.stored(tool.ask(sending("T", "directly")))
	directly := req(remoting.RequestConsumeMessageDirectly, "consumerGroup", "g", "clientId", "id", "msgId", m.OffsetMessageID())
	tool.send(directly)
	asked = consumer.read()
	require.Equal(t, "broker-a", ext(asked, "brokerName"))
	require.Equal(t, []string{"directly"}, bodies(t, asked))
	consumer.send(asked.Answer(0, ""))
	require.Equal(t, 0, tool.response(directly).Code)

	status := req(remoting.RequestInvokeBrokerToGetConsumerStatus, "topic", "T", "group", "g")
	tool.send(status)
	reply = consumer.read().Answer(0, "")
	reply.Body = []byte(`{"messageQueueTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:5}}`)
	consumer.send(reply)
	got := decoded[remoting.ConsumerStatus](t, tool.response(status))
	require.Equal(t, map[remoting.MessageQueue]int64{{BrokerName: "broker-a", Topic: "T"}: 5}, got.ConsumerTable["id"])

	for _, bad := range []*remoting.Command{
		req(remoting.RequestGetConsumerRunningInfo, "consumerGroup", "g", "clientId", "other"),
		req(remoting.RequestGetConsumerRunningInfo, "consumerGroup", "none", "clientId", "id"),
		req(remoting.RequestConsumeMessageDirectly, "consumerGroup", "g", "clientId", "id", "msgId", "no id"),
		req(remoting.RequestInvokeBrokerToGetConsumerStatus, "topic", "T", "group", "none"),
	} {
		require.Equal(t, remoting.ResponseSystemError, tool.ask(bad).Code)
	}
	tool.send(info)
	consumer.read()
	require.NoError(t, consumer.sock.Close())
	require.Equal(t, remoting.ResponseSystemError, tool.response(info).Code, "the client has gone")
}

func TestResetOffsetOnline(t *testing.T) {
	w := run(t)
	w.topic("T", 1)
	w.fill("T", 3)
	consumer, tool := w.dial("broker"), w.dial("broker")
	reset := func(pairs ...string) *remoting.Command {
		return req(remoting.RequestInvokeBrokerToResetOffset, append([]string{"topic", "T", "group", "g", "timestamp", "0", "isForce", "true"}, pairs...)...)
	}
	require.Equal(t, remoting.ResponseSystemError, tool.ask(reset()).Code, "no offsets")
	consumer.ask(req(remoting.RequestUpdateConsumerOffset, "consumerGroup", "g", "topic", "T", "queueId", "0", "commitOffset", "2"))
	require.Equal(t, remoting.ResponseConsumerNotOnline, tool.ask(reset()).Code)
	consumer.join(beating("id", "g", "T", 1))
	for _, x := range []struct {
		pairs []string
		want  int64
	}{
		{nil, 0}, {[]string{"timestamp", "-1"}, 3}, {[]string{"timestamp", "-1", "isForce", "false"}, 2},
	} {
		answer := decoded[remoting.ResetOffsets](t, tool.ask(reset(x.pairs...)))
		require.Equal(t, map[remoting.MessageQueue]int64{{BrokerName: "broker-a", Topic: "T"}: x.want}, answer.OffsetTable)
		push := consumer.read()
		require.Equal(t, remoting.RequestResetConsumerClientOffset, push.Code)
		require.True(t, push.IsOneWay())
		require.Equal(t, "false", ext(push, "isForce"))
		require.False(t, json.Valid(push.Body), "the Go client reads either objects as keys, or pairs")
		require.Contains(t, string(push.Body), `{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:`)
	}
}

// L82: also before there is any traffic.
func TestRuntimeAndStatistics(t *testing.T) {
	w := run(t, func(c *gateway.Config) {
		c.Tools.Runtime = func() map[string]string { return map[string]string{"commitLogDiskRatio": "0.5"} }
		c.Tools.Options = func() map[string]string { return map[string]string{"fileReservedTime": "72"} }
		c.Tools.SetOptions = func(_ *broker.Broker, m map[string]string) error {
			if _, path := m["storePathRootDir"]; path {
				return fmt.Errorf("option storePathRootDir can't be changed")
			}
			return nil
		}
	})
	w.topic("T", 1)
	c := w.dial("broker")
	stat := func(name, key string) *remoting.Command {
		return c.ask(req(remoting.RequestViewBrokerStatsData, "statsName", name, "statsKey", key))
	}
	require.Zero(t, decoded[remoting.StatsData](t, stat("TOPIC_PUT_NUMS", "T")).StatsMinute.Sum, "no traffic yet")
	require.Equal(t, remoting.ResponseSystemError, stat("TOPIC_PUT_NUMS", "none").Code)
	require.Equal(t, remoting.ResponseSystemError, stat("NO_SUCH", "T").Code)
	require.Equal(t, remoting.ResponseSystemError, stat("GROUP_GET_NUMS", "T@none").Code)
	require.Equal(t, remoting.ResponseSystemError, stat("GROUP_GET_NUMS", "T").Code)
	require.Equal(t, remoting.ResponseSuccess, stat("GROUP_GET_NUMS", "T@TOOLS_CONSUMER").Code)
	require.Equal(t, remoting.ResponseSuccess, stat("BROKER_PUT_NUMS", "MadeUpCluster").Code)

	w.fill("T", 4)
	c.ask(pulling("T", 0))
	table := decoded[remoting.KVTable](t, c.ask(req(remoting.RequestGetBrokerRuntimeInfo))).Table
	require.Equal(t, "4", table["msgPutTotalTodayNow"])
	require.Equal(t, "4", table["msgGetTotalTodayNow"])
	require.Equal(t, "0.5", table["commitLogDiskRatio"])
	require.Equal(t, "407", table["brokerVersion"])
	for _, rates := range []string{"putTps", "getTransferedTps", "getTotalTps", "getFoundTps", "getMissTps"} {
		require.Len(t, strings.Fields(table[rates]), 3, rates)
	}
	config := c.ask(req(remoting.RequestGetBrokerConfig))
	require.Contains(t, string(config.Body), "brokerName=broker-a\n")
	require.Contains(t, string(config.Body), "fileReservedTime=72\n")
	require.Contains(t, ext(config, "version"), `"counter"`)
	change := func(text string) int {
		r := req(remoting.RequestUpdateBrokerConfig)
		r.Body = []byte(text)
		return c.ask(r).Code
	}
	require.Equal(t, remoting.ResponseSuccess, change("fileReservedTime=48\n"))
	require.Equal(t, remoting.ResponseNoPermission, change("storePathRootDir=/\n"))
	require.Equal(t, remoting.ResponseSystemError, change("nonsense"))
	require.Equal(t, remoting.ResponseSuccess, c.ask(req(remoting.RequestCleanExpiredConsumeQueue)).Code)
	_, err := w.store.Put(t.Context(), &messages.Message{Topic: "Ghost", Body: []byte("nobody has configured me")})
	require.NoError(t, err)
	w.eventually(func() bool { return w.store.MaxOffset(messages.QueueKey{Topic: "Ghost"}) == 1 })
	require.Equal(t, remoting.ResponseSuccess, c.ask(req(remoting.RequestCleanUnusedTopic)).Code)
	require.Zero(t, w.store.MaxOffset(messages.QueueKey{Topic: "Ghost"}))
	require.EqualValues(t, 4, w.store.MaxOffset(messages.QueueKey{Topic: "T"}))
	require.Equal(t, remoting.ResponseSuccess, c.ask(req(remoting.RequestDeleteExpiredCommitLog)).Code)
}

func TestOptionsCannotBeChangedWithoutAnOwner(t *testing.T) {
	w := run(t)
	r := req(remoting.RequestUpdateBrokerConfig)
	r.Body = []byte("a=b\n")
	require.Equal(t, remoting.ResponseNoPermission, w.dial("broker").ask(r).Code)
	require.Equal(t, remoting.ResponseSystemError, w.dial("broker").ask(req(remoting.RequestGetAllDelayOffset)).Code)
}

func TestACLRequestsAreAnswered(t *testing.T) {
	w := run(t)
	c := w.dial("broker")
	for code := remoting.RequestUpdateAndCreateACLConfig; code <= remoting.RequestGetBrokerClusterACLConfig; code++ {
		a := c.ask(req(code))
		require.Equal(t, remoting.ResponseSystemError, a.Code)
		require.Equal(t, "acl is not enabled", a.Remark)
	}
}

func TestConfigurationIsChecked(t *testing.T) {
	_, err := gateway.Start(nil, gateway.Config{})
	require.ErrorIs(t, err, gateway.ErrConfig)
	for _, name := range []string{"Store", "Disk", "ConfigDir", "Listen"} {
		require.ErrorContains(t, err, name+" is missing")
	}
}

// A node that cannot start leaves nothing running, and the store as it was.
func TestStartThatFailsLeavesNothing(t *testing.T) {
	w := run(t)
	f, err := w.disk.Create("store/config/broken.json")
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("no JSON"), 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	second := actorSystem()
	defer second.Shutdown()
	start := func(change func(*gateway.Config)) error {
		cfg := gateway.Config{Store: w.store, Disk: w.disk, ConfigDir: "elsewhere", Listen: "127.0.0.1:0"}
		change(&cfg)
		n, err := gateway.Start(second.Root, cfg)
		if err == nil {
			err = n.Stop(context.Background())
		}
		return err
	}
	require.Error(t, start(func(c *gateway.Config) { c.Listen = w.node.Addr("broker").String() }), "the port is taken")
	require.Error(t, start(func(c *gateway.Config) { c.KVPath = "store/config/broken.json" }))
	require.NoError(t, start(func(*gateway.Config) {}), "the names and ports are free again")
}
