package main

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/cmd/actormq/internal/tools"
)

func TestANodeDeliversMessagesAtTheirTimeUnlessTheyAreCancelled(t *testing.T) {
	n := serve(t, "timedMessages=true")
	send := func(args ...string) {
		_, _, err := run(append([]string{"produce", "--namesrv", n.names, "--topic", "orders", "--property"}, args...)...)
		require.NoError(t, err)
	}
	in := func(d time.Duration) string {
		return "TIMER_DELIVER_MS=" + strconv.FormatInt(time.Now().Add(d).UnixMilli(), 10)
	}
	send(in(3*time.Second), "--property", "TIMER_ID=order-7", "never")
	send("TIMER_CANCEL=order-7", "forget it")
	send(in(500*time.Millisecond), "soon")
	send(in(3500*time.Millisecond), "later")
	send(in(-time.Second), "now")
	stdout, _, err := run("produce", "--namesrv", n.names, "--json", "--topic", "orders", "--property", "TIMER_DELIVER_MS=tomorrow", "x")
	require.Error(t, err)
	require.Contains(t, stdout, "the delivery time is out of range")
	var there []tools.Line
	n.eventually(func() bool { there = n.consume("--topic", "orders", "--from", "first"); return len(there) == 3 })
	require.ElementsMatch(t, []string{"now", "soon", "later"}, bodies(t, there))
}
