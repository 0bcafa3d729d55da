package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/client"
)

func TestProduceInTurnToAllQueues(t *testing.T) {
	n := serve(t)
	sent := n.produce("orders", "0", "1", "2", "3", "4", "5", "6", "7")
	require.Len(t, sent, 8)
	for i, line := range sent {
		require.Equal(t, "SEND_OK", line.Status)
		require.Equal(t, "broker-a", line.Broker)
		require.Equal(t, (*sent[0].Queue+int32(i))%client.NewTopicQueues, *line.Queue)
		require.Equal(t, int64(i/client.NewTopicQueues), *line.Offset)
		host, at, err := messages.ParseOffsetMessageID(line.ID)
		require.NoError(t, err)
		require.Equal(t, n.broker, host.String())
		m, err := n.store.MessageAt(at)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(i), string(m.Body))
		require.Equal(t, messages.QueueKey{Topic: "orders", QueueID: *line.Queue}, m.Queue())
		require.Equal(t, messages.QueueOffset(*line.Offset), m.QueueOffset)
	}
}

func TestProduceWithTagKeyAndProperties(t *testing.T) {
	n := serve(t)
	stdout, _, err := run("produce", "--namesrv", n.names, "--topic", "orders", "--queue", "2", "--tag", "new", "--key", "4711 k2",
		"--property", "shop=7", "--property", "note=a=b", "two coffees")
	require.NoError(t, err)
	require.Regexp(t, `^SEND_OK id=[0-9A-F]{32} broker=broker-a queue=2 offset=0\n$`, stdout)
	n.await("orders", []sentLine{{Queue: new(int32(2)), Offset: new(int64(0))}})
	all := n.consume("--topic", "orders")
	require.Len(t, all, 1)
	require.Equal(t, map[string]string{"TAGS": "new", "KEYS": "4711 k2", "shop": "7", "note": "a=b", "CLUSTER": "DefaultCluster"}, all[0].Properties)
}

func TestProduceLines(t *testing.T) {
	n := serve(t)
	stdout, _, err := runWith(strings.NewReader("one\n\ntwo\r\nthree"), "produce", "--namesrv", n.names, "--topic", "orders", "--json")
	require.NoError(t, err)
	lines := jsonLines[sentLine](t, stdout)
	require.Len(t, lines, 3)
	n.await("orders", lines)
	require.ElementsMatch(t, []string{"one", "two", "three"}, bodies(t, n.consume("--topic", "orders")))
}

func TestProduceTellsWhatWasNotSent(t *testing.T) {
	n := serve(t, "maxMessageSize=1000")
	stdout, _, err := run("produce", "--namesrv", n.names, "--topic", "orders", "--json", "a", strings.Repeat("x", 1001), "b")
	require.EqualError(t, err, "1 of 3 messages were not sent")
	lines := jsonLines[sentLine](t, stdout)
	require.Equal(t, []string{"SEND_OK", "SEND_FAILED", "SEND_OK"}, []string{lines[0].Status, lines[1].Status, lines[2].Status})
	require.Contains(t, lines[1].Error, "MESSAGE_ILLEGAL (13)")
	require.Nil(t, lines[1].Offset)
	n.await("orders", lines)
	require.ElementsMatch(t, []string{"a", "b"}, bodies(t, n.consume("--topic", "orders")))
}

func TestProduceRefuses(t *testing.T) {
	n := serve(t)
	n.produce("orders", "x")
	closed := freePort(t)
	tests := map[string]struct {
		args []string
		want string
	}{
		"no topic":           {[]string{"x"}, `required flag(s) "topic"`},
		"no node":            {[]string{"--topic", "orders", "--namesrv", closed, "x"}, "no connection"},
		"no name server":     {[]string{"--topic", "orders", "--namesrv", " ; ", "x"}, "no name server"},
		"no such queue":      {[]string{"--topic", "orders", "--queue", "4", "x"}, "topic orders has no queue 4, only 0 to 3"},
		"an empty message":   {[]string{"--topic", "orders", "x", ""}, "empty message"},
		"no property":        {[]string{"--topic", "orders", "--property", "shop", "x"}, "--property shop: want name=value"},
		"an empty property":  {[]string{"--topic", "orders", "--property", "shop=", "x"}, "--property shop=: want name=value"},
		"a nameless one":     {[]string{"--topic", "orders", "--property", "=7", "x"}, "empty name"},
		"a forged property":  {[]string{"--topic", "orders", "--tag", "a\x02b", "x"}, "separator in the value"},
		"no time":            {[]string{"--topic", "orders", "--timeout", "0s", "x"}, "--timeout 0s: want more than 0"},
		"a topic not to be":  {[]string{"--topic", "no/topic", "x"}, "1 of 1 messages were not sent"},
		"a forbidden topic":  {[]string{"--topic", messages.TopicSchedule, "x"}, "1 of 1 messages were not sent"},
		"too long a message": {[]string{"--topic", "orders"}, bufio.ErrTooLong.Error()},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			long := strings.NewReader(strings.Repeat("x", maxLineBytes+1))
			_, _, err := runWith(long, append([]string{"produce", "--namesrv", n.names}, tt.args...)...)
			require.ErrorContains(t, err, tt.want)
		})
	}
	require.Equal(t, []string{"x"}, bodies(t, n.consume("--topic", "orders")), "something was sent all the same")
}

func TestProduceWithoutCreationOfTopics(t *testing.T) {
	n := serve(t, "autoCreateTopicEnable=false")
	_, _, err := run("produce", "--namesrv", n.names, "--timeout", "1s", "--topic", "orders", "x")
	require.EqualError(t, err, "no queue to send to: topic orders does not exist, and no broker makes topics for messages")
}

func TestTopicWithoutQueues(t *testing.T) {
	c := fake(t, nil)
	_, _, err := run("produce", "--namesrv", c.names, "--timeout", "1s", "--topic", "T", "x")
	require.EqualError(t, err, "no queue to send to: topic T has none that can be written")
	_, _, err = run("consume", "--namesrv", c.names, "--topic", "T")
	require.EqualError(t, err, "topic T has no queue that can be read")
}

// The leader has failed, and the route has only slaves until the next one is there.
func TestProduceAwaitsTheNextLeader(t *testing.T) {
	c := &cluster{t: t}
	address, asked := c.listen(stores(remoting.ResponseSuccess)), atomic.Int64{}
	names := c.listen(func(r *remoting.Command) *remoting.Command {
		id := int64(1) // a slave's
		if asked.Add(1) > 2 {
			id = 0
		}
		a := r.Answer(remoting.ResponseSuccess, "")
		if err := a.EncodeBody(remoting.TopicRouteData{
			BrokerDatas: []remoting.BrokerData{{BrokerName: "a", BrokerAddrs: map[int64]string{id: address}}},
			QueueDatas:  []remoting.QueueData{{BrokerName: "a", Perm: 6, ReadQueueNums: 2, WriteQueueNums: 2}},
		}); err != nil {
			t.Error(err)
		}
		return a
	})
	stdout, _, err := run("produce", "--namesrv", names, "--timeout", "1m", "--topic", "T", "x")
	require.NoError(t, err)
	require.Contains(t, stdout, "SEND_OK")
	require.Equal(t, int64(3), asked.Load())
}

// A node that goes away and comes back while lines are sent: what is lost is told, the rest goes on.
func TestProduceGoesOnWhenTheNodeIsBack(t *testing.T) {
	n := serve(t)
	in := &steps{end: io.EOF, lines: []func() string{
		func() string { return "one" },
		func() string { n.end(); return "two" },
		func() string { require.NoError(t, n.start()); return "three" },
	}}
	stdout, _, err := runWith(in, "produce", "--namesrv", n.names, "--topic", "orders", "--json")
	require.EqualError(t, err, "1 of 3 messages were not sent")
	lines := jsonLines[sentLine](t, stdout)
	require.Equal(t, []string{"SEND_OK", "SEND_FAILED", "SEND_OK"}, []string{lines[0].Status, lines[1].Status, lines[2].Status})
	n.await("orders", lines[2:])
	require.ElementsMatch(t, []string{"one", "three"}, bodies(t, n.consume("--topic", "orders")))
}

// steps is an input whose lines come into being when they are read, which is after the line before was sent.
type steps struct {
	lines []func() string
	end   error
}

func (s *steps) Read(b []byte) (int, error) {
	if len(s.lines) == 0 {
		return 0, s.end
	}
	line := s.lines[0]
	s.lines = s.lines[1:]
	return copy(b, line()+"\n"), nil
}

func TestProduceReportsABadInput(t *testing.T) {
	n := serve(t)
	stdout, _, err := runWith(&steps{end: errors.New("out of paper"), lines: []func() string{func() string { return "one" }}}, "produce", "--namesrv", n.names, "--topic", "orders")
	require.EqualError(t, err, "standard input, after 1 messages: out of paper")
	require.Contains(t, stdout, "SEND_OK")
}

// stores answers sends with a code; the queue offset is the number of the send.
func stores(code int) script {
	return func(r *remoting.Command) *remoting.Command {
		h, err := remoting.DecodeSend(r)
		if err != nil {
			return nil
		}
		return with(r, code, &remoting.SendMessageAnswer{MsgID: "7F", QueueID: h.QueueID, QueueOffset: 5})
	}
}

func TestProduceRetries(t *testing.T) {
	ok := stores(remoting.ResponseSuccess)
	says := func(code int) script {
		return func(r *remoting.Command) *remoting.Command { return r.Answer(code, "because\nof this") }
	}
	hangUp := func(*remoting.Command) *remoting.Command { return nil }
	tests := map[string]struct {
		brokers  map[string]script
		status   string
		attempts int // that arrive
		text     string
	}{
		"stored":                       {map[string]script{"a": ok}, "SEND_OK", 1, ""},
		"stored, flush late":           {map[string]script{"a": stores(10)}, "FLUSH_DISK_TIMEOUT", 1, ""},
		"stored, slave late":           {map[string]script{"a": stores(12)}, "FLUSH_SLAVE_TIMEOUT", 1, ""},
		"stored, no slave":             {map[string]script{"a": stores(11)}, "SLAVE_NOT_AVAILABLE", 1, ""},
		"busy is final":                {map[string]script{"a": says(2)}, "SEND_FAILED", 1, "SYSTEM_BUSY (2): because"},
		"illegal is final":             {map[string]script{"a": says(13)}, "SEND_FAILED", 1, "MESSAGE_ILLEGAL (13): because"},
		"an error, twice":              {map[string]script{"a": says(1)}, "SEND_FAILED", 2, "SYSTEM_ERROR (1): because"},
		"no service, twice":            {map[string]script{"a": says(14)}, "SEND_FAILED", 2, "SERVICE_NOT_AVAILABLE (14)"},
		"no permission, twice":         {map[string]script{"a": says(16)}, "SEND_FAILED", 2, "NO_PERMISSION (16)"},
		"no topic, twice":              {map[string]script{"a": says(17)}, "SEND_FAILED", 2, "TOPIC_NOT_EXIST (17)"},
		"lost, twice":                  {map[string]script{"a": hangUp}, "SEND_FAILED", 2, "no connection"},
		"not reachable":                {map[string]script{"a": nil}, "SEND_FAILED", 0, "no connection"},
		"both say no":                  {map[string]script{"a": says(1), "b": says(1)}, "SEND_FAILED", 2, "SYSTEM_ERROR (1)"},
		"an odd answer is not retried": {map[string]script{"a": says(0)}, "SEND_FAILED", 1, `stored, but the answer is bad: ext field "msgId" is missing`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := fake(t, tt.brokers)
			stdout, _, err := run("produce", "--namesrv", c.names, "--topic", "T", "--json", "x")
			require.Equal(t, tt.status == statusFailed, err != nil, "%v", err)
			lines := jsonLines[sentLine](t, stdout)
			require.Len(t, lines, 1)
			require.Equal(t, tt.status, lines[0].Status)
			require.Contains(t, lines[0].Error, tt.text)
			sends := c.requests(remoting.RequestSendMessageV2)
			require.Len(t, sends, tt.attempts)
			if tt.attempts == 2 {
				h0, err := remoting.DecodeSend(sends[0])
				require.NoError(t, err)
				h1, err := remoting.DecodeSend(sends[1])
				require.NoError(t, err)
				if len(tt.brokers) == 1 {
					require.NotEqual(t, h0.QueueID, h1.QueueID)
				} else {
					require.NotEqual(t, h0.BrokerName, h1.BrokerName)
				}
			}
		})
	}
}

// Whichever broker's turn it is: with one that can't be reached nothing is lost.
func TestProduceTriesAnotherBroker(t *testing.T) {
	c := fake(t, map[string]script{"good": stores(0), "gone": nil})
	stdout, _, err := run("produce", "--namesrv", c.names, "--topic", "T", "--json", "1", "2", "3", "4")
	require.NoError(t, err)
	for _, line := range jsonLines[sentLine](t, stdout) {
		require.Equal(t, "good", line.Broker)
	}
	require.Len(t, c.requests(remoting.RequestSendMessageV2), 4)
}

func TestProduceToAQueueThatIsBroken(t *testing.T) {
	c := fake(t, map[string]script{"a": func(r *remoting.Command) *remoting.Command { return r.Answer(1, "no") }})
	stdout, _, err := run("produce", "--namesrv", c.names, "--topic", "T", "--queue", "1", "x")
	require.EqualError(t, err, "1 of 1 messages were not sent")
	require.Equal(t, "SEND_FAILED error=\"SEND_MESSAGE_V2 at "+addressIn(stdout)+": SYSTEM_ERROR (1): no\"\n", stdout)
	for _, r := range c.requests(remoting.RequestSendMessageV2) {
		require.Equal(t, int64(1), field(t, r, "e"), "sent to another queue than the one that was asked for")
	}
}

// addressIn is the first word that stands between " at " and ":" and a space.
func addressIn(s string) string {
	_, s, _ = strings.Cut(s, " at ")
	s, _, _ = strings.Cut(s, ": ")
	return s
}

func TestProduceEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := fake(t, map[string]script{"a": func(r *remoting.Command) *remoting.Command {
		cancel() // before the answer
		return stores(0)(r)
	}})
	r := launch(ctx, t, "produce", "--namesrv", c.names, "--topic", "T", "1", "2")
	r.line() // of the first one, sent or not
	require.ErrorIs(t, <-r.ended, context.Canceled)
	require.Len(t, c.requests(remoting.RequestSendMessageV2), 1)
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestProduceEndsWhenNobodyReadsItsOutput(t *testing.T) {
	for _, format := range []string{"--json", "--json=false"} {
		c := fake(t, map[string]script{"a": stores(0)})
		root := newRootCommand()
		root.SetOut(brokenWriter{})
		root.SetArgs([]string{"produce", "--namesrv", c.names, "--topic", "T", format, "1", "2"})
		require.EqualError(t, root.Execute(), "broken pipe")
		require.Len(t, c.requests(remoting.RequestSendMessageV2), 1)
	}
}
