package transaction

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
)

// Role is the transaction actor's name in a store.
const Role actors.Role = "transactions"

// Store is what the actor needs of a store; *system.Store is one.
type Store interface {
	PutAsync(m *messages.Message, waitStored bool, deadline time.Time, done func(messages.PutResult, error))
	Get(ctx context.Context, m messages.GetMessage) (*messages.GetResult, error)
	MinOffset(q messages.QueueKey) messages.QueueOffset
	MaxOffset(q messages.QueueKey) messages.QueueOffset
	MessageAt(at messages.PhysicalOffset) (messages.StoredMessage, error)
	Query(ctx context.Context, q messages.QueryMessage) ([]messages.StoredMessage, error)
	LogRange() (first, end messages.PhysicalOffset)
	FlushedTo() messages.PhysicalOffset
	Retention() messages.Retention // fileReservedTime: older half messages are given up
	AwaitDispatched(ctx context.Context) error
}

// Offsets keep the progress; the offset keeper is one.
type Offsets interface {
	Lookup(group string, q messages.QueueKey) messages.QueueOffset
	Commit(group string, q messages.QueueKey, offset messages.QueueOffset) error
}

// Config is what a transaction actor is made of. Names in parentheses are RocketMQ's options.
type Config struct {
	Store   Store
	Offsets Offsets
	Host    netip.AddrPort // brokerIP1:listenPort, in op messages

	// Check asks a producer, and tells whether one was there to be asked. It runs on a goroutine of its own, one at a time;
	// while it blocks nobody else is asked. nil: nobody is ever there.
	Check func(messages.CheckTransaction) bool

	Timeout  time.Duration // transactionTimeOut: age of a half message at its first check; 0: 6 s
	Interval time.Duration // transactionCheckInterval: between rounds; 0: 60 s
	MaxCheck int           // transactionCheckMax: then a half message is given up; 0: 15

	RenewAfter time.Duration // a half message is copied to the log's end so often, at most half of the retention; 0: 1 h
	Spread     int           // and when so many others are behind it; 0: 1,048,576
	MaxWaiting int           // undecided half messages at once; further ones wait in their queue; 0: 131,072

	Logger zerolog.Logger
}

const (
	maxEnding  = 1 << 16 // transactions being ended at once
	maxBehind  = 64      // requests that wait until another one about the same half message is done
	putTimeout = 5 * time.Second
)

func (c Config) defaults() Config {
	c.Timeout = cmp.Or(c.Timeout, 6*time.Second)
	c.Interval = cmp.Or(c.Interval, time.Minute)
	c.MaxCheck = cmp.Or(c.MaxCheck, 15)
	c.RenewAfter = cmp.Or(c.RenewAfter, time.Hour)
	c.Spread = cmp.Or(c.Spread, 1<<20)
	c.MaxWaiting = cmp.Or(c.MaxWaiting, 1<<17)
	if c.Check == nil {
		c.Check = func(messages.CheckTransaction) bool { return false }
	}
	return c
}

// Keeper is the way to the transaction actor. Safe for concurrent use.
type Keeper struct {
	actor *transactions
	bell  *actors.Bell
	peer  actors.Peer
	end   func() error
}

// Start reads what is undecided, and spawns the actor under a name. The store has dispatched its log when it returns; the
// context bounds that.
func Start(ctx context.Context, root *actor.RootContext, name string, cfg Config) (*Keeper, error) {
	a := newActor(cfg.defaults())
	if err := a.load(ctx); err != nil {
		return nil, fmt.Errorf("start the transactions: %w", err)
	}
	a.port = mailbox.New(mailbox.Options{OnPanic: a.panicked})
	props := actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithMailbox(a.port.Producer()))
	pid, err := root.SpawnNamed(props, name)
	if err != nil {
		return nil, fmt.Errorf("start the transactions: %w", err)
	}
	peer := actors.NewPeer(root, pid)
	a.bell = actors.NewBell(peer, messages.HalfPrepared{})
	k := &Keeper{actor: a, bell: a.bell, peer: peer}
	k.end = sync.OnceValue(func() error {
		close(a.stop)
		err := root.PoisonFuture(pid).Wait()
		a.asking.Wait()
		return err
	})
	k.bell.Ring() // what was undecided at the start is due too
	return k, nil
}

// Peer is the actor's address, for messages of package messages.
func (k *Keeper) Peer() actors.Peer { return k.peer }

// Waiting is the number of undecided half messages that the last round has seen.
func (k *Keeper) Waiting() int { return int(k.actor.count.Load()) }

// Prepared says that a half message has been stored at a queue offset. It does not block.
func (k *Keeper) Prepared(at messages.QueueOffset) {
	for {
		known := k.actor.announced.Load()
		if int64(at) < known {
			break
		}
		if k.actor.announced.CompareAndSwap(known, int64(at)+1) {
			break
		}
	}
	k.bell.Ring()
}

// End asks for the end of a transaction and does not wait; see messages.EndTransaction. Done is called in any case.
func (k *Keeper) End(m *messages.EndTransaction) {
	if err := k.actor.port.Post(m.MailboxLink()); err != nil {
		m.Refuse(err)
	}
}

// EndWait is End that waits for the answer, at most until the context ends; then the transaction may still end.
func (k *Keeper) EndWait(ctx context.Context, h messages.Half, commit bool) (messages.PutResult, error) {
	answer := messages.NewAnswer[messages.PutResult]()
	m := &messages.EndTransaction{Half: h, Commit: commit, Done: answer.Complete}
	m.Deadline, _ = ctx.Deadline()
	k.End(m)
	return answer.Wait(ctx)
}

// Close ends the actor; requests that come later are refused with messages.ErrClosed. It waits for a check that is being sent. Only
// the first call does something.
func (k *Keeper) Close() error {
	if err := k.end(); err != nil {
		return fmt.Errorf("stop the transactions: %w", err)
	}
	return nil
}
