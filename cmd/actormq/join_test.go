package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/remoting"
)

// joined starts a node without a name server of its own that registers at another node's.
func joined(t *testing.T, at *testNode, name string) *testNode {
	t.Helper()
	n := serve(t, "brokerName="+name, "namesrvAddr="+at.names, "namesrvListen=")
	n.names = at.names
	return n
}

// knows waits until the name server's route of a topic has exactly these brokers.
func (n *testNode) knows(topic string, brokers ...string) {
	n.t.Helper()
	c := n.client()
	n.eventually(func() bool {
		route, err := c.Route(n.t.Context(), topic)
		if err != nil || len(route.QueueDatas) != len(brokers) {
			return false
		}
		for i, b := range brokers {
			if route.QueueDatas[i].BrokerName != b {
				return false
			}
		}
		return true
	})
}

// eventually waits for a state that nobody announces.
func (n *testNode) eventually(state func() bool) {
	n.t.Helper()
	for deadline := time.After(time.Minute); !state(); {
		select {
		case <-deadline:
			require.FailNow(n.t, "the state was not reached")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestANodeJoinsAtAnothersNameServer(t *testing.T) {
	first := serve(t)
	second := joined(t, first, "broker-b")
	first.knows("TBW102", "broker-a", "broker-b")

	_, _, err := run("produce", "--namesrv", first.names, "--topic", "orders", "1", "2", "3", "4", "5", "6", "7", "8")
	require.NoError(t, err)
	first.knows("orders", "broker-a", "broker-b")

	require.NoError(t, second.stop(t.Context()))
	second.node = nil
	first.knows("orders", "broker-a")
	require.NoError(t, second.start())
	first.knows("orders", "broker-a", "broker-b")

	first.end() // and with it the name server
	require.NoError(t, first.start())
	first.knows("orders", "broker-a", "broker-b")
}

func TestANodeRegistersCompressedAndOnlyWhatHasChanged(t *testing.T) {
	first := serve(t)
	n := serve(t, "brokerName=broker-b", "namesrvAddr="+first.names, "compressedRegister=true", "forceRegister=false")
	first.knows("TBW102", "broker-a", "broker-b")
	n.produce("only-here", "x")
	first.knows("only-here", "broker-b")
}

func TestAnotherBrokerOfTheSameNameIsRefused(t *testing.T) {
	first := serve(t)
	c := first.client()
	h := remoting.RegisterBrokerHeader{BrokerName: "broker-a", BrokerAddr: "203.0.113.1:10911", ClusterName: "DefaultCluster", HAServerAddr: "x"}
	a, err := c.Call(t.Context(), first.names, remoting.NewRequest(remoting.RequestRegisterBroker, &h))
	require.NoError(t, err)
	require.Equal(t, remoting.ResponseSystemError, a.Code)
	route, err := c.Route(t.Context(), "TBW102")
	require.NoError(t, err)
	require.Equal(t, map[int64]string{0: first.broker}, route.BrokerDatas[0].BrokerAddrs)
	h.BrokerID = 1
	a, err = c.Call(t.Context(), first.names, remoting.NewRequest(remoting.RequestRegisterBroker, &h))
	require.NoError(t, err)
	var answer remoting.RegisterBrokerAnswer
	require.NoError(t, remoting.FromExt(a.ExtFields, &answer))
	require.Equal(t, first.broker, answer.MasterAddr, "a slave is told its master")
	require.NotEmpty(t, answer.HAServerAddr)
}
