package main

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	edge "github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/system/gateway"
)

// What a client has encrypted is encrypted on its way to the leader as well, also where the nodes have made their certificates themselves.
func TestARelayIsNoLessSecretThanItsClient(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	dial := new(clusterNode).dialer(gateway.Config{TLSMode: edge.TLSPermissive})
	plain, err := dial(t.Context(), l.Addr().String(), false)
	require.NoError(t, err)
	require.NoError(t, plain.Close())
	sock, err := l.Accept()
	require.NoError(t, err)
	require.NoError(t, sock.Close())
	failed := make(chan error, 1)
	go func() {
		_, err := dial(t.Context(), l.Addr().String(), true)
		failed <- err
	}()
	sock, err = l.Accept()
	require.NoError(t, err)
	require.NoError(t, sock.SetReadDeadline(time.Now().Add(10*time.Second)))
	first := make([]byte, 1)
	_, err = sock.Read(first)
	require.NoError(t, err)
	require.Equal(t, byte(22), first[0], "a handshake of TLS")
	require.NoError(t, sock.Close())
	require.Error(t, <-failed)
}
