package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	members "github.com/actormq/actormq/system/cluster"
	"github.com/actormq/actormq/testkit/fixture"
)

// With certificates and their signers the nodes let nobody in who shows none of theirs: neither at the ports of replication nor at
// those of etcd.
func TestNodesShowEachOtherCertificates(t *testing.T) {
	cert, key := fixture.Certificate(t)
	own, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	text, err := os.ReadFile(cert)
	require.NoError(t, err)
	signers := x509.NewCertPool()
	require.True(t, signers.AppendCertsFromPEM(text))
	g := Build(t, 2)
	g.Secure, g.Args = &tls.Config{Certificates: []tls.Certificate{own}, RootCAs: signers}, map[string][]string{}
	for _, n := range g.Nodes {
		for _, value := range []string{"certPath=" + cert, "keyPath=" + key, "trustCertPath=" + cert} {
			g.Args[n.ID] = append(g.Args[n.ID], "--set", "tls.server."+value)
		}
	}
	g.Start("1", "2")
	g.Ready("1", "2")
	leader := g.Nodes[0]
	if g.Leader() == "2" { // both are in sync: the log goes over the replication port
		leader = g.Nodes[1]
	}
	strange, err := tls.LoadX509KeyPair(fixture.Certificate(t))
	require.NoError(t, err)
	for _, port := range []int{members.PortPeer, members.PortClient, members.PortReplication} {
		require.NoError(t, greeted(leader.Port(port), own), port)
		require.Error(t, greeted(leader.Port(port), strange), port)
		require.Error(t, greeted(leader.Port(port)), port)
	}
}

// greeted tells whether a port takes who shows these certificates: in TLS 1.2 the handshake says it. Whose certificate the port has is
// not the question here.
func greeted(address string, show ...tls.Certificate) error {
	c, err := tls.Dial("tcp", address, &tls.Config{Certificates: show, InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
	if err != nil {
		return err
	}
	return c.Close()
}
