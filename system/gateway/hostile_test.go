package gateway_test

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/frames"
)

// fieldNames are all ext fields that any recorded request has.
func fieldNames() []string {
	names := map[string]struct{}{}
	for _, c := range frames.All() {
		for name := range c.Request.Header.ExtFields {
			names[name] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Every code, with fields and bodies of all kinds: one answer or a closed connection, never a panic, and the node goes on.
func TestEveryCodeBearsHostileInput(t *testing.T) {
	var log fixture.Said
	w := run(t, func(c *gateway.Config) {
		c.Broker.Logger = zerolog.New(&log)
		c.Limits.Logger = zerolog.New(&log)
		c.Broker.PutTimeout, c.Broker.KeeperTimeout = time.Second, time.Second
	})
	w.topic("T", 1)
	values := []string{"", "0", "-1", "T", "true", "9223372036854775807", "-9223372036854775808", "%RETRY%", "\x00\xff", strings.Repeat("9", 300)}
	bodies := []string{
		"", "{}", "[]", "null", `{"clientID":5,"consumerDataSet":[null],"mqSet":[{}],"producerDataSet":{}}`, "\x00\x00\x00\x19garbage",
		strings.Repeat("[", 5000), `{"consumerDataSet":[{"groupName":"` + strings.Repeat("g", 300) + `"}],"clientID":"x"}`, "a=b\n\\",
	}
	codes := []int{-1, 32767}
	for code := range 400 {
		codes = append(codes, code)
	}
	names := fieldNames()
	for _, port := range []string{"broker", "vip", "namesrv"} {
		c := w.dial(port)
		for _, code := range codes {
			for i, value := range values {
				r := req(code)
				for _, name := range names {
					r.ExtFields = append(r.ExtFields, remoting.Pair{Name: name, Value: value})
				}
				r.Body = []byte(bodies[i%len(bodies)])
				r.Language = remoting.Language(9 * (i % 2)) // Java and Go
				if i == 0 {
					r.ExtFields = nil
				}
				if !c.survives(r) {
					c = w.dial(port)
				}
			}
		}
	}
	require.NotContains(t, log.String(), "BUG")
	require.Equal(t, remoting.ResponseSuccess, w.dial("broker").ask(sending("T", "still there")).Code)
}

// survives asks and tells whether the connection is still open; anything but one answer or its end fails the test.
func (c *client) survives(r *remoting.Command) bool {
	c.t.Helper()
	c.send(r)
	for {
		require.NoError(c.t, c.sock.SetReadDeadline(time.Now().Add(patience)))
		a, err := remoting.ReadCommand(c.in, remoting.Limits{})
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET):
			return false
		case err != nil:
			require.NoError(c.t, err, "%v", r)
		case a.IsResponse():
			require.Equal(c.t, r.Opaque, a.Opaque, "a second answer to an earlier request than %v", r)
			return true
		}
	}
}
