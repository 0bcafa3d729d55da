package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/cmd/actormq/internal/tools"
	"github.com/actormq/actormq/messages/remoting"
)

// runtimeInfo is what tools show of the node's state.
func (n *testNode) runtimeInfo() map[string]string {
	n.t.Helper()
	var state remoting.KVTable
	require.NoError(n.t, n.ask(remoting.RequestGetBrokerRuntimeInfo, "").DecodeBody(&state))
	return state.Table
}

func TestANodeCopiesTopicsToAnotherAndTellsHowFarItIs(t *testing.T) {
	paris := serve(t)
	berlin := serve(t, "brokerName=berlin", "bridgeNamesrvAddr="+paris.names, "bridgeTarget=paris", "bridgeTopics=orders; bills")
	sent := berlin.produce("orders", numbers(0, 20)...)
	berlin.produce("private", "x")
	berlin.await("orders", sent)
	berlin.eventually(func() bool {
		now := berlin.runtimeInfo()
		return now["bridgeCopied"] == "20" && now["bridgeBehindBytes"] == "0"
	})
	require.Equal(t, "running", berlin.runtimeInfo()["bridgeState"])
	require.Equal(t, "bridge-paris", berlin.runtimeInfo()["bridge"])
	var copies []tools.Line
	paris.eventually(func() bool { copies = paris.consume("--topic", "orders", "--from", "first"); return len(copies) == 20 })
	require.ElementsMatch(t, numbers(0, 20), bodies(t, copies))
	require.Equal(t, "berlin", copies[0].Properties["ACTORMQ_ORIGIN"], "brokerName, as bridgeSide is not set")

	paris.end() // the bridge waits, the node goes on, also through a start
	berlin.produce("orders", "late")
	berlin.eventually(func() bool { return berlin.runtimeInfo()["bridgeLastError"] != "" })
	berlin.end()
	require.NoError(t, berlin.start())
	require.NoError(t, paris.start())
	paris.eventually(func() bool { return len(paris.consume("--topic", "orders", "--from", "first")) == 21 })
}

func TestASlaveCopiesNothingToAnotherSide(t *testing.T) {
	paris := serve(t)
	slave := serve(t, "brokerRole=SLAVE", "brokerId=1", "haMasterAddress=127.0.0.1:1", "bridgeNamesrvAddr="+paris.names, "bridgeTarget=paris")
	require.NotContains(t, slave.runtimeInfo(), "bridge")
}
