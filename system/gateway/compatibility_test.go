package gateway_test

import (
	"errors"
	"io"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system/gateway"
)

// compatibilityRow is a row of the table of requests in docs/COMPATIBILITY.md.
type compatibilityRow struct{ name, at, here string }

func compatibilityRows(t *testing.T) map[int]compatibilityRow {
	t.Helper()
	text, err := os.ReadFile("../../docs/COMPATIBILITY.md")
	require.NoError(t, err)
	rows := map[int]compatibilityRow{}
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \| (\w+) \| (\w+) \| (\w+) \| .+ \|$`).FindAllStringSubmatch(string(text), -1) {
		code, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		require.NotContains(t, rows, code)
		rows[code] = compatibilityRow{name: m[2], at: m[3], here: m[4]}
	}
	return rows
}

// answered tells whether a port has a handler for a request code. A handler may close the connection instead of answering.
func (w *world) answered(port string, code int) bool {
	w.t.Helper()
	c := w.dial(port)
	request := req(code)
	c.send(request)
	require.NoError(w.t, c.sock.SetReadDeadline(time.Now().Add(patience)))
	a, err := remoting.ReadCommand(c.in, remoting.Limits{})
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return true
	}
	require.NoError(w.t, err, "%d is not answered", code)
	return a.Code != remoting.ResponseRequestCodeNotSupported
}

// Every request code of RocketMQ 4.9.7 has a row in docs/COMPATIBILITY.md, and the node does what the row says.
func TestTheTableOfRequests(t *testing.T) {
	rows := compatibilityRows(t)
	w := run(t)
	const beyond = 1000 // every code of 4.9.7 is below
	for code := range beyond {
		row, listed := rows[code]
		known := remoting.RequestName(code) != strconv.Itoa(code)
		require.Equal(t, known, listed, "%d %s", code, remoting.RequestName(code))
		if listed {
			require.Equal(t, remoting.RequestName(code), row.name)
		}
		if row.here == "coming" {
			continue
		}
		takes := row.here == "answered"
		require.Equal(t, takes && row.at != "N", w.answered("broker", code), "%d at the broker's port: %+v", code, row)
		require.Equal(t, takes && row.at == "N", w.answered("namesrv", code), "%d at the name server's port: %+v", code, row)
	}
	for _, code := range []int{200050, 200060, 999} {
		require.False(t, w.answered("broker", code))
		require.False(t, w.answered("namesrv", code), "4.9.7 leaves the caller waiting")
	}
}

// What is right by an option instead of what 4.9.7 does.
func TestStrictPermission(t *testing.T) {
	w := run(t)
	w.topic("T", 1)
	require.NoError(t, w.node.Broker().Topics.Update(t.Context(), metadata.TopicConfig{
		TopicName: "R", ReadQueueNums: 1, WriteQueueNums: 1, Perm: metadata.PermRead,
	}))
	c := w.dial("broker")
	require.Equal(t, remoting.ResponseSuccess, c.ask(sending("R", "m")).Code, "as 4.9.7: clients look at the route")
	policy := *w.node.Broker().Policy()
	policy.CheckWrites = true
	w.node.Broker().SetPolicy(policy)
	require.Equal(t, remoting.ResponseNoPermission, c.ask(sending("R", "m")).Code)
	require.Equal(t, remoting.ResponseSuccess, c.ask(sending("T", "m")).Code)
	policy.Perm = metadata.PermRead
	w.node.Broker().SetPolicy(policy)
	require.Equal(t, remoting.ResponseNoPermission, c.ask(sending("T", "m")).Code)
}

func TestBackwardCommitsAreRefusedOnRequest(t *testing.T) {
	for _, refused := range []bool{false, true} {
		w := run(t, func(c *gateway.Config) { c.RefuseBackward = refused })
		c := w.dial("broker")
		for _, at := range []string{"9", "4"} {
			c.ask(req(remoting.RequestUpdateConsumerOffset, "consumerGroup", "g", "topic", "T", "queueId", "0", "commitOffset", at))
		}
		a := c.ask(req(remoting.RequestQueryConsumerOffset, "consumerGroup", "g", "topic", "T", "queueId", "0"))
		require.Equal(t, map[bool]string{false: "4", true: "9"}[refused], ext(a, "offset"))
	}
}

func TestSendsAreRefusedBeforeTheirTime(t *testing.T) {
	w := run(t, func(c *gateway.Config) { c.Broker.Policy.AcceptFromMs = time.Now().Add(time.Hour).UnixMilli() })
	w.topic("T", 1)
	a := w.dial("broker").ask(sending("T", "m"))
	require.Equal(t, remoting.ResponseSystemError, a.Code)
	require.Contains(t, a.Remark, "broker unable to service, until 20")
	require.Equal(t, "DefaultRegion", ext(a, "MSG_REGION"), "as every answer to a send")
}

func TestRepliesAreOnlyPushedOnRequest(t *testing.T) {
	w := run(t, func(c *gateway.Config) { c.Broker.Policy.DropReplies = true })
	reply := recordedRequest(t, "reply-send-no-client")
	a := w.dial("broker").ask(reply)
	require.Equal(t, remoting.ResponseSystemError, a.Code)
	require.Contains(t, a.Remark, "[REPLY_TO_CLIENT] is null")
	require.Equal(t, "0", ext(a, "msgId"))
	_, end := w.store.LogRange()
	require.Zero(t, end, "nothing is stored")
}
