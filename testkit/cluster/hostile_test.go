package cluster

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	members "github.com/actormq/actormq/system/cluster"
)

// What nobody in the group says, at the ports by which it holds together: it is refused, the log says so, and nothing is acknowledged less, or
// more, by anybody else.
func TestGarbageOnThePortsOfAGroupHasNoEffect(t *testing.T) {
	g := Build(t, 3)
	g.Start("1", "2", "3")
	g.Ready("1", "2", "3")
	g.Leader()
	l := Begin(t, g, 4)
	l.AwaitAck(time.Now(), 3*time.Minute)
	before, err := g.Status()
	require.NoError(t, err)
	noise := make([]byte, 4096)
	seed := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(seed.Uint32())
	}
	greeting := []byte(`{"version":1,"cluster":"test","group":"another","node":"2","epoch":99}`)
	forged := append(binary.BigEndian.AppendUint32([]byte("AMQG"), uint32(len(greeting))), greeting...)
	for range 20 {
		for _, n := range g.Nodes {
			told(t, n.Port(members.PortPeer), noise)
			told(t, n.Port(members.PortClient), noise)
			if n.ID == before.Leader { // who follows has no port for followers
				told(t, n.Port(members.PortReplication), noise)
				told(t, n.Port(members.PortReplication), forged)
				told(t, n.Port(members.PortReplication), binary.BigEndian.AppendUint64(nil, 1<<40)) // a report of RocketMQ's protocol
			}
			for _, path := range []string{"/raft", "/raft/snapshot"} {
				answer, err := http.Post("http://"+n.Port(members.PortPeer)+path, "application/protobuf", bytes.NewReader(noise))
				require.NoError(t, err)
				_, err = io.Copy(io.Discard, answer.Body)
				require.NoError(t, err)
				require.NoError(t, answer.Body.Close())
				require.GreaterOrEqual(t, answer.StatusCode, 400, path)
			}
		}
	}
	http.DefaultClient.CloseIdleConnections()
	l.AwaitAck(time.Now(), time.Minute)
	after, err := g.Status()
	require.NoError(t, err)
	require.Equal(t, before.Record, after.Record, "the same leader, and the same nodes in sync")
	require.Contains(t, g.said[after.Leader].String(), "refused on the replication port")
	for id, said := range g.said {
		require.Contains(t, said.String(), "refused by etcd", id)
	}
	l.End()
	g.end(l)
}

// told sends something to a port, and waits until that is closed, or enough.
func told(t *testing.T, address string, what []byte) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Millisecond)))
	_, _ = conn.Write(what)
	_, _ = io.Copy(io.Discard, conn)
	require.NoError(t, conn.Close())
}
