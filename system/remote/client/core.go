package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system/remote/wire"
)

// core is the client's actor: it knows what is under way, and where.
type core struct {
	c    *Client
	self *actor.PID

	next    uint64           // the id that comes next
	low     uint64           // every id below is done
	waiting []*call          // not begun: the window is full
	calls   map[uint64]*call // begun
	bytes   int              // of begun ones

	routes   map[string]*route // by topic
	nodes    map[string]*node  // by address
	readers  map[uint64]*reader
	homeless []*reader // have no subscription now

	timer *time.Timer
	armed time.Time // when it goes off; zero: it does not
}

// What the core is told, besides calls and envelopes.
type (
	givenUp struct {
		call *call
		why  error
	}
	tick     struct{}
	lost     struct{ address string }
	farewell struct{ answer *messages.Answer[struct{}] }
	resolved struct {
		topic   string
		address string
		err     error
	}
)

// route is where a topic lives.
type route struct {
	address string // empty: it is asked for
	failed  string // what it was before, and was of no use
	asking  bool
	tried   int       // times in a row that it was asked for
	again   time.Time // not before
}

func newCore(c *Client) *core {
	k := &core{
		c: c, next: 1, low: 1, calls: map[uint64]*call{}, routes: map[string]*route{}, nodes: map[string]*node{},
		readers: map[uint64]*reader{},
	}
	return k
}

// Receive implements actor.Actor.
func (k *core) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		k.self = ctx.Self()
		k.timer = time.AfterFunc(time.Hour, func() { k.c.root.Send(k.c.pid, tick{}) })
		k.timer.Stop()
	case *call:
		k.waiting = append(k.waiting, m)
		k.begin()
	case *wire.Envelope:
		k.take(ctx.Sender(), m)
	case givenUp:
		k.giveUp(m)
	case resolved:
		k.resolved(m)
	case lost:
		k.lost(m.address)
	case tick:
		k.armed = time.Time{}
		k.tick(time.Now())
	case *reader:
		k.homeless = append(k.homeless, m)
		k.settle(m)
	case acked:
		k.acked(m)
	case leave:
		k.leave(m)
	case *farewell:
		k.farewell(m)
	case *actor.Stopping:
		k.timer.Stop()
	}
}

// arm sees to it that tick comes, at the latest at a time.
func (k *core) arm(at time.Time) {
	if !k.armed.IsZero() && !at.Before(k.armed) {
		return
	}
	k.armed = at
	k.timer.Reset(max(time.Until(at), time.Millisecond))
}

// tick does what is due. It looks at everything that is under way, so it is armed for the earliest only.
func (k *core) tick(now time.Time) {
	for _, n := range k.nodes {
		k.lookAfter(n, now)
	}
	for _, id := range slices.Sorted(maps.Keys(k.calls)) {
		p := k.calls[id]
		switch {
		case p == nil: // ended meanwhile
		case !p.deadline.After(now):
			k.finish(p, nil, p.failed(context.DeadlineExceeded))
		case !p.due.After(now):
			k.overdue(p, now)
		}
	}
	for _, p := range slices.Clone(k.waiting) {
		if !p.deadline.After(now) {
			k.giveUp(givenUp{p, context.DeadlineExceeded})
		}
	}
	k.readersTick(now)
	k.placeWaiting(now)
	for _, p := range k.calls {
		k.arm(earlier(p.deadline, p.due))
	}
	for _, p := range k.waiting {
		k.arm(p.deadline)
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// overdue asks again: the node that a call was sent to has not answered, or its pause is over.
func (k *core) overdue(p *call, now time.Time) {
	if n := p.node; n != nil && n.up && n.heard.Before(p.sent) {
		k.doubt(n, now) // it says nothing at all
		return
	}
	k.place(p, now)
}

// begin gives ids to as many calls as may be under way.
func (k *core) begin() {
	now := time.Now()
	for len(k.waiting) > 0 {
		p := k.waiting[0]
		if k.next-k.low >= wire.Window || len(k.calls) > 0 && k.bytes+p.bytes > k.c.opt.MaxInFlightBytes {
			k.arm(p.deadline)
			return
		}
		if k.waiting = k.waiting[1:]; len(k.waiting) == 0 {
			k.waiting = nil
		}
		p.id = k.id()
		k.calls[p.id] = p
		k.bytes += p.bytes
		k.place(p, now)
	}
}

// id is the next id.
func (k *core) id() uint64 {
	k.next++
	return k.next - 1
}

// place sends a call to the node that leads its topic, or lets it wait until there is one.
func (k *core) place(p *call, now time.Time) {
	p.node, p.due = nil, p.deadline
	defer func() { k.arm(earlier(p.due, p.deadline)) }()
	n := k.nodeOf(p.topic, now)
	if n == nil {
		return
	}
	payload := p.payload(p, now)
	if size := proto.Size(payload); size > maxRequestBytes {
		k.finish(p, nil, &RefusedError{Code: wire.Code_INVALID, Text: fmt.Sprintf("%d bytes, the limit is %d", size, maxRequestBytes)})
		return
	}
	p.attempts++
	p.unanswered++
	p.node, p.sent, p.due = n, now, now.Add(grown(attemptTimeout, maxAttempt, p.attempts))
	k.send(n, p.kind, p.id, payload)
}

func (k *core) send(n *node, kind string, id uint64, payload proto.Message) {
	e, err := wire.Pack(kind, k.c.id, id, payload)
	if err != nil {
		k.c.opt.Logger.Error().Err(err).Msg("a request can't be sent")
		return
	}
	e.Done = k.low
	k.c.root.RequestWithCustomSender(n.pid, e, k.self)
}

// finish ends a call.
func (k *core) finish(p *call, e *wire.Envelope, err error) {
	if k.calls[p.id] == p {
		delete(k.calls, p.id)
		k.bytes -= p.bytes
		for k.low < k.next && k.calls[k.low] == nil {
			k.low++
		}
	}
	<-k.c.room
	if broken := actors.Protect("take the answer of a request", func() error { p.done(e, err); return nil }); broken != nil {
		k.c.opt.Logger.Error().Err(broken).Msg("a caller's function panicked")
	}
	k.begin()
}

// giveUp ends a call whose caller does not wait any longer.
func (k *core) giveUp(m givenUp) {
	if i := slices.Index(k.waiting, m.call); i >= 0 {
		k.waiting = slices.Delete(k.waiting, i, i+1)
		k.finish(m.call, nil, m.call.failed(m.why))
	} else if k.calls[m.call.id] == m.call {
		k.finish(m.call, nil, m.call.failed(m.why))
	}
}

// take takes what a node has sent.
func (k *core) take(from *actor.PID, e *wire.Envelope) {
	if from == nil {
		return
	}
	defer k.c.host.Handled(from.GetAddress(), 1, proto.Size(e))
	n := k.nodes[from.GetAddress()]
	if n == nil || e.GetClient() != k.c.id || e.GetVersion() != wire.Version {
		return
	}
	now := time.Now()
	n.heard = now
	switch e.GetKind() {
	case wire.KindWelcome:
		k.welcome(n, e, now)
		return
	case wire.KindDelivery:
		k.delivery(n, e)
		return
	}
	p := k.calls[e.GetId()]
	switch {
	case e.GetKind() == wire.KindRefused:
		k.refused(n, p, e, now)
	case p == nil: // an echo
	case e.GetKind() != p.want:
		k.finish(p, nil, errors.Join(ErrAnswer, errors.New("it is "+e.GetKind())))
	default:
		k.finish(p, e, nil)
	}
}

// refused takes note of a refusal: some are for good, after others the call is tried again, here or elsewhere.
func (k *core) refused(n *node, p *call, e *wire.Envelope, now time.Time) {
	r := &wire.Refused{}
	if err := wire.Unpack(e, r); err != nil {
		k.c.opt.Logger.Warn().Err(err).Str("node", n.address).Msg("an answer can't be read")
		return
	}
	if rd := k.readers[e.GetId()]; rd != nil {
		k.readerRefused(rd, r, now)
		return
	}
	if e.GetId() == 0 { // a hello
		k.c.opt.Logger.Warn().Str("node", n.address).Stringer("code", r.GetCode()).Str("text", r.GetText()).Msg("a node does not serve this client now")
		return
	}
	if p == nil || p.node != n {
		return
	}
	cause := &RefusedError{Code: r.GetCode(), Text: r.GetText()}
	switch r.GetCode() {
	case wire.Code_NOT_LEADER, wire.Code_UNAVAILABLE:
		k.reroute(p.topic, n.address, r.GetLeader(), now)
	case wire.Code_BUSY:
	default:
		k.finish(p, nil, cause)
		return
	}
	p.unanswered--
	p.refusals++
	p.cause = cause
	p.node, p.due = nil, now.Add(grown(firstPause, maxPause, p.refusals))
	k.arm(p.due)
}

func (k *core) farewell(m *farewell) {
	for _, r := range k.readers {
		k.depart(r)
	}
	waiting := k.waiting
	k.waiting, k.homeless = nil, nil
	for _, p := range waiting {
		k.finish(p, nil, ErrClosed)
	}
	for _, p := range k.calls {
		k.finish(p, nil, ErrClosed)
	}
	m.answer.Complete(struct{}{}, nil)
}
