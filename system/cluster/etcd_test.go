package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// The library waits for them for good: a node of a cluster did not end.
func TestPeersThatSayNothingDoNotHoldUpTheEndOfEtcd(t *testing.T) {
	c := Config{Name: "silent", ID: "1", Nodes: []Node{{ID: "1", Base: free(t, 2)}}, EtcdDir: t.TempDir()}
	server, err := startEtcd(c)
	require.NoError(t, err)
	<-server.Server.ReadyNotify()
	t.Cleanup(func() {
		for range server.Err() { //nolint:revive // until it has ended, once they have gone
		}
	})
	for _, port := range []int{PortPeer, PortClient} {
		for _, said := range []string{"", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"} {
			conn, err := net.Dial("tcp", c.node("1").Port(port))
			require.NoError(t, err)
			t.Cleanup(func() { _ = conn.Close() })
			_, err = conn.Write([]byte(said))
			require.NoError(t, err)
		}
	}
	stopEtcd(server)
	<-server.Server.StopNotify() // what it has is on the disk
}

// A node whose etcd is not there is slow and then leads nothing: its log says why, once, and nothing of what the node itself took back.
func TestANodeLogsWhatItsClientOfEtcdHasToSay(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	var said bytes.Buffer
	client, _, end, err := connect(Config{Etcd: []string{"http://root:secret@" + l.Addr().String()}, Logger: zerolog.New(zerolog.SyncWriter(&said))})
	require.NoError(t, err)
	ask := func(ctx context.Context) {
		_, err := client.Get(ctx, "key")
		require.Error(t, err)
	}
	taken, back := context.WithCancel(t.Context())
	back()
	ask(taken)
	for range 2 {
		late, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		ask(late)
		cancel()
	}
	end()
	require.Equal(t, 1, strings.Count(said.String(), "\n"), said.String())
	var line struct{ Level, Why, Error, Message string }
	require.NoError(t, json.Unmarshal(said.Bytes(), &line))
	require.Equal(t, "warn", line.Level)
	require.Equal(t, "etcd does not answer as it should", line.Message)
	require.Contains(t, line.Error, "connection refused")
	require.NotContains(t, said.String(), "secret")
}

// stuck is an etcd that leads, and whose others do not take its lead over.
type stuck chan struct{}

func (s stuck) Stop()     { <-s }
func (s stuck) HardStop() { close(s) }

func TestAnEtcdWhoseLeadNobodyTakesOverEndsAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		stopServer(make(stuck))
		require.Equal(t, etcdFarewell, time.Since(began))
	})
}
