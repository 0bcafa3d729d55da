package endpoint

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/actormq/actormq/system/remote/wire"
)

// caller handles the requests of one client, one after the other; reads block it alone.
type caller struct {
	e    *Endpoint
	key  callerKey
	to   *actor.PID
	self *actor.PID

	done     uint64 // ids below have been answered, the client says
	puts     map[uint64]*put
	open     int    // puts that are not answered yet
	unknown  []*put // puts that were sent before, whose fate is to be looked up
	looking  bool
	making   map[string][]*put // puts that wait for their topic to be made
	answered []answered        // reads, in the order of their answers
	subs     map[uint64]*subscription

	held     int // bytes
	heard    time.Time
	timer    *time.Timer
	draining bool
}

// answered is a read whose answer the client has not confirmed yet.
type answered struct {
	id    uint64
	bytes int
}

// What a caller tells itself.
type (
	silenceTick struct{}
	readOn      struct{ sub *subscription }
)

func newCaller(e *Endpoint, key callerKey, to *actor.PID) *caller {
	return &caller{e: e, key: key, to: to, puts: map[uint64]*put{}, making: map[string][]*put{}, subs: map[uint64]*subscription{}, done: 1}
}

// Receive implements actor.Actor.
func (c *caller) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		c.self, c.heard = ctx.Self(), time.Now()
		c.arm()
	case *wire.Envelope:
		c.heard = time.Now()
		c.take(m)
		c.e.host.Handled(c.key.address, 1, proto.Size(m))
	case stored:
		c.stored(m)
	case topicMade:
		c.topicMade(m)
	case lookedUp:
		c.lookedUp(m)
	case readOn:
		c.readOn(m.sub)
	case woken:
		c.woken(m)
	case silenceTick:
		c.silence(ctx)
	case *drain:
		c.draining = true
		c.idle()
	case *actor.Stopping, *actor.Restarting:
		c.end()
	}
}

func (c *caller) arm() {
	root, self := c.e.root, c.self
	c.timer = time.AfterFunc(c.e.cfg.Limits.Silence/3, func() { root.Send(self, silenceTick{}) })
}

// silence forgets a client that is not heard of.
func (c *caller) silence(ctx actor.Context) {
	if quiet := time.Since(c.heard); quiet >= c.e.cfg.Limits.Silence {
		c.e.cfg.Logger.Info().Uint64("client", c.key.client).Str("address", c.key.address).Dur("silent", quiet).Msg("a remote client is forgotten")
		ctx.Send(ctx.Parent(), gone{c.key})
		return
	}
	c.arm()
}

// end lets go of everything.
func (c *caller) end() {
	c.timer.Stop()
	for id := range c.subs {
		c.unsubscribe(id)
	}
	c.hold(-c.held)
}

// idle tells the router, which waits for it when the node stops, that everything is answered.
func (c *caller) idle() {
	if c.draining && c.open == 0 {
		c.e.root.Send(c.e.pid, idling{c.key})
	}
}

func (c *caller) hold(bytes int) {
	c.held += bytes
	c.e.held.Add(int64(bytes))
}

// full tells whether nothing more may be sent to the client for now.
func (c *caller) full() bool {
	return c.held >= c.e.cfg.Limits.ClientBytes || c.e.held.Load() >= c.e.cfg.Limits.TotalBytes
}

func (c *caller) refuse(m *wire.Envelope, code wire.Code, text string) {
	c.e.answer(c.to, m, wire.KindRefused, &wire.Refused{Code: code, Text: text})
}

// take carries out a request.
func (c *caller) take(m *wire.Envelope) {
	if m.GetVersion() != wire.Version {
		c.refuse(m, wire.Code_UNSUPPORTED, "another version")
		return
	}
	c.confirmed(m.GetDone())
	switch m.GetKind() {
	case wire.KindHello:
		c.e.answer(c.to, m, wire.KindWelcome, &wire.Welcome{
			Life: c.e.life, MaxMessageBytes: uint32(c.e.cfg.Store.Options().MaxMessageBytes), Window: wire.Window,
		})
	case wire.KindPut:
		c.put(m)
	case wire.KindGet:
		decoded(c, m, c.get)
	case wire.KindQuery:
		decoded(c, m, c.query)
	case wire.KindOffsets:
		decoded(c, m, c.offsets)
	case wire.KindSubscribe:
		decoded(c, m, c.subscribe)
	case wire.KindAck:
		decoded(c, m, c.ack)
	case wire.KindUnsubscribe:
		c.unsubscribe(m.GetId())
	default:
		c.e.cfg.Logger.Warn().Str("kind", clip(m.GetKind())).Str("address", c.key.address).Msg("a remote client asks for what is not known here")
		c.refuse(m, wire.Code_UNSUPPORTED, "kind "+clip(m.GetKind())+" is not known here")
	}
}

func clip(text string) string { return text[:min(len(text), 32)] }

// confirmed forgets what the client has got; its ids only grow.
func (c *caller) confirmed(done uint64) {
	if done <= c.done {
		return
	}
	for id := c.done; id < done && id < c.done+wire.Window; id++ {
		if p := c.puts[id%wire.Window]; p != nil && p.id < done && p.answer != nil {
			delete(c.puts, id%wire.Window)
		}
	}
	c.done = done
	n := 0
	for ; n < len(c.answered) && c.answered[n].id < done; n++ {
		c.hold(-c.answered[n].bytes)
	}
	if c.answered = c.answered[n:]; len(c.answered) == 0 {
		c.answered = nil
	}
	if n > 0 {
		c.readOnAll()
	}
}

// decoded reads a payload and calls the handler with it.
func decoded[M any, P interface {
	*M
	proto.Message
}](c *caller, m *wire.Envelope, handle func(*wire.Envelope, P)) {
	payload := P(new(M))
	if err := wire.Unpack(m, payload); err != nil {
		c.e.cfg.Logger.Warn().Err(err).Str("address", c.key.address).Msg("a request of a remote client can't be read")
		c.refuse(m, wire.Code_INVALID, err.Error())
		return
	}
	handle(m, payload)
}

// mine refuses a request for a topic that another node leads.
func (c *caller) mine(m *wire.Envelope, topic string) bool {
	leads, leader := c.e.leads(topic)
	if !leads {
		c.e.answer(c.to, m, wire.KindRefused, &wire.Refused{Code: wire.Code_NOT_LEADER, Text: "another node leads the topic", Leader: leader})
	}
	return leads
}
