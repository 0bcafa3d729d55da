package gateway_test

import (
	"bytes"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway"
)

// kept is a log that can be read while it is written.
type kept struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (k *kept) Write(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.b.Write(b)
}

func (k *kept) text() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.b.String()
}

// TestWhatToolsChangeIsInTheLog: who asked for what, and the code of the answer; no secret, and nothing of those who only look.
func TestWhatToolsChangeIsInTheLog(t *testing.T) {
	log := &kept{}
	w := run(t, func(c *gateway.Config) { c.Broker.Logger = zerolog.New(log) })
	c := w.dial("broker")
	a := c.ask(req(remoting.RequestUpdateAndCreateTopic, "topic", "orders", "defaultTopic", "TBW102", "readQueueNums", "4", "writeQueueNums", "4",
		"perm", "6", "topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false", "Signature", "s3cret", "secretKey", "s3cret"))
	require.Equal(t, remoting.ResponseSuccess, a.Code, a.Remark)
	line := log.text()
	for _, part := range []string{`"audit":true`, `"request":"UPDATE_AND_CREATE_TOPIC"`, `"from":"` + c.sock.LocalAddr().String(), `"field.topic":"orders"`, `"code":0`} {
		require.Contains(t, line, part)
	}
	require.NotContains(t, line, "s3cret")
	require.NotEqual(t, remoting.ResponseSuccess, c.ask(req(remoting.RequestDeleteTopicInBroker, "topic", "TBW102")).Code)
	require.Contains(t, log.text(), `"request":"DELETE_TOPIC_IN_BROKER"`)
	before := log.text()
	c.ask(req(remoting.RequestGetTopicStatsInfo, "topic", "orders"))
	require.Equal(t, before, log.text())
}
