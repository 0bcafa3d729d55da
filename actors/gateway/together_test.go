//go:build linux && !race

package gateway_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/gateway"
)

// The answer to a request goes together with that to the next one, of which a part is here already, when the rest is there too.
func TestAnswersWaitForAFrameThatIsThere(t *testing.T) {
	first, rest, second, seen := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	g := start(t, gateway.Options{}, gateway.Routes{
		codeEcho: {Handle: func(r *gateway.Request) {
			close(first)
			<-rest
			r.OK(nil)
		}},
		codeFence: {Handle: func(r *gateway.Request) {
			close(second)
			<-seen
			r.OK(nil)
		}},
	})
	p := dial(t, g)
	b, err := request(codeEcho, 1).Append(nil)
	require.NoError(t, err)
	b, err = request(codeFence, 2).Append(b)
	require.NoError(t, err)
	p.write(b[:len(b)-10])
	arrives(t, first)
	p.write(b[len(b)-10:])
	close(rest)
	arrives(t, second)
	p.silent()
	close(seen)
	require.Equal(t, int32(1), p.read().Opaque)
	require.Equal(t, int32(2), p.read().Opaque)
}

// stuck has a reader write the answers that it has held back, before a read would wait, to a peer that takes none.
func stuck(t *testing.T, opt gateway.Options) (*gateway.Gateway, *net.TCPConn) {
	t.Helper()
	handled := make(chan struct{}, 1)
	g := start(t, opt, gateway.Routes{codeEcho: {Handle: func(r *gateway.Request) {
		a := r.Command.Answer(0, "")
		a.Body = make([]byte, 200<<10)
		r.Answer(a)
		handled <- struct{}{}
	}}})
	p := dial(t, g)
	sock := p.sock.(*net.TCPConn)
	require.NoError(t, sock.SetReadBuffer(4<<10))
	b, err := request(codeEcho, 1).Append(nil)
	require.NoError(t, err)
	p.write(b[:10])
	for {
		p.write(b[10:])
		p.write(b[:10])
		select {
		case <-handled:
		case <-time.After(soon):
			return g, sock
		}
	}
}

func ends(t *testing.T, g *gateway.Gateway) {
	t.Helper()
	require.Eventually(t, func() bool { return g.Connections() == 0 }, patience, time.Millisecond)
}

// A connection can be closed while its reader writes what it has held back.
func TestAReaderThatIsWritingEnds(t *testing.T) {
	t.Run("the peer resets", func(t *testing.T) {
		g, sock := stuck(t, gateway.Options{})
		require.NoError(t, sock.SetLinger(0))
		require.NoError(t, sock.Close())
		ends(t, g)
	})
	t.Run("the peer takes nothing for too long", func(t *testing.T) {
		g, _ := stuck(t, gateway.Options{WriteTimeout: 100 * time.Millisecond})
		ends(t, g)
	})
	t.Run("the gateway pauses", func(t *testing.T) {
		g, _ := stuck(t, gateway.Options{})
		require.NoError(t, g.Suspend(t.Context()))
		ends(t, g)
	})
}
