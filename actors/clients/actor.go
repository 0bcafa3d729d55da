package clients

import (
	"errors"
	"fmt"
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

var errNoCompiler = errors.New("filters other than by tag are not supported")

// state is what is published. It never changes.
type state struct {
	consumers *actors.Table[string, *messages.ConsumerGroup]
	producers *actors.Table[string, []*messages.Client]
	byID      *actors.Table[string, *messages.Client] // of the producers, the newest with each id
}

// keeperActor is the actor behind a Keeper.
type keeperActor struct {
	cfg  Config
	self actors.Peer
	tick *time.Timer

	published atomic.Pointer[state]
	consumers *actors.TableEdit[string, *messages.ConsumerGroup]
	producers *actors.TableEdit[string, []*messages.Client]
	byID      *actors.TableEdit[string, *messages.Client]
	changed   map[string]struct{} // consumer groups whose members are to be told

	// memberships are the groups of each connection.
	memberships map[messages.ClientChannel]*membership
}

type membership struct {
	consumers, producers map[string]struct{}
	seenMs               int64
}

func newActor(cfg Config) *keeperActor {
	if cfg.Expiry <= 0 {
		cfg.Expiry = defaultExpiry
	}
	if cfg.Interval <= 0 {
		cfg.Interval = defaultInterval
	}
	a := &keeperActor{cfg: cfg, memberships: map[messages.ClientChannel]*membership{}, changed: map[string]struct{}{}}
	a.published.Store(&state{
		consumers: actors.NewTable[string, *messages.ConsumerGroup](), producers: actors.NewTable[string, []*messages.Client](),
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
	case messages.ClientGone:
		a.begin()
		a.gone(m.Channel)
		a.publish()
	case messages.ClientsTick:
		a.expire()
	case *actor.Started:
		a.self = actors.NewPeer(ctx.ActorSystem().Root, ctx.Self())
		a.arm()
	case *actor.Stopping:
		a.tick.Stop()
	}
}

func (a *keeperActor) arm() { a.tick = a.self.After(a.cfg.Interval, messages.ClientsTick{}) }

// handle changes the tables, publishes them, tells the groups that have changed, and answers.
func (a *keeperActor) handle(message any) {
	a.begin()
	switch m := message.(type) {
	case *messages.Heartbeat:
		a.heartbeat(m)
		a.publish()
		m.Answer.Complete(struct{}{}, nil)
	case *messages.UnregisterClient:
		a.leaveProducers(m.Channel, m.ProducerGroup)
		a.leaveConsumers(m.Channel, m.ConsumerGroup)
		a.publish()
		m.Answer.Complete(struct{}{}, nil)
	default:
		a.cfg.Logger.Warn().Type("message", message).Msg("the client keeper does not know a message")
		if r, ok := message.(messages.Refusable); ok {
			r.Refuse(errors.ErrUnsupported)
		}
	}
}

func (a *keeperActor) begin() {
	now := a.published.Load()
	a.consumers, a.producers, a.byID = now.consumers.Edit(), now.producers.Edit(), now.byID.Edit()
}

// publish makes the changes seen, and then tells the members of the groups that have changed.
func (a *keeperActor) publish() {
	a.published.Store(&state{consumers: a.consumers.Table(), producers: a.producers.Table(), byID: a.byID.Table()})
	for group := range a.changed {
		delete(a.changed, group)
		if a.cfg.Notifies != nil && !a.cfg.Notifies(group) {
			continue
		}
		if g, ok := a.published.Load().consumers.Get(group); ok {
			for _, c := range g.Clients {
				c.Channel.Tell(messages.ConsumerIDsChanged{Group: group})
			}
		}
	}
}

func (a *keeperActor) heartbeat(m *messages.Heartbeat) {
	mine := a.memberships[m.Channel]
	if mine == nil {
		mine = &membership{consumers: map[string]struct{}{}, producers: map[string]struct{}{}}
		a.memberships[m.Channel] = mine
	}
	now := time.Now()
	mine.seenMs = now.UnixMilli()
	for _, group := range m.Producers {
		mine.producers[group] = struct{}{}
		list, _ := a.producers.Get(group)
		if i := indexOf(list, m.Channel); i >= 0 {
			list[i].Seen(now)
			continue
		}
		c := newClient(m, now)
		a.producers.Set(group, append(list[:len(list):len(list)], c))
		a.byID.Set(c.ID, c)
	}
	for i := range m.Consumers {
		mine.consumers[m.Consumers[i].Group] = struct{}{}
		a.consumer(m, &m.Consumers[i], now)
	}
}

func newClient(m *messages.Heartbeat, now time.Time) *messages.Client {
	c := &messages.Client{Channel: m.Channel, ID: m.ClientID, Language: m.Language, Version: m.Version}
	c.Seen(now)
	return c
}

func indexOf(list []*messages.Client, channel messages.ClientChannel) int {
	for i, c := range list {
		if c.Channel == channel {
			return i
		}
	}
	return -1
}

// consumer notes one group of a heartbeat (spec/remoting.md §7.2): the last heartbeat's types and topics count; a new
// connection, a new topic or one that has gone is a change that the members are told of.
func (a *keeperActor) consumer(m *messages.Heartbeat, r *messages.ConsumerRegistration, now time.Time) {
	old, _ := a.consumers.Get(r.Group)
	next := &messages.ConsumerGroup{
		Name: r.Group, ConsumeType: r.ConsumeType, MessageModel: r.MessageModel, ConsumeFromWhere: r.ConsumeFromWhere,
	}
	changed := old == nil
	if old != nil {
		next.Clients = old.Clients
	}
	if i := indexOf(next.Clients, m.Channel); i >= 0 {
		next.Clients[i].Seen(now)
	} else {
		n := len(next.Clients)
		next.Clients = append(next.Clients[:n:n], newClient(m, now))
		changed = true
	}
	topicsChanged, renewed := a.subscribe(next, old, r)
	changed = changed || topicsChanged
	if changed {
		a.changed[r.Group] = struct{}{}
	}
	if changed || renewed || next.ConsumeType != old.ConsumeType || next.MessageModel != old.MessageModel ||
		next.ConsumeFromWhere != old.ConsumeFromWhere {
		a.consumers.Set(r.Group, next)
	}
}

// subscribe fills in the subscriptions of a heartbeat: a higher version replaces what is known of a topic, a lower or equal
// one is ignored.
func (a *keeperActor) subscribe(next, old *messages.ConsumerGroup, r *messages.ConsumerRegistration) (changed, renewed bool) {
	next.Subscriptions = make(map[string]*messages.TopicSubscription, len(r.Subscriptions))
	for _, s := range r.Subscriptions {
		var known *messages.TopicSubscription
		if old != nil {
			known = old.Subscriptions[s.Topic]
		}
		if known != nil && s.SubVersion <= known.SubVersion {
			next.Subscriptions[s.Topic] = known
			continue
		}
		changed, renewed = changed || known == nil, true
		next.Subscriptions[s.Topic] = a.compile(s)
	}
	return changed || old != nil && len(old.Subscriptions) != len(next.Subscriptions), renewed
}

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

// gone takes a connection out of all its groups.
func (a *keeperActor) gone(channel messages.ClientChannel) {
	mine := a.memberships[channel]
	if mine == nil {
		return
	}
	for group := range mine.producers {
		a.leaveProducers(channel, group)
	}
	for group := range mine.consumers {
		a.leaveConsumers(channel, group)
	}
	delete(a.memberships, channel)
}

func (a *keeperActor) leaveProducers(channel messages.ClientChannel, group string) {
	list, _ := a.producers.Get(group)
	i := indexOf(list, channel)
	if i < 0 {
		return
	}
	if mine := a.memberships[channel]; mine != nil {
		delete(mine.producers, group)
		if c, _ := a.byID.Get(list[i].ID); len(mine.producers) == 0 && c != nil && c.Channel == channel {
			a.byID.Delete(c.ID)
		}
	}
	if rest := without(list, i); len(rest) > 0 {
		a.producers.Set(group, rest)
	} else {
		a.producers.Delete(group)
	}
}

func (a *keeperActor) leaveConsumers(channel messages.ClientChannel, group string) {
	old, ok := a.consumers.Get(group)
	if !ok {
		return
	}
	i := indexOf(old.Clients, channel)
	if i < 0 {
		return
	}
	if mine := a.memberships[channel]; mine != nil {
		delete(mine.consumers, group)
	}
	next := *old
	if next.Clients = without(old.Clients, i); len(next.Clients) == 0 {
		a.consumers.Delete(group)
		return
	}
	a.consumers.Set(group, &next)
	a.changed[group] = struct{}{}
}

func without(list []*messages.Client, i int) []*messages.Client {
	rest := make([]*messages.Client, 0, len(list)-1)
	return append(append(rest, list[:i]...), list[i+1:]...)
}

// expire removes the clients whose heartbeats have ceased, and closes their connections.
func (a *keeperActor) expire() {
	a.begin()
	limit := time.Now().Add(-a.cfg.Expiry).UnixMilli()
	for channel, mine := range a.memberships {
		if mine.seenMs < limit {
			a.gone(channel)
			channel.Close(fmt.Errorf("%w for %v", messages.ErrClientExpired, a.cfg.Expiry))
		}
	}
	a.publish()
	a.arm()
}
