package gateway_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/testkit/frames"
)

// toolScript are the recorded requests of tools that meet a consumer that is online.
var toolScript = []step{
	{name: "consumer-connection"}, {name: "producer-connection"}, {name: "all-producer-info"}, {name: "query-cq"},
	{name: "consume-time-span"}, {name: "consumer-connection-offline"}, {name: "stats-data"}, {name: "consume-stats"},
	{name: "topic-consume-by-who", fix: set("topic", "DemoAuto"), shape: true},
	{name: "correction-offset"}, {name: "pull-filter-data-not-exist", fix: set("subVersion", "0")},
}

// pushScript are requests in which the node asks a client something, and those of the tools that cause it.
var pushScript = []step{
	{name: "notify-consumer-ids-changed"}, {name: "consumer-running-info"}, {name: "consume-directly"}, {name: "reset-offset-admin"},
	{name: "reset-offset-client"}, {name: "reply-send"}, {name: "reply-push"},
}

// recordedRequest is a recorded request, read as the node reads it.
func recordedRequest(t *testing.T, name string) *remoting.Command {
	t.Helper()
	c, err := remoting.ReadCommand(bufio.NewReader(bytes.NewReader(frames.Get(name).Request.Bytes)), remoting.Limits{})
	require.NoError(t, err)
	return c
}

// longConsumer connects the consumer that the recorded tools asked for.
func (w *world) longConsumer() *client {
	w.t.Helper()
	c := w.dial("broker")
	data := remoting.HeartbeatData{
		ClientID: "127.0.0.1@inst-cg_long", ProducerDataSet: []remoting.ProducerData{{GroupName: "CLIENT_INNER_PRODUCER"}},
		ConsumerDataSet: []remoting.ConsumerData{{
			GroupName: "cg_long", ConsumeType: messages.ConsumePassively, MessageModel: messages.Clustering,
			ConsumeFromWhere: "CONSUME_FROM_FIRST_OFFSET",
		}},
	}
	for topic, version := range map[string]int64{"DemoAuto": 1795966400164, "%RETRY%cg_long": 1795966400184} {
		data.ConsumerDataSet[0].SubscriptionDataSet = append(data.ConsumerDataSet[0].SubscriptionDataSet, remoting.SubscriptionData{
			CodeSet: []int32{}, TagsSet: []string{}, ExpressionType: "TAG", SubString: "*", SubVersion: version, Topic: topic,
		})
	}
	beat := req(remoting.RequestHeartbeat)
	var err error
	beat.Body, err = json.Marshal(data)
	require.NoError(w.t, err)
	c.join(beat)
	return c
}

// toolWorld is a node as the recorded tools found theirs.
func toolWorld(t *testing.T) *world {
	t.Helper()
	w := run(t, recordedSetup)
	b := w.node.Broker()
	w.topic("DemoAuto", 2)
	c := w.dial("broker")
	for _, name := range []string{"send-v2", "send-v2-oneway", "acl-signed-send", "send-v2-binary"} {
		send := recordedRequest(t, name)
		send.Flag &^= remoting.FlagOneWay // its answer says when it can be read
		w.settle(c.ask(send))
	}
	for _, group := range []string{"cg_long", "cg_sql", "cg_made"} {
		require.NoError(t, b.Groups.Update(t.Context(), metadata.SubscriptionGroupConfig{
			GroupName: group, ConsumeEnable: true, NotifyConsumerIDsChangedEnable: true, RetryQueueNums: 1, RetryMaxTimes: 16,
		}))
		for id, at := range []messages.QueueOffset{1, 0} {
			q := messages.QueueKey{Topic: "DemoAuto", QueueID: int32(id)}
			require.NoError(t, b.Offsets.CommitWait(t.Context(), group, q, map[bool]messages.QueueOffset{true: 0, false: at}[group == "cg_made"]))
		}
	}
	_, err := b.Topics.EnsureRetry(t.Context(), "cg_sql", 1, false)
	require.NoError(t, err)
	return w
}

func TestReplayOfToolRequests(t *testing.T) {
	w := toolWorld(t)
	w.longConsumer()
	c := w.dial("broker")
	bad := subscribing("cg_badsql", "DemoAuto", "color === ", 1)
	w.dial("broker").ask(bad)
	for _, s := range toolScript {
		t.Run(s.name, func(t *testing.T) {
			c.t = t
			request := recordedRequest(t, s.name)
			if s.fix != nil {
				s.fix(request)
			}
			compare(t, frames.Get(s.name).Response, c.ask(request), request, s)
		})
	}
}

// comparePush holds a request of the node against the recorded one.
func comparePush(t *testing.T, name string, got *remoting.Command) {
	t.Helper()
	compareHeader(t, frames.Get(name).Request, got)
	want := frames.Get(name).Request
	if strings.HasPrefix(want.BodyText, "{") {
		require.Equal(t, leveled(t, want.Body()), leveled(t, got.Body))
		require.Equal(t, json.Valid(want.Body()), json.Valid(got.Body), "keys that are objects stay so")
		return
	}
	require.Equal(t, string(want.Body()), string(got.Body))
}

// relayed plays a tool's request that a client answers: what the client gets and what the tool gets are the recorded ones.
func relayed(t *testing.T, tool, consumer *client, s step, request *remoting.Command) {
	t.Helper()
	recorded := frames.Get(s.name).Response
	tool.send(request)
	asked := consumer.read()
	require.Equal(t, request.Code, asked.Code)
	for _, pair := range request.ExtFields {
		require.Equal(t, pair.Value, ext(asked, pair.Name))
	}
	answer := asked.Answer(recorded.Header.Code, recorded.Header.Remark)
	answer.Body = recorded.Body()
	consumer.send(answer)
	got := tool.response(request)
	require.Equal(t, recorded.Body(), got.Body, "byte for byte")
	compare(t, recorded, got, request, s)
}

func TestReplayOfRequestsToClients(t *testing.T) {
	w := toolWorld(t)
	consumer := w.dial("broker")
	comparePush(t, "notify-consumer-ids-changed", consumer.join(recordedRequest(t, "heartbeat-consumer-java")))

	long, tool := w.longConsumer(), w.dial("broker")
	relayed(t, tool, long, step{name: "consumer-running-info"}, recordedRequest(t, "consumer-running-info"))
	direct := recordedRequest(t, "consume-directly")
	set("msgId", messages.OffsetMessageID(w.node.Broker().StoreHost, 0))(direct)
	relayed(t, tool, long, step{name: "consume-directly"}, direct)

	reset := recordedRequest(t, "reset-offset-admin")
	answer := tool.ask(reset)
	push := long.read()
	want := frames.Get("reset-offset-client").Request
	compareHeader(t, want, push)
	require.Equal(t, members(t, want.Body()), members(t, push.Body))
	require.False(t, json.Valid(push.Body), "keys that are objects stay so")
	compare(t, frames.Get("reset-offset-admin").Response, answer, reset, step{shape: true})
	require.Equal(t, jsonOf(t, answer.Body), jsonOf(t, push.Body), "the tool is told what the clients are told")

	requester := w.dial("broker")
	asking := req(remoting.RequestHeartbeat)
	asking.Body = []byte(`{"clientID":"127.0.0.1@inst-req","producerDataSet":[{"groupName":"pg_req"}]}`)
	requester.ask(asking)
	reply := recordedRequest(t, "reply-send")
	tool.send(reply)
	pushed := requester.read()
	comparePush(t, "reply-push", pushed)
	requester.send(pushed.Answer(remoting.ResponseSuccess, ""))
	compare(t, frames.Get("reply-send").Response, tool.response(reply), reply, step{})
}

// aclScript are the recorded requests to a broker with access control.
var aclScript = []step{
	{name: "acl-bad-signature", remark: "AclException: Check signature failed for accessKey=DemoUser01"},
	{name: "acl-no-key", remark: "AclException: No accessKey is configured"},
	{name: "acl-need-admin", remark: "AclException: Need admin permission for request code=17, but accessKey=DemoUser01 is not"},
}

func TestReplayOfGuardedRequests(t *testing.T) {
	w := run(t, recordedSetup, func(c *gateway.Config) {
		c.ACLFile = "conf/plain_acl.yml"
		require.NoError(t, metadata.WriteText(c.Disk, c.ACLFile, []byte(
			"accounts:\n- accessKey: DemoUser01\n  secretKey: DemoSecret01\n  topicPerms: [DemoAuto=PUB|SUB]\n")))
	})
	c := w.dial("broker")
	signed := recordedRequest(t, "acl-signed-send")
	compare(t, frames.Get("acl-signed-send").Response, c.ask(signed), signed, step{})
	for _, s := range aclScript {
		t.Run(s.name, func(t *testing.T) {
			request := recordedRequest(t, s.name)
			compare(t, frames.Get(s.name).Response, c.ask(request), request, s)
		})
	}
	// Two answers are better than the recorded ones on purpose.
	query := c.ask(recordedRequest(t, "acl-query-message-mismatch"))
	require.NotContains(t, query.Remark, "AclException", "4.9.7 refuses every signed query by key")
	require.Contains(t, c.ask(recordedRequest(t, "acl-update-by-non-admin")).Remark, "Need admin permission",
		"4.9.7 lets anybody with an account make others")
}
