package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
)

// Gateway is a running gateway.
type Gateway struct {
	self      actors.Peer
	shared    *shared
	listeners []net.Listener
	over      chan struct{} // closed once the actor has stopped
}

// shared is what all connections of a gateway have in common.
type shared struct {
	opt        Options
	service    atomic.Pointer[Service]
	stopping   atomic.Bool
	open       atomic.Int64 // connections
	lastID     atomic.Uint64
	large      budget
	kept       atomic.Int64             // bytes of large heartbeats
	wide       [len(wider)]atomic.Int64 // read buffers of each size
	slow       chan struct{}
	handshakes chan struct{}
	noise      zerolog.Logger // for what hostile peers can cause: a few lines a minute
}

// What the gateway actor is told.
type (
	accepted struct {
		sock net.Conn
		port int
	}
	stop struct{}
	// giveUp: the time to stop in good order is over.
	giveUp struct{}
)

// Refuse closes a connection that nobody will serve.
func (m accepted) Refuse(error) { _ = m.sock.Close() }

// Start listens on the ports of the first service and spawns the gateway's actor under the name "gateway". On an error nothing is left
// behind; it is ErrOptions when an option, or a service without the certificate that TLS needs, is to blame.
func Start(root *actor.RootContext, opt Options, first Service) (*Gateway, error) {
	opt, ports := opt.Defaults(), first.Ports
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	if opt.TLSMode != TLSDisabled && first.TLS == nil {
		return nil, fmt.Errorf("%w: TLS is missing: a certificate is needed", ErrOptions)
	}
	g := &Gateway{over: make(chan struct{}), shared: &shared{
		opt: opt, slow: make(chan struct{}, opt.MaxSlow), large: budget{free: opt.MaxLargeBytes},
		handshakes: make(chan struct{}, opt.MaxHandshakes),
	}}
	g.shared.service.Store(&first)
	g.shared.noise = opt.Logger.Sample(&zerolog.BurstSampler{Burst: 10, Period: time.Minute})
	for _, p := range ports {
		l, err := net.Listen("tcp", p.Address)
		if err != nil {
			g.closeListeners()
			return nil, fmt.Errorf("port %s: %w", p.Name, err)
		}
		g.listeners = append(g.listeners, l)
	}
	a := &gatewayActor{gateway: g, children: map[string]child{}, busy: map[string]struct{}{}}
	props := actor.PropsFromProducer(func() actor.Actor { return a },
		actor.WithMailbox(mailbox.New(mailbox.Options{}).Producer()),
		actor.WithSupervisor(actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })))
	pid, err := root.SpawnNamed(props, "gateway")
	if err != nil {
		g.closeListeners()
		return nil, fmt.Errorf("spawn the gateway: %w", err)
	}
	g.self = actors.NewPeer(root, pid)
	for i := range ports {
		go g.accept(g.listeners[i], i)
	}
	return g, nil
}

func (g *Gateway) closeListeners() {
	for _, l := range g.listeners {
		_ = l.Close() // nothing depends on it
	}
}

// Address is where the i-th port listens.
func (g *Gateway) Address(i int) netip.AddrPort { return addrOf(g.listeners[i].Addr()) }

// Connections is the number of open connections.
func (g *Gateway) Connections() int { return int(g.shared.open.Load()) }

// Stop takes the gateway down in good order: nobody is accepted any more, held pulls are answered, routes marked
// RefuseWhenStopping are refused with a code on which clients turn to another broker, and each connection is closed once
// its last request is answered. When the context ends, what is left is closed at once, and its error returned.
//
// It may be called more than once.
func (g *Gateway) Stop(ctx context.Context) error {
	g.self.Send(stop{})
	select {
	case <-g.over:
		return nil
	case <-ctx.Done():
	}
	g.self.Send(giveUp{})
	<-g.over
	return fmt.Errorf("stop the gateway: %w", context.Cause(ctx))
}

// accept takes connections until the listener is closed.
func (g *Gateway) accept(l net.Listener, port int) {
	const pause = 50 * time.Millisecond
	for {
		sock, err := l.Accept()
		switch {
		case err == nil && g.shared.open.Add(1) <= int64(g.shared.opt.MaxConnections):
			g.self.Send(accepted{sock: sock, port: port})
		case err == nil:
			g.shared.open.Add(-1)
			_ = sock.Close() // it is refused: nothing depends on it
			g.shared.noise.Warn().Int("limit", g.shared.opt.MaxConnections).Msg("too many connections: one is refused")
		case errors.Is(err, net.ErrClosed):
			return
		default: // out of descriptors, say: others may be given back
			g.shared.noise.Warn().Err(err).Str("port", g.shared.service.Load().Ports[port].Name).Msg("accepting a connection failed")
			select {
			case <-time.After(pause):
			case <-g.over:
				return
			}
		}
	}
}

// gatewayActor spawns an actor for each connection and stops them.
type gatewayActor struct {
	gateway  *Gateway
	children map[string]child
	stopping bool
	pausing  *time.Timer // while it is paused: closes everything
	busy     map[string]struct{}
	quiet    []chan struct{} // closed once nobody is busy
}

// child is a connection.
type child struct {
	pid  *actor.PID
	conn *Conn
}

// Receive implements actor.Actor.
func (a *gatewayActor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case accepted:
		a.accepted(ctx, m)
	case *actor.Terminated:
		delete(a.children, m.Who.Id)
		a.quieted(m.Who.Id)
		a.gateway.shared.open.Add(-1)
		a.finish(ctx)
	case stop:
		a.stop(ctx)
	case giveUp:
		a.giveUp(ctx)
	case suspend:
		a.suspend(ctx, m)
	case quieted:
		a.quieted(m.id)
	case hurry:
		for _, c := range a.children {
			ctx.Send(c.pid, hurry{})
		}
	case resume:
		a.resume(ctx)
	case pausedLong:
		a.pausedLong(ctx)
	case *actor.Stopping:
		if a.pausing != nil {
			a.pausing.Stop()
		}
		a.gateway.closeListeners()
	case *actor.Stopped:
		close(a.gateway.over)
	}
}

func (a *gatewayActor) accepted(ctx actor.Context, m accepted) {
	s := a.gateway.shared
	if a.stopping {
		s.open.Add(-1)
		m.Refuse(messages.ErrClosed)
		return
	}
	c := newConn(s.lastID.Add(1), m.sock, m.port, s)
	if a.pausing != nil {
		c.paused.Store(1)
	}
	pid, err := ctx.SpawnNamed(connectionProps(c), fmt.Sprintf("connection-%d", c.id))
	if err != nil {
		s.open.Add(-1)
		m.Refuse(err)
		s.opt.Logger.Error().Err(err).Msg("spawning a connection failed")
		return
	}
	a.children[pid.Id] = child{pid, c}
}

func (a *gatewayActor) stop(ctx actor.Context) {
	if !a.stopping {
		a.stopping = true
		a.gateway.shared.stopping.Store(true)
		a.gateway.closeListeners()
		for _, c := range a.children {
			ctx.Send(c.pid, drain{})
		}
	}
	a.finish(ctx)
}

// giveUp closes all connections.
func (a *gatewayActor) giveUp(ctx actor.Context) {
	for _, c := range a.children {
		ctx.Send(c.pid, ended{errStopped})
	}
}

// finish ends the actor of a stopping gateway once the last connection has ended.
func (a *gatewayActor) finish(ctx actor.Context) {
	if a.stopping && len(a.children) == 0 {
		ctx.Stop(ctx.Self())
	}
}
