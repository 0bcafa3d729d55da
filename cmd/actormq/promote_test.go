package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/cmd/actormq/internal/tools"
)

func TestASlaveIsPromotedAndFollowsNobodyAnyMore(t *testing.T) {
	host, port, err := net.SplitHostPort(freePort(t))
	require.NoError(t, err)
	master := serve(t, "haListenPort="+port)
	master.produce("moved", "a", "b", "c", "d", "e")
	s := serve(t, "brokerRole=SLAVE", "brokerId=1", "haFullCopy=true", "haMasterAddress="+net.JoinHostPort(host, port), "masterAddress="+master.broker)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan *node, 1)
	go func() {
		n, _ := s.node.run(ctx, zerolog.Nop())
		done <- n
	}()
	_, end := master.store.LogRange()
	_, _, err = run("cluster", "promote", "--expect-offset", strconv.FormatInt(int64(end)+1, 10), "--wait", "100ms", s.broker)
	require.ErrorContains(t, err, "the slave is not promoted")
	_, _, err = run("cluster", "promote", "--expect-offset", "0", master.broker)
	require.ErrorContains(t, err, "no slave")
	out, _, err := run("cluster", "promote", "--expect-offset", strconv.FormatInt(int64(end), 10), "--json", s.broker)
	require.NoError(t, err)
	require.JSONEq(t, fmt.Sprintf(`{"broker":%q,"offset":%d}`, s.broker, end), out)
	s.eventually(func() bool {
		_, _, err := run("produce", "--namesrv", s.names, "--topic", "moved", "f")
		return err == nil
	})
	master.produce("moved", "late", "late", "late")
	cancel()
	s.node = <-done
	for range 2 {
		var got []tools.Line
		s.eventually(func() bool { // what was put last may have to be dispatched first
			got = s.consume("--topic", "moved")
			return len(got) >= 6
		})
		require.Len(t, got, 6, "what the old master has taken since is not there")
		s.end()
		require.NoError(t, s.start(), "its configuration still says that it is a slave")
	}
	s.produce("moved", "g")
}
