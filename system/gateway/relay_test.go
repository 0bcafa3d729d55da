package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway"
)

// nobody is a group in which nobody else leads.
func nobody(leaderless bool) func(*gateway.Config) {
	return func(c *gateway.Config) {
		c.Group = &gateway.Group{
			Leader: func() (string, <-chan struct{}) { return "", make(chan struct{}) }, Leaderless: func() bool { return leaderless },
		}
	}
}

func TestAConsumerThatIsRelayedCountsOnce(t *testing.T) {
	w := run(t, nobody(true))
	w.topic("T", 1)
	relayed, direct := w.dial("broker"), w.dial("broker")
	require.Equal(t, remoting.ResponseSuccess, relayed.ask(req(remoting.RequestRelayBroker)).Code)
	list := func() []string {
		return decoded[remoting.ConsumerList](t, direct.ask(req(remoting.RequestGetConsumerListByGroup, "consumerGroup", "g"))).ConsumerIDList
	}
	require.Equal(t, remoting.ResponseSuccess, relayed.ask(beating("id", "g", "T", 1)).Code)
	require.Equal(t, []string{"id"}, list())
	require.Equal(t, remoting.ResponseSuccess, direct.ask(beating("id", "g", "T", 1)).Code)
	require.Equal(t, []string{"id"}, list())
}

// A follower is no end of a relay; its name server names it while nobody has registered as the leader; and readers whom nobody leads are given
// what it has.
func TestAFollowerWithoutALeader(t *testing.T) {
	w := run(t, nobody(true), func(c *gateway.Config) { c.Broker.BrokerID = 2 })
	w.topic("T", 1)
	_, err := w.store.Put(t.Context(), &messages.Message{Topic: "T", Body: []byte("m0")})
	require.NoError(t, err)
	w.eventually(func() bool { return w.store.MaxOffset(messages.QueueKey{Topic: "T"}) == 1 })
	c := w.dial("broker")
	require.Equal(t, remoting.ResponseServiceNotAvailable, c.ask(req(remoting.RequestRelayBroker)).Code)
	route := decoded[remoting.TopicRouteData](t, w.dial("namesrv").ask(req(remoting.RequestGetRouteInfoByTopic, "topic", "T")))
	require.Equal(t, route.BrokerDatas[0].BrokerAddrs[2], route.BrokerDatas[0].BrokerAddrs[0])
	require.Equal(t, []string{"m0"}, bodies(t, c.ask(pulling("T", 0))))
	require.EqualValues(t, 0, w.node.Broker().Relayed.All.Load())
}

// What only a leader can promise is not promised by a follower, for however long nobody has led.
func TestAFollowerWithoutALeaderPromisesNothing(t *testing.T) {
	w := run(t, nobody(true), func(c *gateway.Config) { c.Broker.BrokerID = 2 })
	w.topic("T", 1)
	c := w.dial("broker")
	for n, code := range []int{remoting.RequestLockBatchMQ, remoting.RequestUnlockBatchMQ, remoting.RequestUpdateConsumerOffset} {
		c.send(req(code, "consumerGroup", "g", "topic", "T", "queueId", "0", "commitOffset", "1"))
		w.eventually(func() bool { return w.node.Broker().Relayed.All.Load() == int64(n+1) })
	}
}
