package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/remoting"
)

func (n *testNode) ask(code int, body string) *remoting.Command {
	n.t.Helper()
	request := &remoting.Command{Code: code, Version: remoting.Version, Body: []byte(body)}
	answer, err := n.client().Call(n.t.Context(), n.broker, request)
	require.NoError(n.t, err)
	return answer
}

// A tool changes options of a running node: they hold at once, all or none, and only for as long as it runs.
func TestOptionsOfARunningNode(t *testing.T) {
	n := serve(t)
	filtered := func() int {
		return n.ask(remoting.RequestCheckClientConfig,
			`{"subscriptionData":{"expressionType":"SQL92","subString":"a = 1","topic":"T"}}`).Code
	}
	require.Equal(t, remoting.ResponseSystemError, filtered())
	require.Contains(t, string(n.ask(remoting.RequestGetBrokerConfig, "").Body), "enablePropertyFilter=false\n")

	require.Equal(t, remoting.ResponseSuccess, n.ask(remoting.RequestUpdateBrokerConfig, "enablePropertyFilter=true\ntraceOn=false\n").Code)
	require.Equal(t, remoting.ResponseSuccess, filtered())
	require.Contains(t, string(n.ask(remoting.RequestGetBrokerConfig, "").Body), "enablePropertyFilter=true\n")

	for body, why := range map[string]string{
		"enablePropertyFilter=false\nstorePathRootDir=/elsewhere\n": "storePathRootDir can't be changed while the node runs",
		"enablePropertyFilter=false\nlistenPort=1\n":                "listenPort can't be changed",
		"enablePropertyFilter=false\nuseTLS=true\n":                 "useTLS can't be changed",
		"enablePropertyFilter=false\nbrokerPermission=9\n":          "allowed is 2 to 6",
		"enablePropertyFilter=false\nnoSuchKey=9\n":                 "unknown key noSuchKey",
		"enablePropertyFilter=false\ndeleteWhen=25\n":               "25",
	} {
		a := n.ask(remoting.RequestUpdateBrokerConfig, body)
		require.Equal(t, remoting.ResponseNoPermission, a.Code, body)
		require.Contains(t, a.Remark, why)
	}
	require.Equal(t, remoting.ResponseSuccess, filtered(), "nothing of a refused change holds")

	n.end()
	require.NoError(t, n.start())
	require.Equal(t, remoting.ResponseSystemError, filtered(), "what was configured")
}

// exportConfigs of mqadmin fails for a broker that does not tell one of these.
func TestOptionsThatToolsRead(t *testing.T) {
	n := serve(t)
	options := string(n.ask(remoting.RequestGetBrokerConfig, "").Body)
	for _, key := range []string{
		"brokerClusterName", "brokerId", "brokerName", "brokerRole", "filterServerNums", "flushDiskType", "maxMessageSize",
		"messageDelayLevel", "msgTraceTopicName", "slaveReadEnable", "traceOn", "traceTopicEnable", "useTLS", "autoCreateTopicEnable",
		"autoCreateSubscriptionGroup", "listenPort", "fileReservedTime",
	} {
		require.Regexp(t, `(?m)^`+key+`=.`, options)
	}
	require.Contains(t, options, "storePathRootDir="+n.dir+"\n", "the one in use")
	require.Contains(t, options, "brokerIP1=127.0.0.1\n")
}

// Tools see how far each delay level is: 45 as followers ask for it, and among the values of the broker's state.
func TestDelayLevelsThatToolsRead(t *testing.T) {
	n := serve(t)
	_, _, err := run("produce", "--namesrv", n.names, "--topic", "T", "--property", "DELAY=1", "a", "b", "c")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		var offsets remoting.DelayOffsetTable
		require.NoError(t, n.ask(remoting.RequestGetAllDelayOffset, "").DecodeBody(&offsets))
		return offsets.OffsetTable[1] == 3
	}, time.Minute, 20*time.Millisecond)
	var state remoting.KVTable
	require.NoError(t, n.ask(remoting.RequestGetBrokerRuntimeInfo, "").DecodeBody(&state))
	require.Equal(t, "3,3", state.Table["scheduleMessageOffset_1"])
	require.NotContains(t, state.Table, "scheduleMessageOffset_2")
}
