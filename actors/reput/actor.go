package reput

import (
	"errors"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/commitlog"
)

// Config is what a dispatcher is made of.
type Config struct {
	Log *commitlog.Log
	// From is where an earlier run ended; it is brought into the range of the log (spec/store.md §6.1, §16 W4).
	From messages.PhysicalOffset
	// Bell announces that the log, or Limit, has grown: NewBell(dispatcher, messages.Announce(messages.LogGrown{})).
	Bell *actors.Bell
	// Limit is up to where records may be seen: written (nil: the log's end), flushed, or confirmed by replicas. It is asked
	// on the dispatcher's goroutine.
	Limit func() messages.PhysicalOffset
	// Follower: the log is that of a slave, which may end in a part of a record. It counts as dispatched when what is whole is.
	Follower bool
	// Delay tells the delivery delay of a level, see record.TagsCode; nil: there are no levels.
	Delay func(level int) (ms int64, highest int)

	Builders []Builder
	// MultiDispatch gives the builders a request for each further queue of a record, behind that for its own (enableMultiDispatch).
	MultiDispatch bool

	// Role names the actor in what it says; empty: reput-dispatcher. A dispatcher of the user's own has another.
	Role actors.Role
	// Advanced are rung when DispatchedTo has moved.
	Advanced []*actors.Bell

	OnDamage func(messages.LogDamage) // must not block
	OnFailed func(messages.Failed)    // told once; must not block
	Logger   zerolog.Logger
}

// Builder is one of those that get every batch.
type Builder struct {
	Name string // for the log
	// Mailbox receives *messages.Delivery, without an allocation. A builder that has stopped answers too.
	Mailbox *mailbox.Combining
	// Peer receives them when there is no such Mailbox.
	Peer actors.Peer
	// Credit is how many batches may be on their way to it; 0: 4. A batch is up to 512 records, fewer when the log grows
	// slowly: more credit bridges longer pauses of this builder before it holds up the others.
	Credit int
}

const (
	defaultCredit = 4
	maxWaiting    = 1024
	panicWindow   = time.Minute // a second panic within it fails the actor
)

// Actor is the dispatcher.
type Actor struct {
	cfg  Config
	self actors.Peer

	cursor  cursor
	sent    messages.PhysicalOffset // everything below has been sent
	seen    messages.PhysicalOffset // with a Follower: between sent and here lies a part of a record
	outlets []*outlet
	batches batchPool
	topics  topics

	waiting   []messages.AwaitDispatched
	unheard   bool // the bell has been rung while there was no credit: it stays pending, so that nobody rings for nothing
	failed    error
	lastPanic time.Time

	// DispatchedTo is the physical offset below which everything is built; any goroutine may read it.
	DispatchedTo *atomic.Int64
}

// New returns the actor; spawn it with a mailbox of package mailbox whose inline budget is 0. It begins to read when it is
// started.
func New(cfg Config) *Actor {
	from := min(max(cfg.From, cfg.Log.Min(), 0), cfg.Log.End())
	if cfg.Role == "" {
		cfg.Role = actors.RoleDispatcher
	}
	a := &Actor{cfg: cfg, sent: from, DispatchedTo: new(atomic.Int64)}
	a.cursor = cursor{log: cfg.Log, pos: from, report: a.damaged, follows: cfg.Follower}
	a.DispatchedTo.Store(int64(from))
	return a
}

// Receive implements actor.Actor.
func (a *Actor) Receive(ctx actor.Context) {
	defer func() {
		if r := recover(); r != nil {
			a.fail(recovered("dispatch", r))
			messages.Refuse(ctx.Message(), a.failed)
		}
	}()
	switch m := ctx.Message().(type) {
	case *mailbox.Batch:
		a.batch(m)
	case messages.LogGrown:
		a.rung()
		a.advance()
	case messages.AwaitDispatched:
		a.await(m)
		a.advance() // the bell may ring a millisecond later
	case *actor.Started:
		a.start(actors.NewPeer(ctx.ActorSystem().Root, ctx.Self()))
	case *actor.Stopping:
		a.stopping()
	}
}

func (a *Actor) start(self actors.Peer) {
	a.self = self
	back := func(d *messages.Delivery) { self.Send(d) }
	for i, b := range a.cfg.Builders {
		a.outlets = append(a.outlets, newOutlet(i, b, a.sent, back))
	}
	a.advance()
}

// batch takes what has come by its own link, and reads on once.
func (a *Actor) batch(b *mailbox.Batch) {
	for m := b.Next(); m != nil; m = b.Next() {
		b.Handled()
		switch m := m.(type) {
		case *messages.Delivery:
			a.returned(m)
		case messages.LogGrown:
			a.rung()
		}
	}
	a.advance()
}

func (a *Actor) rung() {
	a.cfg.Bell.Taken()
	a.unheard = true
}

// advance reads and sends until there is nothing to read, or a builder has no credit.
func (a *Actor) advance() {
	if a.unheard && a.hasCredit() {
		a.unheard = false
		a.cfg.Bell.Heard()
	}
	for a.step() {
	}
	a.tell()
}

// step reads and sends one batch; false when nothing can be done now.
func (a *Actor) step() bool {
	limit := a.limit()
	if a.failed != nil || a.cursor.pos >= limit || !a.hasCredit() {
		return false
	}
	b := a.batches.take()
	if err := a.fill(b, limit); err != nil {
		a.batches.drop(b)
		a.cursor.pos = a.sent
		return a.survives(err)
	}
	moved := a.cursor.pos > a.sent
	a.sent = a.cursor.pos
	if len(b.Requests) == 0 {
		a.batches.drop(b)
		if a.cfg.Follower && !moved {
			a.seen = limit
		}
		return moved
	}
	b.UpTo = a.sent
	a.send(b)
	return true
}

func (a *Actor) limit() messages.PhysicalOffset {
	end := a.cfg.Log.End()
	if a.cfg.Limit != nil {
		return min(end, a.cfg.Limit())
	}
	return end
}

// fill reads records into a batch until it is full or the limit is reached. Memory faults and panics are errors.
func (a *Actor) fill(b *batch, limit messages.PhysicalOffset) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		a.cursor.close()
		if r := recover(); r != nil {
			err = recovered("read the commit log", r)
		}
	}()
	for !b.full() && a.cursor.next(limit) {
		b.add(&a.cursor.rec, a.topics.intern(a.cursor.rec.Topic), a.cfg.Delay)
		if a.cfg.MultiDispatch {
			b.addFurther(&a.cursor.rec)
		}
	}
	return nil
}

// survives decides after a failed attempt to read: a first panic is tried again, anything else fails the actor.
func (a *Actor) survives(err error) bool {
	var p *panicError
	if errors.As(err, &p) {
		a.cfg.Logger.Error().Interface("panic", p.reason).Bytes("stack", p.stack).Int64("from", int64(a.sent)).
			Msg("dispatching panicked")
		if now := time.Now(); a.lastPanic.IsZero() || now.Sub(a.lastPanic) > panicWindow {
			a.lastPanic = now
			return true
		}
	}
	a.fail(err)
	return false
}

// fail ends dispatching for good.
func (a *Actor) fail(cause error) {
	if a.failed != nil {
		return
	}
	a.failed = errors.Join(messages.ErrFailed, cause)
	a.cfg.Logger.Error().Err(cause).Str("role", string(a.cfg.Role)).Msg("the dispatcher has failed: nothing more is dispatched")
	a.refuseWaiting(a.failed)
	if a.cfg.OnFailed != nil {
		a.cfg.OnFailed(messages.Failed{Role: string(a.cfg.Role), Cause: cause})
	}
}

func (a *Actor) damaged(d messages.LogDamage) {
	a.cfg.Logger.Error().Err(d.Err).Int64("from", int64(d.From)).Int64("to", int64(d.To)).
		Msg("a part of the commit log was not dispatched")
	if a.cfg.OnDamage != nil {
		a.cfg.OnDamage(d)
	}
}

func (a *Actor) stopping() {
	a.cfg.Bell.Mute() // it may be due
	if a.failed == nil {
		a.failed = messages.ErrClosed
	}
	a.refuseWaiting(a.failed)
}
