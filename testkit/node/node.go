package node

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/system/gateway/broker"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// Node is a running node; it stops with its test.
type Node struct {
	Store   *system.Store
	Gateway *gateway.Node
	// Broker and NameServer are where clients connect.
	Broker, NameServer netip.AddrPort
	// Disk is what the store is on: another node can be started on it once this one has stopped.
	Disk vfs.Disk
	stop func()
}

// Stop stops the node before its test ends; only the first call does something.
func (n *Node) Stop() { n.stop() }

// stopTime bounds the stop of a node.
const stopTime = 10 * time.Second

// Start starts a node; change, when not nil, may plug in extensions or alter the rest. Clients are told the loopback address
// and the port of the broker.
func Start(t testing.TB, change func(*system.Options, *gateway.Config)) *Node {
	t.Helper()
	host := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), freePort(t))
	opt := system.Options{
		Dir: "store", Disk: memfs.New(), SegmentBytes: 8 << 20, ConsumeQueueFileBytes: 20_000, IndexSlots: 500, IndexEntries: 2000,
		WindowBytes: 64 << 10, StoreHost: host,
	}
	cfg := gateway.Config{
		Listen: host.String(), NameServerListen: "127.0.0.1:0",
		Broker: broker.Config{StoreHost: host, ClusterName: "TestCluster", BrokerName: "broker-a"},
	}
	if change != nil {
		change(&opt, &cfg)
	}
	store, err := system.Open(opt)
	require.NoError(t, err)
	cfg.Store, cfg.Disk, cfg.ConfigDir = store, opt.Disk, store.ConfigDir()
	actors := fixture.System(t, actor.WithDeadLetterThrottleInterval(10*time.Millisecond))
	n := &Node{Store: store, Disk: opt.Disk}
	n.Gateway, err = gateway.Start(actors.Root, cfg)
	if err != nil {
		require.NoError(t, store.Close(context.Background()))
	}
	require.NoError(t, err)
	n.Broker, n.NameServer = n.Gateway.Addr("broker"), n.Gateway.Addr("namesrv")
	n.stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		require.NoError(t, n.Gateway.Stop(ctx))
		require.NoError(t, store.Close(ctx))
	})
	t.Cleanup(n.stop)
	return n
}

// freePort is a port that nobody listened on a moment ago: what clients are told must be known before the node listens.
func freePort(t testing.TB) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return l.Addr().(*net.TCPAddr).AddrPort().Port()
}
