package gateway_test

import (
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/testkit/fixture"
)

// TestWhatToolsChangeIsInTheLog: who asked for what, and the code of the answer; no secret, and nothing of those who only look.
func TestWhatToolsChangeIsInTheLog(t *testing.T) {
	log := new(fixture.Said)
	w := run(t, func(c *gateway.Config) { c.Broker.Logger = zerolog.New(log) })
	c := w.dial("broker")
	a := c.ask(req(remoting.RequestUpdateAndCreateTopic, "topic", "orders", "defaultTopic", "TBW102", "readQueueNums", "4", "writeQueueNums", "4",
		"perm", "6", "topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false", "Signature", "s3cret", "secretKey", "s3cret"))
	require.Equal(t, remoting.ResponseSuccess, a.Code, a.Remark)
	line := log.String()
	for _, part := range []string{`"audit":true`, `"request":"UPDATE_AND_CREATE_TOPIC"`, `"from":"` + c.sock.LocalAddr().String(), `"field.topic":"orders"`, `"code":0`} {
		require.Contains(t, line, part)
	}
	require.NotContains(t, line, "s3cret")
	require.NotEqual(t, remoting.ResponseSuccess, c.ask(req(remoting.RequestDeleteTopicInBroker, "topic", "TBW102")).Code)
	require.Contains(t, log.String(), `"request":"DELETE_TOPIC_IN_BROKER"`)
	before := log.String()
	c.ask(req(remoting.RequestGetTopicStatsInfo, "topic", "orders"))
	require.Equal(t, before, log.String())
}
