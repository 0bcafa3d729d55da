package gateway_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway"
)

func filtering(c *gateway.Config) { c.Broker.Policy.FilterByProperty = true }

// subscribing is a heartbeat of a consumer with an SQL92 expression.
func subscribing(group, topic, expression string, version int64) *remoting.Command {
	return beating("id", group, topic, version, func(d *remoting.ConsumerData) {
		d.SubscriptionDataSet[0].ExpressionType, d.SubscriptionDataSet[0].SubString = "SQL92", expression
	})
}

// numbered sends messages 0 … n−1, each with its number as the property i.
func (w *world) numbered(topic string, from, to int) {
	w.t.Helper()
	for i := from; i < to; i++ {
		w.fill(topic, 1, "i", fmt.Sprintf("i\x01%d", i))
	}
}

func TestSQL92SubscriptionOfAHeartbeat(t *testing.T) {
	w := run(t, filtering)
	w.topic("T", 1)
	w.numbered("T", 0, 6)
	c := w.dial("broker")
	require.Equal(t, remoting.ResponseSuccess, c.ask(subscribing("g", "T", "i BETWEEN 2 AND 3", 5)).Code)
	a := c.ask(pulling("T", 0, "sysFlag", "0", "subVersion", "5"))
	require.Equal(t, remoting.ResponseSuccess, a.Code, a.Remark)
	require.Len(t, bodies(t, a), 2)
	require.Equal(t, "6", ext(a, "nextBeginOffset"))
	a = c.ask(pulling("T", 4, "sysFlag", "0", "subVersion", "5"))
	require.Equal(t, remoting.ResponsePullRetryImmediately, a.Code, "nothing that is wanted: go on behind it")
	require.Equal(t, "6", ext(a, "nextBeginOffset"))

	require.Equal(t, remoting.ResponseSubscriptionNotLatest, c.ask(pulling("T", 0, "sysFlag", "0", "subVersion", "6")).Code)
	c.ask(subscribing("g", "T", "i = 5", 6))
	require.Len(t, bodies(t, c.ask(pulling("T", 0, "sysFlag", "0", "subVersion", "6"))), 1, "a newer version replaces the expression")
	c.ask(subscribing("g", "T", "i = 4", 6))
	require.Len(t, bodies(t, c.ask(pulling("T", 5, "sysFlag", "0", "subVersion", "6"))), 1, "an equal one does not")
	c.ask(subscribing("g", "T", "i >", 7))
	require.Equal(t, remoting.ResponseFilterDataNotExist, c.ask(pulling("T", 0, "sysFlag", "0", "subVersion", "7")).Code)
}

// A pull looks beyond the first messages that its filter does not want.
func TestAPullGoesOnBehindUnwantedMessages(t *testing.T) {
	w := run(t, filtering)
	w.topic("T", 1)
	w.fill("T", 100)
	w.fill("T", 1, "i", "i\x011")
	a := w.dial("broker").ask(pulling("T", 0, "subscription", "i = 1", "expressionType", "SQL92"))
	require.Equal(t, remoting.ResponseSuccess, a.Code)
	require.Len(t, bodies(t, a), 1)
	require.Equal(t, "101", ext(a, "nextBeginOffset"))
}

// A held pull stays held when what comes is not wanted, and goes on behind it.
func TestLongPollingByProperty(t *testing.T) {
	w := run(t, filtering)
	w.topic("T", 1)
	c := w.dial("broker")
	c.ask(subscribing("g", "T", "i > 2", 1))
	held := pulling("T", 0, "sysFlag", "2", "subVersion", "1", "suspendTimeoutMillis", "600000")
	c.send(held)
	require.Equal(t, remoting.ResponseSuccess, c.ask(req(remoting.RequestGetMaxOffset, "topic", "T", "queueId", "0")).Code)
	w.numbered("T", 0, 3)
	c.silent()
	w.numbered("T", 3, 4)
	a := c.response(held)
	require.Equal(t, remoting.ResponseSuccess, a.Code, a.Remark)
	require.Len(t, bodies(t, a), 1)
	require.Equal(t, "4", ext(a, "nextBeginOffset"))
}

// What came in vain is not looked at again by the next pull.
func TestHeldPullByPropertyExpiresBehindWhatCame(t *testing.T) {
	w := run(t, filtering)
	w.topic("T", 1)
	w.group("g")
	c := w.dial("broker")
	held := pulling("T", 0, "sysFlag", "6", "subscription", "i = 9", "expressionType", "SQL92", "suspendTimeoutMillis", "300")
	c.send(held)
	w.numbered("T", 0, 1)
	a := c.response(held)
	require.Contains(t, []int{remoting.ResponsePullNotFound, remoting.ResponsePullRetryImmediately}, a.Code)
	require.Equal(t, "1", ext(a, "nextBeginOffset"))
}

func TestSQL92IsOffUnlessItIsTurnedOn(t *testing.T) {
	w := run(t)
	w.topic("T", 1)
	c := w.dial("broker")
	c.ask(subscribing("g", "T", "i = 1", 1))
	for _, pull := range []*remoting.Command{
		pulling("T", 0, "sysFlag", "0"), pulling("T", 0, "subscription", "i = 1", "expressionType", "SQL92"),
	} {
		a := c.ask(pull)
		require.Equal(t, remoting.ResponseSystemError, a.Code)
		require.Equal(t, "The broker does not support consumer to filter message by SQL92", a.Remark)
	}
}

func TestRetriedMessagesAreFilteredOnRequest(t *testing.T) {
	for _, on := range []bool{false, true} {
		w := run(t, filtering, func(c *gateway.Config) { c.Broker.Policy.FilterRetries = on })
		w.topic("T", 1)
		c := w.dial("broker")
		c.ask(subscribing("g", "T", "i = 1", 1))
		retry := messages.RetryTopicPrefix + "g"
		for _, properties := range []string{
			"RETRY_TOPIC\x01T\x02i\x011", "RETRY_TOPIC\x01T\x02i\x012", "RETRY_TOPIC\x01Other\x02i\x012", "i\x012",
		} {
			w.fill(retry, 1, "i", properties)
		}
		a := c.ask(pulling(retry, 0))
		require.Equal(t, remoting.ResponseSuccess, a.Code, a.Remark)
		want := map[bool]int{false: 4, true: 3}[on]
		require.Len(t, bodies(t, a), want, "filterSupportRetry=%v: only the one of T with another number is left out", on)
	}
}
