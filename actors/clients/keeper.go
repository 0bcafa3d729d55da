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
	port  *mailbox.Combining
	root  *actor.RootContext
	pid   *actor.PID
	end   func() error
}

// inlineBatches is how many batches a connection handles for others before a goroutine takes over.
const inlineBatches = 4

// Start spawns the actor under a name.
func Start(root *actor.RootContext, name string, cfg Config) (*Keeper, error) {
	a := newActor(cfg)
	port := mailbox.New(mailbox.Options{InlineBatches: inlineBatches, OnPanic: func(reason any, stack []byte) {
		cfg.Logger.Error().Interface("reason", reason).Bytes("stack", stack).Msg("the client keeper panicked")
	}})
	props := actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithMailbox(port.Producer()))
	pid, err := root.SpawnNamed(props, name)
	if err != nil {
		return nil, fmt.Errorf("start the client keeper: %w", err)
	}
	end := sync.OnceValue(func() error { return root.PoisonFuture(pid).Wait() })
	return &Keeper{actor: a, port: port, root: root, pid: pid, end: end}, nil
}

// Peer is the actor's address, for messages.ClientGone.
func (k *Keeper) Peer() actors.Peer { return actors.NewPeer(k.root, k.pid) }

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

// Producers are the online clients of a producer group; the slice must not be changed.
func (k *Keeper) Producers(group string) []*messages.Client {
	list, _ := k.actor.published.Load().producers.Get(group)
	return list
}

// Producer is the online producer with a client id, the newest connection when there are several; nil when there is none.
func (k *Keeper) Producer(clientID string) *messages.Client {
	c, _ := k.actor.published.Load().byID.Get(clientID)
	return c
}

// AllProducers are the online clients of every producer group.
func (k *Keeper) AllProducers() map[string][]*messages.Client {
	table := k.actor.published.Load().producers
	all := make(map[string][]*messages.Client, table.Len())
	for group, list := range table.All() {
		all[group] = list
	}
	return all
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

// Heartbeat registers a client's groups; see messages.Heartbeat. Answer is filled in when it is missing. The request's strings
// are kept: they must not share memory with a frame.
func (k *Keeper) Heartbeat(ctx context.Context, m *messages.Heartbeat) error {
	if m.Answer == nil {
		m.Answer = messages.NewAnswer[struct{}]()
	}
	return await(ctx, k, m.Answer, m)
}

// Unregister takes a connection out of groups; see messages.UnregisterClient. Answer is filled in when it is missing.
func (k *Keeper) Unregister(ctx context.Context, m *messages.UnregisterClient) error {
	if m.Answer == nil {
		m.Answer = messages.NewAnswer[struct{}]()
	}
	return await(ctx, k, m.Answer, m)
}

// Gone says that a connection has ended.
func (k *Keeper) Gone(channel messages.ClientChannel) {
	k.root.Send(k.pid, messages.ClientGone{Channel: channel})
}

// await sends a request and waits for its answer.
func await(ctx context.Context, k *Keeper, answer *messages.Answer[struct{}], m messages.Linked) error {
	if err := k.port.Post(m.MailboxLink()); err != nil {
		return err
	}
	_, err := answer.Wait(ctx)
	return err
}
