package gateway_test

import (
	"bufio"
	"bytes"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/testkit/frames"
)

// The registrations that brokers of RocketMQ sent are answered as its name server did.
func TestRegistrationsOfOtherBrokersReplayed(t *testing.T) {
	w := run(t, func(c *gateway.Config) { c.Broker.BrokerName = "node-x" })
	c := w.dial("namesrv")
	for _, name := range []string{
		"register-broker-json", "register-broker-oneway", "register-broker-slave", "query-data-version", "register-broker-compressed", "unregister-broker",
	} {
		recorded := frames.Get(name)
		r, err := remoting.ReadCommand(bufio.NewReader(bytes.NewReader(recorded.Request.Bytes)), remoting.Limits{})
		require.NoError(t, err, name)
		if recorded.Response == nil {
			c.send(r)
			continue
		}
		a := c.ask(r)
		require.Equal(t, recorded.Response.Header.Code, a.Code, "%s: %s", name, a.Remark)
		var keys []string
		for _, p := range a.ExtFields {
			keys = append(keys, p.Name)
		}
		slices.Sort(keys)
		require.Equal(t, slices.Sorted(maps.Keys(recorded.Response.Header.ExtFields)), keys, name)
	}
}

// A node of a group that is cut off knows nobody who leads; a client that was told so would stay with it.
func TestANameServerThatIsCutOffSendsClientsToAnother(t *testing.T) {
	var alone atomic.Bool
	w := run(t, func(c *gateway.Config) { c.Alone = alone.Load })
	w.topic("T", 2)
	c := w.dial("namesrv")
	require.Equal(t, remoting.ResponseSuccess, c.ask(req(remoting.RequestGetRouteInfoByTopic, "topic", "T")).Code)
	alone.Store(true)
	c.send(req(remoting.RequestGetRouteInfoByTopic, "topic", "T"))
	c.gone()
	alone.Store(false)
	require.Equal(t, remoting.ResponseSuccess, w.dial("namesrv").ask(req(remoting.RequestGetRouteInfoByTopic, "topic", "T")).Code)
}

func TestRoutesOfOtherBrokers(t *testing.T) {
	w := run(t)
	w.topic("both", 2)
	names := w.dial("namesrv")
	registering := w.dial("namesrv")
	register := func(h remoting.RegisterBrokerHeader, topics ...string) *remoting.Command {
		body := remoting.RegisterBrokerBody{FilterServerList: []string{}, TopicConfigSerializeWrapper: remoting.TopicConfigTable{
			DataVersion: remoting.DataVersion{Counter: 1}, TopicConfigTable: map[string]remoting.TopicConfig{},
		}}
		for _, name := range topics {
			body.TopicConfigSerializeWrapper.TopicConfigTable[name] = remoting.TopicConfig{TopicName: name, Perm: 6, ReadQueueNums: 3, WriteQueueNums: 3}
		}
		text, err := body.Encode(&h, true)
		require.NoError(t, err)
		r := req(remoting.RequestRegisterBroker)
		r.ExtFields, r.Body = remoting.ToExt(&h), text
		return registering.ask(r)
	}
	other := remoting.RegisterBrokerHeader{BrokerName: "broker-b", BrokerAddr: "10.0.0.2:10911", ClusterName: "Other", HAServerAddr: "10.0.0.2:10912"}
	require.Equal(t, remoting.ResponseSuccess, register(other, "both", "theirs").Code)
	route := func(topic string) (found remoting.TopicRouteData) {
		a := names.ask(req(remoting.RequestGetRouteInfoByTopic, "topic", topic))
		if a.Code == remoting.ResponseSuccess {
			require.NoError(t, a.DecodeBody(&found))
		}
		return found
	}
	require.Len(t, route("both").BrokerDatas, 2)
	require.Equal(t, map[int64]string{0: "10.0.0.2:10911"}, route("theirs").BrokerDatas[0].BrokerAddrs)
	list := func(code int, pairs ...string) []string {
		var l remoting.TopicList
		require.NoError(t, names.ask(req(code, pairs...)).DecodeBody(&l))
		return l.TopicList
	}
	require.Contains(t, list(remoting.RequestGetAllTopicListFromNameServer), "theirs")
	require.Equal(t, []string{"both", "theirs"}, list(remoting.RequestGetTopicsByCluster, "cluster", "Other"))
	require.Subset(t, list(remoting.RequestGetSystemTopicListFromNS), []string{"MadeUpCluster", "broker-a", "Other", "broker-b"})
	var info remoting.ClusterInfo
	require.NoError(t, names.ask(req(remoting.RequestGetBrokerClusterInfo)).DecodeBody(&info))
	require.Equal(t, map[string][]string{"MadeUpCluster": {"broker-a"}, "Other": {"broker-b"}}, info.ClusterAddrTable)

	a := names.ask(req(remoting.RequestWipeWritePermOfBroker, "brokerName", "broker-b"))
	require.Equal(t, "2", ext(a, "wipeTopicCount"))
	require.EqualValues(t, 4, route("theirs").QueueDatas[0].Perm)
	names.ask(req(remoting.RequestAddWritePermOfBroker, "brokerName", "broker-b"))
	require.EqualValues(t, 6, route("theirs").QueueDatas[0].Perm)
	names.ask(req(remoting.RequestDeleteTopicInNamesrv, "topic", "theirs"))
	require.Empty(t, route("theirs").QueueDatas)

	other.BodyCRC32 = 0
	r := req(remoting.RequestRegisterBroker)
	bad := other
	bad.BodyCRC32, r.Body = 7, []byte("{}")
	r.ExtFields = remoting.ToExt(&bad)
	a = registering.ask(r)
	require.Equal(t, "crc32 not match", a.Remark)
	require.NoError(t, registering.sock.Close())
	w.eventually(func() bool { return len(route("both").BrokerDatas) == 1 })
}
