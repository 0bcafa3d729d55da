package gateway_test

import (
	"bufio"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/testkit/fixture"
)

// hears sends a heartbeat of so many bytes, and waits until it is heard and answered.
func (m *member) hears(t *testing.T, p *peer, size int) {
	t.Helper()
	p.send(body(codeBeat, 1, string(make([]byte, size))))
	require.Len(t, arrives(t, m.beats), size)
	require.Equal(t, int32(1), p.read().Opaque)
}

// changes puts the next service behind the ports; the clients are announced to it.
func (m *member) changes(t *testing.T, clients ...*peer) {
	t.Helper()
	m.pause(t)
	m.serve(t, true)
	for _, p := range clients {
		p.send(body(codeTell, 9, ""))
		require.Equal(t, m.name, p.read().Remark)
	}
}

// announced changes the service, and counts the clients of which the next one hears, each by a heartbeat of so many bytes.
func (m *member) announced(t *testing.T, size int, clients ...*peer) (n int) {
	t.Helper()
	for m.changes(t, clients...); len(m.beats) > 0; n++ {
		require.Len(t, <-m.beats, size)
	}
	return n
}

// A client with hundreds of subscriptions is known to the next service, and to the next leader, like any other.
func TestALargeHeartbeatIsKept(t *testing.T) {
	const size = 300 << 10
	_, leader, node, p := relaying(t)
	p.send(body(codeTell, 1, ""))
	require.Equal(t, "leader", p.read().Remark)
	p.send(body(codeBeat, 2, string(make([]byte, size))), body(codeBye, 3, "no a"))
	require.Len(t, arrives(t, leader.beats), size)
	require.Equal(t, "no a", arrives(t, leader.beats))
	require.Equal(t, []int32{2, 3}, []int32{p.read().Opaque, p.read().Opaque})
	node.changes(t, p)
	require.Len(t, arrives(t, node.beats), size)
	require.Equal(t, "no a", arrives(t, node.beats))
}

func TestAHeartbeatThatIsTooLargeIsNotKept(t *testing.T) {
	var log fixture.Said
	m := joinWith(t, gateway.Options{Logger: zerolog.New(&log)}, "node", new(seat))
	m.serve(t, true)
	p := dial(t, m.Gateway)
	for _, size := range []int{8, 2 << 20, 2 << 20} {
		m.hears(t, p, size)
	}
	m.changes(t, p)
	quiet(t, m.beats)
	require.Equal(t, 1, strings.Count(log.String(), "too large to be kept"), log.String())
}

// Large ones are kept as long as there is room for all of them; each may come again, and who leaves makes room.
func TestLargeHeartbeatsAreKeptWithinBounds(t *testing.T) {
	const size, fit, more = 1<<20 - 4096, 32, 3
	m := join(t, "node", new(seat))
	m.serve(t, true)
	var all []*peer
	for range fit + more {
		all = append(all, dial(t, m.Gateway))
	}
	announced := func() int {
		t.Helper()
		return m.announced(t, size, all...)
	}
	for range 2 {
		for _, p := range all {
			m.hears(t, p, size)
		}
		require.Equal(t, fit, announced())
	}
	for _, p := range all[:more] {
		require.NoError(t, p.sock.Close())
	}
	all = all[more:]
	require.Eventually(t, func() bool { return m.Connections() == len(all) }, patience, soon/10)
	require.Equal(t, fit-more, announced())
	for _, p := range all[fit-more:] {
		m.hears(t, p, size)
	}
	require.Equal(t, fit, announced())
}

// The connection of a node that relays ends with the lead, so what its client says is for no later service, and takes nobody's room.
func TestLargeHeartbeatsThatAreRelayedTakeNoRoom(t *testing.T) {
	const size, fit = 1<<20 - 4096, 32
	m := join(t, "node", new(seat))
	m.serve(t, true)
	relays := dial(t, m.Gateway)
	relays.send(request(codeGreet, 1))
	require.Equal(t, 0, relays.read().Code)
	m.hears(t, relays, size)
	var all []*peer
	for range fit {
		p := dial(t, m.Gateway)
		m.hears(t, p, size)
		all = append(all, p)
	}
	require.Equal(t, fit, m.announced(t, size, all...))
}

// A leader may take a large heartbeat as slowly as it comes by a narrow line: only connecting and the hello, which is short, are to be quick.
func TestALeaderMayTakeALargeHeartbeatSlowly(t *testing.T) {
	const size, handshake = 1<<20 - 4096, time.Second
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	came := make(chan net.Conn, 100)
	go func() {
		for sock, err := l.Accept(); err == nil; sock, err = l.Accept() {
			came <- sock
		}
	}()
	s := new(seat)
	node := join(t, "node", s)
	node.narrow = true
	node.serve(t, false)
	p := dial(t, node.Gateway)
	node.hears(t, p, size)
	s.set(l.Addr().String())
	p.send(body(codeTell, 2, ""))
	sock := arrives(t, came)
	defer func() { _ = sock.Close() }()
	leader := &peer{t: t, sock: sock, in: bufio.NewReader(sock)}
	leader.send(leader.read().Answer(0, ""))
	select {
	case again := <-came:
		_ = again.Close()
		require.Fail(t, "it was given up")
	case <-time.After(handshake + 4*soon):
	}
	require.Len(t, leader.read().Body, size)
	leader.send(leader.read().Answer(0, "leader"))
	require.Equal(t, "leader", p.read().Remark)
}
