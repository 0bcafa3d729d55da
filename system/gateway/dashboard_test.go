package gateway_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
)

// asks are requests of a page to one port.
type asks []*remoting.Command

func body(c *remoting.Command, text string) *remoting.Command {
	c.Body = []byte(text)
	return c
}

// dashboardPages are the requests of rocketmq-dashboard page by page (spec/remoting.md §17.8), for the world of
// TestDashboard: name server first, then the broker.
func dashboardPages(id string) map[string][2]asks {
	route := func(topic string) *remoting.Command { return req(remoting.RequestGetRouteInfoByTopic, "topic", topic) }
	cluster := req(remoting.RequestGetBrokerClusterInfo)
	queue := func(code int, more ...string) *remoting.Command {
		return req(code, append([]string{"topic", "DemoAuto", "queueId", "0"}, more...)...)
	}
	group := func(code int, more ...string) *remoting.Command {
		return req(code, append([]string{"consumerGroup", "cg_long"}, more...)...)
	}
	query := func(topic, key, unique string) *remoting.Command {
		return req(remoting.RequestQueryMessage, "topic", topic, "key", key, "maxNum", "64", "beginTimestamp", "0",
			"endTimestamp", strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10), "_UNIQUE_KEY_QUERY", unique)
	}
	stat := func(name, key string) *remoting.Command {
		return req(remoting.RequestViewBrokerStatsData, "statsName", name, "statsKey", key)
	}
	return map[string][2]asks{
		"Ops": {{cluster, req(remoting.RequestGetAllTopicListFromNameServer)}, {
			req(remoting.RequestGetBrokerRuntimeInfo), stat("TOPIC_PUT_NUMS", "DemoAuto"), stat("GROUP_GET_NUMS", "DemoAuto@cg_long"),
		}},
		"Cluster": {{cluster}, {req(remoting.RequestGetBrokerRuntimeInfo), req(remoting.RequestGetBrokerConfig)}},
		"Topic": {{req(remoting.RequestGetAllTopicListFromNameServer), req(remoting.RequestGetSystemTopicListFromNS), route("DemoAuto"),
			req(remoting.RequestDeleteTopicInNamesrv, "topic", "Made")}, {
			req(remoting.RequestGetSystemTopicListFromBroker), req(remoting.RequestGetAllTopicConfig),
			req(remoting.RequestGetTopicStatsInfo, "topic", "DemoAuto"), req(remoting.RequestQueryTopicConsumeByWho, "topic", "DemoAuto"),
			req(remoting.RequestUpdateAndCreateTopic, "topic", "Made", "defaultTopic", "TBW102", "readQueueNums", "2",
				"writeQueueNums", "2", "perm", "6", "topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false"),
			sending("Made", "from the dashboard"), req(remoting.RequestDeleteTopicInBroker, "topic", "Made"),
			req(remoting.RequestInvokeBrokerToResetOffset, "topic", "DemoAuto", "group", "cg_long", "timestamp", "-1", "isForce", "true"),
			queue(remoting.RequestUpdateConsumerOffset, "consumerGroup", "cg_long", "commitOffset", "1"),
		}},
		"Consumer": {{cluster, route("%RETRY%cg_long")}, {
			req(remoting.RequestGetAllSubscriptionGroupConfig), group(remoting.RequestGetConsumeStats),
			group(remoting.RequestGetConsumeStats, "topic", "DemoAuto"), group(remoting.RequestGetConsumerConnectionList),
			body(req(remoting.RequestUpdateAndCreateSubscriptionGroup), `{"groupName":"cg_new","consumeEnable":true,"retryQueueNums":1}`),
			req(remoting.RequestDeleteSubscriptionGroup, "groupName", "cg_new", "removeOffset", "true"),
		}},
		"Producer": {{route("DemoAuto")}, {req(remoting.RequestGetProducerConnectionList, "producerGroup", "CLIENT_INNER_PRODUCER")}},
		"Message": {{route("DemoAuto")}, {
			queue(remoting.RequestGetMinOffset), queue(remoting.RequestGetMaxOffset),
			queue(remoting.RequestSearchOffsetByTimestamp, "timestamp", "0"),
			pulling("DemoAuto", 0, "consumerGroup", "TOOLS_CONSUMER"), query("DemoAuto", "key-1", "false"), query("DemoAuto", id, "true"),
			req(remoting.RequestViewMessageByID, "offset", "0"), group(remoting.RequestGetConsumeStats, "topic", "DemoAuto"),
		}},
		"DLQ": {{route("%DLQ%cg_long")}, {
			pulling("%DLQ%cg_long", 0, "consumerGroup", "TOOLS_CONSUMER"), query("%DLQ%cg_long", "dead", "false"),
		}},
		"MessageTrace": {{route(messages.TopicTrace)}, {query(messages.TopicTrace, "key-1", "false")}},
	}
}

// Every request of every page of rocketmq-dashboard is answered with success.
func TestDashboard(t *testing.T) {
	w := toolWorld(t)
	long := w.longConsumer()
	broker, names := w.dial("broker"), w.dial("namesrv")
	trace := recordedRequest(t, "send-trace")
	set("i", "KEYS\x01key-1\x02UNIQ_KEY\x01trace")(trace)
	w.settle(broker.ask(trace))
	_, err := w.node.Broker().Topics.EnsureDLQ(t.Context(), "cg_long")
	require.NoError(t, err)
	w.settle(broker.ask(sending("%DLQ%cg_long", "dead", "i", "KEYS\x01dead")))
	view, err := w.store.MessageAt(0)
	require.NoError(t, err)
	id, _ := view.Properties.Get(messages.PropertyUniqKey)

	for page, ports := range dashboardPages(id) {
		t.Run(page, func(t *testing.T) {
			for i, port := range []*client{names, broker} {
				port.t = t
				for _, request := range ports[i] {
					a := port.ask(request)
					require.Equal(t, remoting.ResponseSuccess, a.Code, "%v: %s", request, a.Remark)
				}
			}
		})
	}
	for _, name := range []string{"consumer-running-info", "consume-directly"} {
		request := recordedRequest(t, name)
		if name == "consume-directly" {
			set("msgId", messages.OffsetMessageID(w.node.Broker().StoreHost, 0))(request)
		}
		broker.send(request)
		asked := long.read()
		for asked.IsOneWay() { // it has been told of a reset
			asked = long.read()
		}
		long.send(asked.Answer(remoting.ResponseSuccess, ""))
		require.Equal(t, remoting.ResponseSuccess, broker.response(request).Code, name)
	}
}
