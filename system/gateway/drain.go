package gateway

import (
	"context"
	"strconv"
	"time"

	edge "github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway/broker"
)

// maxGrace bounds what a request may ask for.
const maxGrace = time.Hour

// Drain sends producers to other brokers: the node's topics lose their write permission in the routes, here and at the name servers
// that it is registered at, and everything goes on being served until the grace is over or the context ends. Clients ask for
// routes every 30 s. What is sent to a node that is stopped then is refused with a code, or not connected, and the client's
// own retry takes it to another broker.
func (n *Node) Drain(ctx context.Context, grace time.Duration) {
	n.draining.Store(true)
	if n.registrar != nil {
		n.registrar.Changed()
	}
	n.broker.Logger.Info().Stringer("grace", grace).Msg("draining: producers are sent to other brokers")
	select {
	case <-time.After(grace):
	case <-ctx.Done():
	}
}

// Draining tells whether producers are sent to other brokers, as the node is going to stop.
func (n *Node) Draining() bool { return n.draining.Load() }

// drainRequest answers DRAIN_BROKER: administrators may, and without access control those on the same machine.
func (n *Node) drainRequest(r *edge.Request) {
	var h remoting.DrainHeader
	if !broker.Header(r, &h) {
		return
	}
	switch grace := time.Duration(h.GraceMs) * time.Millisecond; {
	case n.access == nil && !r.Conn.Remote().Addr().IsLoopback():
		r.Fail(remoting.ResponseNoPermission, "without access control a broker is drained from its own machine only")
	case n.cfg.OnDrain == nil:
		r.Fail(remoting.ResponseRequestCodeNotSupported, "this broker is not drained by requests")
	case grace < 0 || grace > maxGrace:
		r.Fail(remoting.ResponseSystemError, "graceMillis is "+strconv.FormatInt(h.GraceMs, 10)+": 0 to an hour")
	default:
		n.cfg.OnDrain(grace)
		r.OK(nil)
	}
}
