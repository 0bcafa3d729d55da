package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages/remoting"
)

// Service is what a gateway's ports do. A gateway begins with that of Start; Suspend and Serve put another one in its place, while the ports
// and the connections stay.
type Service struct {
	Ports []Port      // as many as the gateway has, in their order and with their names
	TLS   *tls.Config // of the server; required unless TLS is disabled. GetConfigForClient lets it change
	// OnClosed, when set, is called once for each connection that has ended, on its actor's goroutine: it must not block.
	OnClosed func(*Conn)
	// OnTell, when set, is given what an actor tells a client through its connection (messages.ClientChannel); it must not
	// block.
	OnTell func(*Conn, any)
	Relay  *Relay // to whoever leads, of a node that does not; nil: this node serves everything
	Beat   int    // the code of the request by which clients say who they are; 0: none
	Bye    int    // the code of the one by which they take a part of that back; 0: none
}

// relays tells whether a request is for whoever leads. By a heartbeat alone nobody takes this node for that one.
func (s *Service) relays(c *Conn, cmd *remoting.Command) bool {
	return s.Relay != nil && s.Relay.Takes(cmd) && (cmd.Code != s.Beat || c.tunnel.Load() != nil)
}

// says tells whether a request says something of its peer.
func (s *Service) says(c *remoting.Command) bool {
	return c.Code != 0 && (c.Code == s.Beat || c.Code == s.Bye)
}

// maxPause is how long clients are kept waiting for the next service; then their connections are closed, so that they look elsewhere.
const maxPause = 3 * time.Second

// What the gateway actor, and the connections', are told.
type (
	// suspend: nothing is handled any more; quiet is closed once all requests are answered.
	suspend struct{ quiet chan struct{} }
	// hurry: take back what was relayed; close who has an unanswered request all the same.
	hurry struct{}
	// late: something was relayed that had been read before the pause; a pull would be held by the leader.
	late struct{}
	// takeBack: the leader that a pause waits for leads no more.
	takeBack struct{}
	// pause: tell to, by the id, once this connection's requests are answered.
	pause struct {
		id string
		to actors.Peer
	}
	// quieted: a connection's requests are answered.
	quieted struct{ id string }
	// resume: there is a service again.
	resume struct{}
	// pausedLong: nobody has resumed within maxPause.
	pausedLong struct{}
)

// Suspend has the gateway handle nothing more: held pulls are answered, and when it returns so is every request that was read before. What
// clients send meanwhile stays in their sockets, up to maxPause. When the context ends first, the connections whose requests are not answered are
// closed. Serve goes on. Suspend and Serve are called one after the other.
func (g *Gateway) Suspend(ctx context.Context) error {
	quiet := make(chan struct{})
	g.self.Send(suspend{quiet})
	var err error
	select {
	case <-quiet:
		return nil
	case <-g.over:
		return nil
	case <-ctx.Done():
		err = fmt.Errorf("suspend the gateway: %w", context.Cause(ctx))
	}
	g.self.Send(hurry{})
	select {
	case <-quiet:
	case <-g.over:
	}
	return err
}

// Serve has a suspended gateway go on with a service. Clients are announced to it by their last heartbeat, and what they took back since, before
// anything else of theirs is handled.
func (g *Gateway) Serve(s Service) error {
	if len(s.Ports) != len(g.listeners) {
		return fmt.Errorf("%w: a service for %d ports, there are %d", ErrOptions, len(s.Ports), len(g.listeners))
	}
	g.shared.service.Store(&s)
	g.self.Send(resume{})
	return nil
}

// pausedLong closes all connections, and again those that come later.
func (a *gatewayActor) pausedLong(ctx actor.Context) {
	if a.pausing != nil {
		a.giveUp(ctx)
		a.pausing = a.gateway.self.After(maxPause, pausedLong{})
	}
}

func (a *gatewayActor) suspend(ctx actor.Context, m suspend) {
	begins := a.pausing == nil
	if begins {
		a.pausing = a.gateway.self.After(maxPause, pausedLong{})
	}
	a.quiet = append(a.quiet, m.quiet)
	for id, c := range a.children {
		if begins {
			c.conn.paused.Add(1) // who is resuming from the pause before takes that one back only
		}
		a.busy[id] = struct{}{}
		ctx.Send(c.pid, pause{id: id, to: a.gateway.self})
	}
	a.quieted("")
}

// quieted notes that a connection's requests are answered, or that it has ended.
func (a *gatewayActor) quieted(id string) {
	if delete(a.busy, id); len(a.busy) > 0 {
		return
	}
	for _, quiet := range a.quiet {
		close(quiet)
	}
	a.quiet = nil
}

func (a *gatewayActor) resume(ctx actor.Context) {
	if a.pausing == nil {
		return
	}
	a.pausing.Stop()
	a.pausing = nil
	for _, c := range a.children {
		ctx.Send(c.pid, resume{})
	}
}

func (a *connection) pause(m pause) {
	c := a.conn
	c.draining.Store(true)
	c.evict()
	a.pausing = append(a.pausing, m)
	a.late()
}

// late takes back what was relayed and the leader need not answer now.
func (a *connection) late() {
	if len(a.pausing) == 0 {
		return
	}
	if t := a.conn.tunnel.Load(); t != nil {
		a.conn.again = append(a.conn.again, a.conn.countedOut(t.back())...)
	}
	a.paused()
}

// hurry takes back what the leader has not answered, and tells whether something is left that nobody will answer in time.
func (a *connection) hurry() bool {
	a.takeBack()
	return len(a.pausing) > 0
}

// takeBack keeps what was relayed and is not answered for the next service; what the leader was given comes first.
func (a *connection) takeBack() {
	if len(a.pausing) > 0 {
		a.conn.again = append(a.conn.endTunnel(), a.conn.again...)
		a.paused()
	}
}

// paused tells who waits that everything is answered, once it is.
func (a *connection) paused() {
	if len(a.pausing) == 0 || !a.conn.answered() {
		return
	}
	a.conn.again = append(a.conn.endTunnel(), a.conn.again...) // the service that comes makes one of its own
	for _, m := range a.pausing {
		m.to.Send(quieted{m.id})
	}
	a.pausing = nil
}

var errNotLeading = errors.New("this node does not lead any more")

// resume lets the peer's requests be handled again.
func (a *connection) resume() {
	c := a.conn
	s := c.shared.service.Load()
	if c.relayed.Load() {
		c.Close(errNotLeading) // it was asked of the lead that is over: what it relays comes again on another connection, or elsewhere
	}
	c.mu.Lock()
	c.tenants = map[Tenant]struct{}{}
	c.mu.Unlock()
	c.draining.Store(c.shared.stopping.Load())
	again := c.again
	c.again = nil
	c.gate.inFlight.Add(1) // a pause that comes meanwhile waits for what is handled first
	go c.resumed(s, again)
}

// resumed handles what comes before what the peer sends next: its heartbeat, and what was relayed and is not answered.
func (c *Conn) resumed(s *Service, again []*Request) {
	routes := s.Ports[c.port].Routes
	c.announce(routes)
	late := false
	for _, r := range again {
		c.gate.inFlight.Add(1)
		r.again = true
		late = late || s.says(r.Command)
		if route, known := routes[r.Code]; !known {
			r.Fail(remoting.ResponseRequestCodeNotSupported, fmt.Sprintf(" request type %d not supported", r.Code))
		} else if s.relays(c, r.Command) {
			c.relay(s.Relay, r)
		} else {
			r.writes = aside
			c.serve(r, route)
		}
	}
	if late {
		c.announce(routes)
	}
	c.paused.Add(-1)
	c.leave()
}

// announce has this node hear who the peer is. What comes again may be older than what the peer has said last, so it is said behind that once
// more: a part that was taken back by a request without an answer would be given again.
func (c *Conn) announce(routes Routes) {
	for _, said := range c.peerIs.Load().requests() {
		if route := routes[said.Code]; route.Handle != nil && c.cause.Load() == nil {
			c.gate.inFlight.Add(1)
			c.serve(&Request{Command: quietly(said), Conn: c, At: time.Now(), writes: aside, again: true}, route)
		}
	}
}

// quietly is a request that is not answered.
func quietly(c *remoting.Command) *remoting.Command {
	q := *c
	q.Flag |= remoting.FlagOneWay
	return &q
}
