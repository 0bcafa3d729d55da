package locks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
)

// Role is the lock keeper's name in a store.
const Role actors.Role = "lock-keeper"

const (
	defaultExpiry = 60 * time.Second
	defaultLimit  = 1 << 20
)

// Config is what a lock keeper is made of.
type Config struct {
	Expiry time.Duration // of a lock that is not renewed (rocketmq.broker.rebalance.lockMaxLiveTime); 0: 60 s
	Limit  int           // locks at once; beyond it no free queue is granted; 0: 1,048,576
	Logger zerolog.Logger
}

// Keeper is the way to the lock keeper. Safe for concurrent use.
type Keeper struct {
	port *mailbox.Combining
	peer actors.Peer
	held *atomic.Int64
	end  func() error
}

// Start spawns a lock keeper under a name, without any lock.
func Start(root *actor.RootContext, name string, cfg Config) (*Keeper, error) {
	if cfg.Expiry <= 0 {
		cfg.Expiry = defaultExpiry
	}
	if cfg.Limit <= 0 {
		cfg.Limit = defaultLimit
	}
	a := &keeperActor{
		cfg:   cfg,
		table: table{groups: map[string]map[messages.MessageQueue]lock{}, limit: cfg.Limit, expiry: cfg.Expiry},
	}
	port := mailbox.New(mailbox.Options{OnPanic: a.panicked})
	a.port = port
	props := actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithMailbox(port.Producer()))
	pid, err := root.SpawnNamed(props, name)
	if err != nil {
		return nil, fmt.Errorf("start the lock keeper: %w", err)
	}
	end := sync.OnceValue(func() error { return root.PoisonFuture(pid).Wait() })
	return &Keeper{port: port, peer: actors.NewPeer(root, pid), held: &a.held, end: end}, nil
}

// Peer is the actor's address, for messages of package messages.
func (k *Keeper) Peer() actors.Peer { return k.peer }

// Len is the number of locks, expired ones included that are not forgotten yet.
func (k *Keeper) Len() int { return int(k.held.Load()) }

// Lock asks for queues of a group and returns those that the client has now, in their order.
func (k *Keeper) Lock(
	ctx context.Context, group, clientID string, queues []messages.MessageQueue,
) ([]messages.MessageQueue, error) {
	m := &messages.LockQueues{
		Group: group, ClientID: clientID, Queues: queues, Answer: messages.NewAnswer[[]messages.MessageQueue](),
	}
	return mailbox.Ask(ctx, k.port, m, m.Answer)
}

// Unlock gives queues back that the client has; it does not wait.
func (k *Keeper) Unlock(group, clientID string, queues []messages.MessageQueue) error {
	m := &messages.UnlockQueues{Group: group, ClientID: clientID, Queues: queues}
	return k.port.Post(m.MailboxLink())
}

// Close handles what has been sent, refuses what comes later with messages.ErrClosed, and ends the actor. Only the first
// call does something.
func (k *Keeper) Close() error {
	if err := k.end(); err != nil {
		return fmt.Errorf("stop the lock keeper: %w", err)
	}
	return nil
}

// keeperActor is the actor behind a Keeper.
type keeperActor struct {
	cfg   Config
	port  *mailbox.Combining
	table table
	tick  *time.Timer // nil: not armed, there is no lock
	held  atomic.Int64
}

// Receive implements actor.Actor.
func (a *keeperActor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *mailbox.Batch:
		a.batch(m)
	case messages.LocksTick:
		a.expire()
	case *actor.Stopping:
		if a.tick != nil {
			a.tick.Stop()
		}
	case actor.SystemMessage, actor.AutoReceiveMessage:
	default:
		a.reject(m)
	}
}

func (a *keeperActor) batch(b *mailbox.Batch) {
	for m := b.Next(); m != nil; m = b.Next() {
		switch m := m.(type) {
		case *messages.LockQueues:
			m.Answer.Complete(a.table.take(m.Group, m.ClientID, m.Queues, time.Now()), nil)
		case *messages.UnlockQueues:
			a.table.release(m.Group, m.ClientID, m.Queues)
			m.Answer.Complete(struct{}{}, nil)
		default:
			a.reject(m)
		}
	}
	a.settle()
}

func (a *keeperActor) expire() {
	a.tick = nil
	a.table.expire(time.Now())
	a.settle()
}

// settle publishes the number of locks and keeps the timer armed while there are any.
func (a *keeperActor) settle() {
	a.held.Store(int64(a.table.n))
	if a.table.n > 0 && a.tick == nil {
		a.tick = time.AfterFunc(a.cfg.Expiry, func() { a.port.PostUserMessage(messages.LocksTick{}) })
	}
}

// reject does not leave the sender of an unknown message waiting.
func (a *keeperActor) reject(message any) {
	a.cfg.Logger.Warn().Type("message", message).Msg("the lock keeper does not know a message")
	messages.Refuse(message, errors.ErrUnsupported)
}

func (a *keeperActor) panicked(reason any, stack []byte) {
	a.cfg.Logger.Error().Interface("reason", reason).Bytes("stack", stack).Msg("the lock keeper panicked")
}
