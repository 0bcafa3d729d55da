package gateway_test

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/system/gateway/broker"
)

// BenchmarkSend sends messages of 1 KB over loopback TCP, client and node in one process: requests in flight a connection.
func BenchmarkSend(b *testing.B) {
	for _, inFlight := range []int{1, 64} {
		b.Run(fmt.Sprintf("conns=4/inflight=%d", inFlight), func(b *testing.B) { benchmarkSend(b, 4, inFlight) })
	}
}

func benchmarkSend(b *testing.B, conns, inFlight int) {
	host := netip.MustParseAddrPort("127.0.0.1:10911")
	disk := vfs.New()
	store, err := system.Open(system.Options{Dir: b.TempDir(), Disk: disk, SegmentBytes: 256 << 20, StoreHost: host, NoIndex: true})
	require.NoError(b, err)
	actors := actorSystem()
	node, err := gateway.Start(actors.Root, gateway.Config{
		Store: store, Disk: disk, ConfigDir: store.ConfigDir(), Listen: "127.0.0.1:0", Broker: broker.Config{StoreHost: host},
	})
	require.NoError(b, err)
	defer func() {
		require.NoError(b, node.Stop(b.Context()))
		actors.Shutdown()
		require.NoError(b, store.Close(b.Context()))
	}()
	require.NoError(b, node.Broker().Topics.Update(b.Context(), metadata.TopicConfig{
		TopicName: "T", ReadQueueNums: 4, WriteQueueNums: 4, Perm: metadata.PermRead | metadata.PermWrite,
	}))
	frame, err := sending("T", string(make([]byte, 1024)), "e", "1").Append(nil)
	require.NoError(b, err)
	b.SetBytes(1024)
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for range conns {
		sock, err := net.Dial("tcp", node.Addr("broker").String())
		require.NoError(b, err)
		wg.Go(func() { pump(b, sock, frame, b.N/conns+1, inFlight) })
	}
	wg.Wait()
}

// pump keeps a number of requests in flight.
func pump(b *testing.B, sock net.Conn, frame []byte, n, inFlight int) {
	defer func() { _ = sock.Close() }()
	room := make(chan struct{}, inFlight)
	go func() {
		out := bufio.NewWriterSize(sock, 64<<10)
		for range n {
			select {
			case room <- struct{}{}:
			default:
				_ = out.Flush()
				room <- struct{}{}
			}
			_, _ = out.Write(frame)
		}
		_ = out.Flush()
	}()
	in := bufio.NewReaderSize(sock, 64<<10)
	for range n {
		c, err := remoting.ReadCommand(in, remoting.Limits{})
		if err != nil || c.Code != remoting.ResponseSuccess {
			b.Errorf("%v %v", c, err)
			return
		}
		<-room
	}
}
