package strain_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/testkit/fixture"
)

// hostile are beginnings of connections after which nothing good comes.
func hostile(rnd *rand.Rand) []byte {
	noise := make([]byte, 1+rnd.IntN(4096))
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	switch rnd.IntN(7) {
	case 0:
		return []byte("GET / HTTP/1.1\r\nHost: x\r\nSlow: ")
	case 1: // a hello that does not go on
		return []byte{0x16, 3, 1, 2, 0, 1, 0, 1}
	case 2: // a frame of 16 MiB, of which little comes
		return binary.BigEndian.AppendUint32(nil, 16<<20)
	case 3: // a header that is longer than its frame
		return append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 100), 1<<23), noise...)
	case 4: // a frame that stops in its header
		b, _ := sending(rnd, []byte("never"))
		return b[:len(b)/4]
	case 5: // whole frames with something in them that is no command
		b := binary.BigEndian.AppendUint32(nil, uint32(len(noise)+4))
		b = binary.BigEndian.AppendUint32(b, uint32(len(noise)))
		return append(b, noise...)
	}
	return noise
}

// attack connects again and again, sends what nobody wants, and then a byte now and then until the node has had enough.
func attack(rnd *rand.Rand, port string, over <-chan struct{}) error {
	for {
		conn, err := net.DialTimeout("tcp", port, patience)
		if err != nil {
			return err
		}
		_, _ = conn.Write(hostile(rnd)) // it may be closed already
		if !dribble(conn, rnd, over) {
			return nil
		}
	}
}

// dribble sends a byte now and then: true when the node has closed the connection, false when it is over.
func dribble(conn net.Conn, rnd *rand.Rand, over <-chan struct{}) bool {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = io.Copy(io.Discard, bufio.NewReader(conn))
	}()
	defer func() {
		_ = conn.Close()
		<-closed
	}()
	for {
		select {
		case <-closed:
			return true
		case <-over:
			return false
		case <-time.After(time.Duration(20+rnd.IntN(200)) * time.Millisecond):
			_, _ = conn.Write([]byte{byte(rnd.Uint32())})
		}
	}
}

// L99: garbage, and peers that never finish what they have begun, on every port: clients that work do not notice, the node's memory
// is bounded, and it ends in order.
//
//	STRAIN_SECONDS=60 STRAIN_PEERS=400 go test -v -timeout 10m -run TestHostilePeers ./testkit/strain
func TestHostilePeersOnEveryPort(t *testing.T) {
	n, streams := start(t), random(t)
	before := n.anonymous(t)
	over := make(chan struct{})
	var attackers sync.WaitGroup
	peers := fixture.Number(t, "STRAIN_PEERS", 50)
	failures := make(chan error, peers*len(n.ports))
	for _, port := range n.ports {
		for range peers / len(n.ports) {
			rnd := streams()
			attackers.Go(func() { failures <- attack(rnd, port, over) })
		}
	}
	p := &places{early: map[string]bool{}, missing: map[string]bool{}}
	const clients = 8
	senders := make(chan error, clients)
	for range clients {
		rnd, end := streams(), time.After(span(t, 2))
		go func() { senders <- n.busy(rnd, clients*time.Second/sendsASecond, end, p) }()
	}
	c, slowest := n.client(t), time.Duration(0)
	for working := clients; working > 0; {
		began := time.Now()
		_, err := c.Route(t.Context(), "T")
		require.NoError(t, err)
		slowest = max(slowest, time.Since(began))
		select {
		case err := <-senders:
			require.NoError(t, err)
			working--
		case <-time.After(50 * time.Millisecond):
		}
	}
	after := n.anonymous(t)
	close(over)
	attackers.Wait()
	close(failures)
	var all []error
	for err := range failures {
		all = append(all, err)
	}
	require.NoError(t, errors.Join(all...), "the ports are open to the end")
	const most = 512 << 20 // large frames that arrive have a budget of 128 MiB
	require.Less(t, after-before, int64(most))
	t.Logf("%d messages were acknowledged; the slowest of the other requests took %v; %d MiB of memory, %d before",
		p.acknowledged, slowest, after>>20, before>>20)
}
