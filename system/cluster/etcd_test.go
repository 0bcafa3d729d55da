package cluster

import (
	"net"
	"testing"

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
