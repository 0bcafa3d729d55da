package clients

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
)

// Keeper is the way to the client keeper. Lookups go to what is published; they take no lock. Safe for concurrent use.
type Keeper struct {
	actor *keeperActor
	peer  actors.Peer
	end   func() error
}

// inlineBatches is how many batches a connection handles for others before a goroutine takes over.
const inlineBatches = 4

// Start spawns the actor under a name.
func Start(root *actor.RootContext, name string, cfg Config) (*Keeper, error) {
	a := newActor(cfg)
	a.port = mailbox.New(mailbox.Options{InlineBatches: inlineBatches, OnPanic: a.panicked})
	props := actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithMailbox(a.port.Producer()))
	pid, err := root.SpawnNamed(props, name)
	if err != nil {
		return nil, fmt.Errorf("start the client keeper: %w", err)
	}
	end := sync.OnceValue(func() error { return root.PoisonFuture(pid).Wait() })
	return &Keeper{actor: a, peer: actors.NewPeer(root, pid), end: end}, nil
}

// Peer is the actor's address, for messages of package messages.
func (k *Keeper) Peer() actors.Peer { return k.peer }

// Close ends the actor; requests that come later are refused with messages.ErrClosed. Lookups go on. Only the first call
// does something.
func (k *Keeper) Close() error {
	if err := k.end(); err != nil {
		return fmt.Errorf("stop the client keeper: %w", err)
	}
	return nil
}

// Consumers is the picture of an online consumer group, nil when no member is online.
func (k *Keeper) Consumers(group string) *messages.ConsumerGroup {
	g, _ := k.actor.published.Load().consumers.Get(group)
	return g
}

// Groups are the online consumer groups, sorted.
func (k *Keeper) Groups() []string {
	var groups []string
	for name := range k.actor.published.Load().consumers.All() {
		groups = append(groups, name)
	}
	slices.Sort(groups)
	return groups
}

// Subscribers are the online consumer groups that want a topic, sorted.
func (k *Keeper) Subscribers(topic string) []string {
	var groups []string
	for name, g := range k.actor.published.Load().consumers.All() {
		if g.Subscriptions[topic] != nil {
			groups = append(groups, name)
		}
	}
	slices.Sort(groups)
	return groups
}

// Producers are the online clients of a producer group, in the order in which they came; the slice must not be changed.
func (k *Keeper) Producers(group string) []*messages.Client {
	g, _ := k.actor.published.Load().producers.Get(group)
	if g == nil {
		return nil
	}
	return g.clients
}

// NextProducer is an online client of a producer group, another one each time; nil when there is none. It is who is asked about
// a transaction (spec/remoting.md §12.2).
func (k *Keeper) NextProducer(group string) *messages.Client {
	g, _ := k.actor.published.Load().producers.Get(group)
	if g == nil {
		return nil
	}
	return g.clients[(g.turn.Add(1)-1)%uint64(len(g.clients))]
}

// Producer is the online producer with a client id, the newest connection when there are several; nil when there is none.
func (k *Keeper) Producer(clientID string) *messages.Client {
	c, _ := k.actor.published.Load().byID.Get(clientID)
	return c
}

// AllProducers are the online clients of every producer group; the slices must not be changed.
func (k *Keeper) AllProducers() map[string][]*messages.Client {
	table := k.actor.published.Load().producers
	all := make(map[string][]*messages.Client, table.Len())
	for group, g := range table.All() {
		all[group] = g.clients
	}
	return all
}

// Duplicates counts how often a connection has joined a consumer group in which another one had its client id, since the start.
// Such clients take themselves for one: some queues are consumed twice, some never.
func (k *Keeper) Duplicates() int64 { return k.actor.duplicates.Load() }

// Heartbeat registers a client's groups; see messages.Heartbeat. Answer is filled in when it is missing. The request's strings
// are kept: they must not share memory with a frame.
func (k *Keeper) Heartbeat(ctx context.Context, m *messages.Heartbeat) error {
	if m.Answer == nil {
		m.Answer = messages.NewAnswer[struct{}]()
	}
	return mailbox.AskDone(ctx, k.actor.port, m, m.Answer)
}

// Unregister takes a connection out of groups; see messages.UnregisterClient. Answer is filled in when it is missing.
func (k *Keeper) Unregister(ctx context.Context, m *messages.UnregisterClient) error {
	if m.Answer == nil {
		m.Answer = messages.NewAnswer[struct{}]()
	}
	return mailbox.AskDone(ctx, k.actor.port, m, m.Answer)
}

// Gone says that a connection has ended. After Close it does nothing.
func (k *Keeper) Gone(channel messages.ClientChannel) {
	k.actor.port.PostUserMessage(messages.ClientGone{Channel: channel})
}
