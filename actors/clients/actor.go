package clients

import (
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
)

// Role is the client keeper's name in a store.
const Role actors.Role = "client-keeper"

// Config is what a client keeper is made of.
type Config struct {
	Expiry   time.Duration // without a heartbeat; 0: 120 s
	Interval time.Duration // between looks for expired clients; 0: 10 s
	// Notifies tells whether the members of a group are told of changes (notifyConsumerIdsChangedEnable of the broker and of
	// the group); nil: all are. It must not block.
	Notifies func(group string) bool
	// Compile reads an expression that is no list of tags, once, when it is registered; nil: there are none.
	Compile func(expressionType, expression string) (any, error)
	Logger  zerolog.Logger
}

const (
	defaultExpiry   = 120 * time.Second
	defaultInterval = 10 * time.Second
)

// state is what is published. It never changes.
type state struct {
	consumers *actors.Table[string, *messages.ConsumerGroup]
	producers *actors.Table[string, *producerGroup]
	byID      *actors.Table[string, *messages.Client] // of the producers, the newest with each id
}

// producerGroup is the picture of an online producer group. The turn is shared by all pictures of the group.
type producerGroup struct {
	clients []*messages.Client // at least one
	turn    *atomic.Uint64
}

// keeperActor is the actor behind a Keeper.
type keeperActor struct {
	cfg        Config
	port       *mailbox.Combining
	tick       *time.Timer // nil: not armed, nobody is online
	published  atomic.Pointer[state]
	duplicates atomic.Int64

	registry registry

	// Of the running batch.
	waiting    []*messages.Answer[struct{}]
	registered []func()
}

func newActor(cfg Config) *keeperActor {
	if cfg.Expiry <= 0 {
		cfg.Expiry = defaultExpiry
	}
	if cfg.Interval <= 0 {
		cfg.Interval = defaultInterval
	}
	a := &keeperActor{cfg: cfg}
	a.registry = newRegistry(a.compile, a.duplicate)
	a.published.Store(&state{
		consumers: actors.NewTable[string, *messages.ConsumerGroup](), producers: actors.NewTable[string, *producerGroup](),
		byID: actors.NewTable[string, *messages.Client](),
	})
	return a
}

// Receive implements actor.Actor.
func (a *keeperActor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *mailbox.Batch:
		for x := m.Next(); x != nil; x = m.Next() {
			a.handle(x)
		}
		a.settle()
	case messages.ClientGone:
		a.registry.gone(m.Channel)
		a.settle()
	case messages.ClientsTick:
		a.tick = nil
		a.expire()
		a.settle()
	case *actor.Stopping:
		if a.tick != nil {
			a.tick.Stop()
		}
	case actor.SystemMessage, actor.AutoReceiveMessage:
	default:
		a.reject(m)
	}
}

func (a *keeperActor) handle(message any) {
	switch m := message.(type) {
	case *messages.Heartbeat:
		a.registry.heartbeat(m, time.Now())
		a.waiting = append(a.waiting, m.Answer)
		if m.Registered != nil {
			a.registered = append(a.registered, m.Registered)
		}
	case *messages.UnregisterClient:
		a.registry.leave(m.Channel, m.ProducerGroup, m.ConsumerGroup)
		a.waiting = append(a.waiting, m.Answer)
	default:
		a.reject(message)
	}
}

// settle publishes what has changed, tells the members of consumer groups that have, and answers.
func (a *keeperActor) settle() {
	a.publish()
	for _, tell := range a.registered {
		tell()
	}
	a.registered = nil
	a.notify()
	a.answer(nil)
	if a.tick == nil && len(a.registry.members) > 0 {
		a.tick = time.AfterFunc(a.cfg.Interval, func() { a.port.PostUserMessage(messages.ClientsTick{}) })
	}
}

func (a *keeperActor) answer(err error) {
	waiting := a.waiting
	a.waiting = nil
	for _, answer := range waiting {
		answer.Complete(struct{}{}, err)
	}
}

func (a *keeperActor) publish() {
	r, now := &a.registry, a.published.Load()
	if len(r.dirtyConsumers)+len(r.dirtyProducers)+len(r.dirtyIDs) == 0 {
		return
	}
	consumers, producers, byID := now.consumers.Edit(), now.producers.Edit(), now.byID.Edit()
	for name := range r.dirtyConsumers {
		if g := r.consumers[name]; g != nil {
			consumers.Set(name, g.picture())
		} else {
			consumers.Delete(name)
		}
	}
	for name := range r.dirtyProducers {
		if g := r.producers[name]; g != nil {
			producers.Set(name, &producerGroup{clients: clientsOf(g.seats), turn: &g.turn})
		} else {
			producers.Delete(name)
		}
	}
	for id := range r.dirtyIDs {
		if list := r.producersByID[id]; len(list) > 0 {
			byID.Set(id, list[len(list)-1].client)
		} else {
			byID.Delete(id)
		}
	}
	a.published.Store(&state{consumers: consumers.Table(), producers: producers.Table(), byID: byID.Table()})
	clear(r.dirtyConsumers)
	clear(r.dirtyProducers)
	clear(r.dirtyIDs)
}

// notify tells every member of the consumer groups that have changed, the one who changed it too.
func (a *keeperActor) notify() {
	if len(a.registry.changed) == 0 {
		return
	}
	changed := maps.Clone(a.registry.changed)
	clear(a.registry.changed)
	for name := range changed {
		g := a.registry.consumers[name]
		if g == nil || a.cfg.Notifies != nil && !a.cfg.Notifies(name) {
			continue
		}
		for _, s := range g.seats {
			s.client.Channel.Tell(messages.ConsumerIDsChanged{Group: name})
		}
	}
}

// expire takes out those whose heartbeats have ceased. A connection may go on with other groups; one that has none left is
// closed.
func (a *keeperActor) expire() {
	for _, channel := range a.registry.expire(time.Now().Add(-a.cfg.Expiry)) {
		a.cfg.Logger.Warn().Str("address", channel.RemoteAddr()).Dur("expiry", a.cfg.Expiry).
			Msg("a client has sent no heartbeat; its connection is closed")
		channel.Close(fmt.Errorf("%w for %v", messages.ErrClientExpired, a.cfg.Expiry))
	}
}

var errNoCompiler = errors.New("filters other than by tag are not supported")

// compile makes of a subscription what pulls need of it.
func (a *keeperActor) compile(s messages.Subscription) *messages.TopicSubscription {
	t := &messages.TopicSubscription{Subscription: s}
	switch {
	case s.ByTag():
		t.Tags = s.TagFilter()
	case a.cfg.Compile == nil:
		t.CompileErr = errNoCompiler
	default:
		t.Compiled, t.CompileErr = a.cfg.Compile(s.ExpressionType, s.SubString)
	}
	return t
}

// duplicate reports two connections with one client id in a consumer group. A client that connects again does that too, until
// its old connection is found to be gone.
func (a *keeperActor) duplicate(group string, before, after *messages.Client) {
	a.duplicates.Add(1)
	a.cfg.Logger.Warn().Str("group", group).Str("client_id", after.ID).Str("address", before.Channel.RemoteAddr()).
		Str("other_address", after.Channel.RemoteAddr()).
		Msg("two connections have one client id: if both stay, give the clients instance names of their own")
}

// reject does not leave the sender of an unknown message waiting.
func (a *keeperActor) reject(message any) {
	a.cfg.Logger.Warn().Type("message", message).Msg("the client keeper does not know a message")
	messages.Refuse(message, errors.ErrUnsupported)
}

// panicked is the mailbox's OnPanic: the batch is refused. What it has changed up to then is published with the next one.
func (a *keeperActor) panicked(reason any, stack []byte) {
	a.cfg.Logger.Error().Interface("reason", reason).Bytes("stack", stack).Msg("the client keeper panicked")
	a.registered = nil
	a.answer(messages.ErrPanicked)
}
