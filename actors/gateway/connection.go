package gateway

import (
	"crypto/tls"
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
)

// What a connection actor is told.
type (
	// call: send a request of ours and keep its envelope until the response is there.
	call struct {
		request *remoting.Command
		timeout time.Duration
		answer  *messages.Answer[*remoting.Command]
	}
	// response: the client has answered one of our requests.
	response struct{ command *remoting.Command }
	// overdue: the time for a call is over.
	overdue struct{ opaque int32 }
	// idleTick: look whether the connection is still in use.
	idleTick struct{}
	// drain: the gateway stops; finish what is in flight, then close.
	drain struct{}
	// drained: nothing is in flight any more.
	drained struct{}
	// lastWritten: look whether the last answers are on their way.
	lastWritten struct{}
	// ended: the reader has stopped.
	ended struct{ err error }
)

// Refuse answers a call that will not be made.
func (m call) Refuse(error) { m.answer.Refuse(ErrConnectionClosed) }

// Why a connection is closed from our side.
var (
	errIdle    = errors.New("idle")
	errStuck   = errors.New("the peer takes nothing")
	errStopped = errors.New("the gateway stops")
)

// lingering is how long a drained connection waits for the peer to close its side, so that the last answers arrive.
const lingering = time.Second

// connection is the actor of one connection: its life, and our calls to the client.
type connection struct {
	conn  *Conn
	idle  *time.Timer
	calls map[int32]pending

	leaving bool    // the goodbye has been said, or is being waited for
	pausing []pause // told once everything is answered
}

type pending struct {
	answer *messages.Answer[*remoting.Command]
	timer  *time.Timer
}

// connectionProps are the props of a connection's actor; it may be spawned once.
func connectionProps(c *Conn) *actor.Props {
	a := &connection{conn: c, calls: map[int32]pending{}}
	return actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithMailbox(mailbox.New(mailbox.Options{}).Producer()))
}

// Receive implements actor.Actor.
func (a *connection) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		a.start(actors.NewPeer(ctx.ActorSystem().Root, ctx.Self()))
	case call:
		a.call(m)
	case response:
		a.complete(m.command.Opaque, m.command, nil)
	case overdue:
		a.complete(m.opaque, nil, ErrCallTimeout)
	case idleTick:
		a.idleTick()
	case drain:
		a.drain()
	case pause:
		a.pause(m)
	case hurry:
		if a.hurry() {
			a.ended(errStopped)
			ctx.Stop(ctx.Self())
		}
	case late:
		a.late()
	case takeBack:
		a.takeBack()
	case resume:
		a.resume()
	case drained:
		a.drained()
	case lastWritten:
		a.leaving = false
		a.drained()
	case ended:
		a.ended(m.err)
		ctx.Stop(ctx.Self())
	case *actor.Stopping:
		a.stopping()
	}
}

func (a *connection) start(self actors.Peer) {
	a.conn.self = self
	a.armIdle(a.conn.shared.opt.IdleTimeout)
	go func() { self.Send(ended{a.conn.read()}) }()
}

// armIdle looks again after d, but soon enough to notice a write that makes no progress.
func (a *connection) armIdle(d time.Duration) {
	a.idle = a.conn.self.After(min(d, a.conn.shared.opt.WriteTimeout), idleTick{})
}

func (a *connection) idleTick() {
	c, opt, now := a.conn, &a.conn.shared.opt, time.Now()
	if began := c.out.began.Load(); began != 0 && now.Sub(time.Unix(0, began)) >= opt.WriteTimeout {
		c.Close(errStuck)
		return
	}
	idle := now.Sub(time.Unix(0, max(c.heard.Load(), c.out.wrote.Load())))
	if idle >= opt.IdleTimeout {
		c.Close(errIdle)
		return
	}
	a.armIdle(opt.IdleTimeout - idle)
}

func (a *connection) call(m call) {
	id := m.request.Opaque
	a.calls[id] = pending{answer: m.answer, timer: a.conn.self.After(m.timeout, overdue{id})}
	a.conn.send(m.request)
}

// complete ends a call; a response that nobody waits for is dropped.
func (a *connection) complete(id int32, c *remoting.Command, err error) {
	p, ok := a.calls[id]
	if !ok {
		return
	}
	delete(a.calls, id)
	p.timer.Stop()
	p.answer.Complete(c, err)
}

func (a *connection) drain() {
	a.conn.draining.Store(true)
	a.conn.evict()
	a.drained()
}

// drained says goodbye once everything is answered and written: no more will be, and the peer has a moment to take the last
// answers. Closing at once would make the kernel throw them away if the peer has sent something meanwhile.
func (a *connection) drained() {
	const again = 20 * time.Millisecond
	c := a.conn
	if a.paused(); !c.shared.stopping.Load() {
		return // it was said of a pause
	}
	switch {
	case a.leaving || !c.answered():
		return
	case c.out.bytes.Load() > 0 || !c.out.claim():
		a.leaving = true
		c.self.After(again, lastWritten{})
		return
	}
	defer c.out.finish()
	a.leaving = true
	if c.goodbye() {
		c.self.After(lingering, ended{errStopped})
		return
	}
	c.Close(errStopped)
}

func (a *connection) ended(err error) {
	a.conn.Close(err)
	var alert tls.RecordHeaderError
	switch {
	case errors.Is(err, errPlain), errors.As(err, &alert):
		a.conn.shared.noise.Warn().Err(err).Stringer("peer", a.conn.remote).Str("port", a.conn.Port()).
			Msg("a connection is refused")
	case errors.Is(err, remoting.ErrFrameTooLarge), errors.Is(err, remoting.ErrBadFrame), errors.Is(err, remoting.ErrBadHeader):
		a.conn.shared.noise.Warn().Err(err).Stringer("peer", a.conn.remote).Str("port", a.conn.Port()).
			Msg("a peer does not speak the protocol: its connection is closed")
	}
}

func (a *connection) stopping() {
	a.conn.Close(messages.ErrClosed)
	a.conn.shared.opt.Logger.Debug().Str("connection", a.conn.name).AnErr("cause", a.conn.Cause()).Msg("connection ended")
	a.conn.evict()
	a.conn.drop(a.conn.endTunnel())
	a.conn.identify(nil)
	a.idle.Stop()
	for id := range a.calls {
		a.complete(id, nil, ErrConnectionClosed)
	}
	a.conn.drop(a.conn.again)
	if told := a.conn.shared.service.Load().OnClosed; told != nil {
		told(a.conn)
	}
}
