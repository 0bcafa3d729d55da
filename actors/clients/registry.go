package clients

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/messages"
)

// registry is who is online. It belongs to the actor; it knows no clock and sends nothing: it notes what is to be published and
// whom to tell.
type registry struct {
	consumers     map[string]*consumers
	producers     map[string]*producers
	producersByID map[string][]*member // by client id, the newest last
	members       map[messages.ClientChannel]*member

	compile   func(messages.Subscription) *messages.TopicSubscription
	duplicate func(group string, before, after *messages.Client)

	// What has changed since it was last published.
	dirtyConsumers, dirtyProducers, dirtyIDs map[string]struct{}
	changed                                  map[string]struct{} // consumer groups whose members are to be told
}

// member is a connection that is in some group.
type member struct {
	client               *messages.Client
	consumers, producers map[string]*seat
}

// seat is the place of a connection in a group.
type seat struct {
	client *messages.Client
	seen   time.Time // the last heartbeat that named the group
}

// consumers is an online consumer group.
type consumers struct {
	name             string
	consumeType      string
	messageModel     string
	consumeFromWhere string
	topics           map[string]*messages.TopicSubscription
	seats            []*seat
}

// producers is an online producer group.
type producers struct {
	seats []*seat
	turn  atomic.Uint64
}

func newRegistry(
	compile func(messages.Subscription) *messages.TopicSubscription, duplicate func(string, *messages.Client, *messages.Client),
) registry {
	return registry{
		consumers: map[string]*consumers{}, producers: map[string]*producers{}, producersByID: map[string][]*member{},
		members: map[messages.ClientChannel]*member{}, compile: compile, duplicate: duplicate,
		dirtyConsumers: map[string]struct{}{}, dirtyProducers: map[string]struct{}{}, dirtyIDs: map[string]struct{}{},
		changed: map[string]struct{}{},
	}
}

// heartbeat registers or renews what a connection names. Groups that it does not name stay until they expire.
func (r *registry) heartbeat(m *messages.Heartbeat, now time.Time) {
	s := r.members[m.Channel]
	if s != nil && s.client.ID != m.ClientID { // another client on the same connection: nobody does that
		r.gone(m.Channel)
		s = nil
	}
	if s == nil {
		if len(m.Producers)+len(m.Consumers) == 0 {
			return
		}
		s = &member{client: clientOf(m), consumers: map[string]*seat{}, producers: map[string]*seat{}}
		r.members[m.Channel] = s
	}
	s.client.Seen(now)
	for _, group := range m.Producers {
		r.produce(s, m, group, now)
	}
	for i := range m.Consumers {
		r.consume(s, m, &m.Consumers[i], now)
	}
}

func clientOf(m *messages.Heartbeat) *messages.Client {
	return &messages.Client{Channel: m.Channel, ID: m.ClientID, Language: m.Language, Version: m.Version}
}

// renew notes a heartbeat for a seat, and makes it when it is nil.
func (s *seat) renew(m *messages.Heartbeat, now time.Time) (renewed *seat, isNew bool) {
	if s == nil {
		s, isNew = &seat{client: clientOf(m)}, true
	}
	s.seen = now
	s.client.Seen(now)
	return s, isNew
}

func (r *registry) produce(s *member, m *messages.Heartbeat, group string, now time.Time) {
	place, isNew := s.producers[group].renew(m, now)
	if !isNew {
		return
	}
	if len(s.producers) == 0 {
		r.producersByID[s.client.ID] = append(r.producersByID[s.client.ID], s)
		r.dirtyIDs[s.client.ID] = struct{}{}
	}
	s.producers[group] = place
	g := r.producers[group]
	if g == nil {
		g = &producers{}
		r.producers[group] = g
	}
	g.seats = append(g.seats, place)
	r.dirtyProducers[group] = struct{}{}
}

// consume notes one consumer group of a heartbeat (spec/remoting.md §7.2): the last heartbeat's types and topics count; a new
// connection, a new topic or one that has gone is a change that the members are told of.
func (r *registry) consume(s *member, m *messages.Heartbeat, reg *messages.ConsumerRegistration, now time.Time) {
	g := r.consumers[reg.Group]
	if g == nil {
		g = &consumers{name: reg.Group, topics: map[string]*messages.TopicSubscription{}}
		r.consumers[reg.Group] = g
	}
	place, changed := s.consumers[reg.Group].renew(m, now)
	if changed {
		r.warn(g, place)
		s.consumers[reg.Group] = place
		g.seats = append(g.seats, place)
	}
	topicsChanged, renewed := g.subscribe(reg.Subscriptions, r.compile)
	if changed || topicsChanged {
		r.changed[g.name] = struct{}{}
	}
	if g.describe(reg) || changed || topicsChanged || renewed {
		r.dirtyConsumers[g.name] = struct{}{}
	}
}

// warn looks for another connection with the client id of a new one.
func (r *registry) warn(g *consumers, joining *seat) {
	for _, other := range g.seats {
		if other.client.ID == joining.client.ID {
			r.duplicate(g.name, other.client, joining.client)
			return
		}
	}
}

// describe takes over what the last heartbeat says, and tells whether it is something new.
func (g *consumers) describe(reg *messages.ConsumerRegistration) bool {
	same := g.consumeType == reg.ConsumeType && g.messageModel == reg.MessageModel && g.consumeFromWhere == reg.ConsumeFromWhere
	g.consumeType, g.messageModel, g.consumeFromWhere = reg.ConsumeType, reg.MessageModel, reg.ConsumeFromWhere
	return !same
}

// subscribe makes the topics those of a heartbeat. A higher version replaces what is known of a topic, which is no change; a
// lower or equal one is ignored.
func (g *consumers) subscribe(
	subs []messages.Subscription, compile func(messages.Subscription) *messages.TopicSubscription,
) (changed, renewed bool) {
	wanted := make(map[string]struct{}, len(subs))
	for _, sub := range subs {
		wanted[sub.Topic] = struct{}{}
		known := g.topics[sub.Topic]
		if known != nil && sub.SubVersion <= known.SubVersion {
			continue
		}
		changed, renewed = changed || known == nil, true
		g.topics[sub.Topic] = compile(sub)
	}
	for topic := range g.topics {
		if _, is := wanted[topic]; !is {
			delete(g.topics, topic)
			changed = true
		}
	}
	return changed, renewed
}

// picture is what is published of the group.
func (g *consumers) picture() *messages.ConsumerGroup {
	return &messages.ConsumerGroup{
		Name: g.name, ConsumeType: g.consumeType, MessageModel: g.messageModel, ConsumeFromWhere: g.consumeFromWhere,
		Subscriptions: maps.Clone(g.topics), Clients: clientsOf(g.seats),
	}
}

func clientsOf(seats []*seat) []*messages.Client {
	clients := make([]*messages.Client, len(seats))
	for i, s := range seats {
		clients[i] = s.client
	}
	return clients
}

// leave takes a connection out of a producer group and a consumer group, where it is in them.
func (r *registry) leave(channel messages.ClientChannel, producerGroup, consumerGroup string) {
	s := r.members[channel]
	if s == nil {
		return
	}
	r.leaveProducers(s, producerGroup)
	r.leaveConsumers(s, consumerGroup)
	r.tidy(channel, s)
}

// gone takes a connection out of all its groups.
func (r *registry) gone(channel messages.ClientChannel) {
	s := r.members[channel]
	if s == nil {
		return
	}
	for group := range s.producers {
		r.leaveProducers(s, group)
	}
	for group := range s.consumers {
		r.leaveConsumers(s, group)
	}
	r.tidy(channel, s)
}

// expire takes connections out of the groups that they have not named since the limit, and returns those that are in none
// any more.
func (r *registry) expire(limit time.Time) (idle []messages.ClientChannel) {
	for channel, s := range r.members {
		for group, place := range s.producers {
			if place.seen.Before(limit) {
				r.leaveProducers(s, group)
			}
		}
		for group, place := range s.consumers {
			if place.seen.Before(limit) {
				r.leaveConsumers(s, group)
			}
		}
		if r.tidy(channel, s) {
			idle = append(idle, channel)
		}
	}
	return idle
}

// tidy forgets a connection that is in no group, and tells whether it was so.
func (r *registry) tidy(channel messages.ClientChannel, s *member) bool {
	if len(s.producers)+len(s.consumers) > 0 {
		return false
	}
	delete(r.members, channel)
	return true
}

func (r *registry) leaveProducers(s *member, group string) {
	place := s.producers[group]
	if place == nil {
		return
	}
	delete(s.producers, group)
	r.dirtyProducers[group] = struct{}{}
	g := r.producers[group]
	if g.seats = without(g.seats, place); len(g.seats) == 0 {
		delete(r.producers, group)
	}
	if len(s.producers) > 0 {
		return
	}
	id := s.client.ID
	r.dirtyIDs[id] = struct{}{}
	if r.producersByID[id] = without(r.producersByID[id], s); len(r.producersByID[id]) == 0 {
		delete(r.producersByID, id)
	}
}

func (r *registry) leaveConsumers(s *member, group string) {
	place := s.consumers[group]
	if place == nil {
		return
	}
	delete(s.consumers, group)
	r.dirtyConsumers[group] = struct{}{}
	g := r.consumers[group]
	if g.seats = without(g.seats, place); len(g.seats) == 0 {
		delete(r.consumers, group)
		return
	}
	r.changed[group] = struct{}{}
}

func without[T comparable](list []T, item T) []T {
	i := slices.Index(list, item)
	return slices.Delete(list, i, i+1)
}
