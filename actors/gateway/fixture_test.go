package gateway_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages/remoting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 10 * time.Second

// soon is how long a test waits to see that something does not happen.
const soon = 50 * time.Millisecond

// start runs a gateway with one port.
func start(t *testing.T, opt gateway.Options, routes gateway.Routes) *gateway.Gateway {
	t.Helper()
	return serve(t, opt, gateway.Service{}, routes)
}

// serve is start with more than the routes of a service.
func serve(t *testing.T, opt gateway.Options, s gateway.Service, routes gateway.Routes) *gateway.Gateway {
	t.Helper()
	s.Ports = []gateway.Port{{Name: "test", Address: "127.0.0.1:0", Routes: routes}}
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(io.Discard, nil))
	}), actor.WithDeadLetterThrottleInterval(time.Millisecond))
	g, err := gateway.Start(system.Root, opt, s)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, g.Stop(ctx))
		system.Shutdown()
	})
	return g
}

// peer is a client on the wire.
type peer struct {
	t    *testing.T
	sock net.Conn
	in   *bufio.Reader
}

func dial(t *testing.T, g *gateway.Gateway) *peer {
	t.Helper()
	sock, err := net.Dial("tcp", g.Address(0).String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = sock.Close() })
	return &peer{t: t, sock: sock, in: bufio.NewReader(sock)}
}

func (p *peer) write(b []byte) {
	p.t.Helper()
	require.NoError(p.t, p.sock.SetWriteDeadline(time.Now().Add(patience)))
	_, err := p.sock.Write(b)
	require.NoError(p.t, err)
}

func (p *peer) send(c ...*remoting.Command) {
	p.t.Helper()
	var b []byte
	for _, one := range c {
		var err error
		b, err = one.Append(b)
		require.NoError(p.t, err)
	}
	p.write(b)
}

func (p *peer) read() *remoting.Command {
	p.t.Helper()
	require.NoError(p.t, p.sock.SetReadDeadline(time.Now().Add(patience)))
	c, err := remoting.ReadCommand(p.in, remoting.Limits{})
	require.NoError(p.t, err)
	return c
}

// silent requires that nothing comes.
func (p *peer) silent() {
	p.t.Helper()
	require.NoError(p.t, p.sock.SetReadDeadline(time.Now().Add(soon)))
	_, err := p.in.Peek(1)
	require.ErrorContains(p.t, err, "timeout")
}

// gone requires that the peer closes the connection, with nothing before.
func (p *peer) gone() {
	p.t.Helper()
	require.NoError(p.t, p.sock.SetReadDeadline(time.Now().Add(patience)))
	_, err := p.in.ReadByte()
	require.Error(p.t, err)
	require.NotContains(p.t, err.Error(), "timeout")
}

func request(code int, opaque int32) *remoting.Command {
	return &remoting.Command{Code: code, Opaque: opaque, Version: remoting.Version}
}

// arrives waits for a value.
func arrives[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		require.FailNow(t, "nothing arrived")
		panic("unreachable")
	}
}

// quiet requires that no value comes.
func quiet[T any](t *testing.T, ch <-chan T) {
	t.Helper()
	select {
	case <-ch:
		require.FailNow(t, "something arrived")
	case <-time.After(soon):
	}
}
