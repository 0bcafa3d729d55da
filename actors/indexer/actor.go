package indexer

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/index"
	"github.com/actormq/actormq/segments/vfs"
)

// Config is what an index builder is made of.
type Config struct {
	Index    *index.Set
	Flusher  actors.Peer   // told IndexFlushed
	Interval time.Duration // between flushes; 0: 60 s
	Space    actors.Peer   // told messages.SpaceProblem
	// Reread reads from the log again what has been delivered: a batch at most, from one place to another.
	Reread func(from, to messages.PhysicalOffset) (*messages.DispatchBatch, error)
	// OnBroken is told when the index is not built any further, and nil when it is complete again; it must not block.
	OnBroken func(error)
	Logger   zerolog.Logger
}

const (
	defaultInterval = time.Minute
	firstPause      = 100 * time.Millisecond // after a failed attempt, doubled each time
	maxPause        = 2 * time.Second        // a deletion helps at once
	// patience is for attempts that fail. Deletions of topics and, once the credit is used up, consumers wait behind the index. It is
	// less than the five seconds that RocketMQ's tools wait for an answer, and gives the cleaner time for a round.
	patience = 3 * time.Second
)

// Actor is the index builder.
type Actor struct {
	cfg  Config
	self actors.Peer

	held    []*messages.Delivery // not built yet, in order
	done    int                  // requests of held[0] that are built
	pause   time.Duration        // until the next attempt; 0: not waiting
	retry   *time.Timer
	tick    *time.Timer
	builtMs int64 // store timestamp of the last record built
	toldMs  int64
	leaving bool      // the store is being stopped: room is not waited for
	broken  error     // why the index is not built any further
	behind  *backlog  // what it lacks for want of room; nil: nothing
	short   bool      // Space has been told that there is no room
	failing time.Time // since when every attempt has failed; zero: the last one has not
}

type (
	flushTick struct{}
	retryTick struct{}
)

// New returns the actor; spawn it with a mailbox whose inline budget is 0.
func New(cfg Config) *Actor {
	if cfg.Interval <= 0 {
		cfg.Interval = defaultInterval
	}
	return &Actor{cfg: cfg}
}

// Receive implements actor.Actor.
func (a *Actor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *mailbox.Batch:
		for d := m.Next(); d != nil; d = m.Next() {
			m.Handled()
			if d, ok := d.(*messages.Delivery); ok {
				a.held = append(a.held, d)
			}
		}
		a.build()
	case retryTick:
		a.retry = nil
		if a.behind != nil && !a.leaving {
			a.catchUp()
		}
		a.build()
	case flushTick:
		a.tick = nil
		a.flush()
	case messages.LeaveIndex:
		a.leaving = true
		if a.retry != nil {
			a.retry.Stop()
			a.retry = nil
		}
		a.build()
	case messages.ExpireIndex:
		if n, err := a.cfg.Index.DeleteBelow(m.Below); err != nil {
			a.cfg.Logger.Error().Err(err).Int("deleted", n).Msg("deleting expired index files failed; it is tried again")
		}
	case messages.FlushIndex:
		err := a.flush()
		if err == nil && a.behind != nil {
			err = a.behind.cause
		}
		m.Answer.Complete(a.builtMs, err)
	case *actor.Started:
		a.self = actors.NewPeer(ctx.ActorSystem().Root, ctx.Self())
	case *actor.Stopping:
		a.stopping()
	}
}

// build builds what is held, unless an attempt has just failed. What comes while the index is behind is read from the log later.
func (a *Actor) build() {
	for len(a.held) > 0 && (a.retry == nil || a.behind != nil) {
		d := a.held[0]
		if a.behind != nil {
			a.behind.to = max(a.behind.to, d.Batch.UpTo)
		} else if err := a.buildBatch(d.Batch); err != nil {
			a.failed(err)
			continue
		} else {
			a.wasBuilt(d.Batch)
		}
		a.held[0] = nil
		a.held = a.held[1:]
		d.Built(nil)
	}
	if len(a.held) == 0 {
		a.held = nil
	}
	a.armTick()
}

// wasBuilt notes that a batch is in the index.
func (a *Actor) wasBuilt(b *messages.DispatchBatch) {
	if n := len(b.Requests); n > 0 {
		a.builtMs = b.Requests[n-1].StoreTimestampMs
	}
	a.roomAgain()
	a.pause, a.done, a.failing = 0, 0, time.Time{}
}

// roomAgain tells that the index wants no room any more.
func (a *Actor) roomAgain() {
	if a.short {
		a.short = false
		a.cfg.Space.Send(messages.SpaceProblem{Part: "index"})
	}
}

// buildBatch puts what is left of a batch.
func (a *Actor) buildBatch(b *messages.DispatchBatch) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.Join(fmt.Errorf("build the index: %v: %w", r, messages.ErrPanicked), index.ErrFailed)
			a.cfg.Logger.Error().Interface("panic", r).Bytes("stack", debug.Stack()).Msg("building the index panicked")
		}
	}()
	if a.broken != nil {
		return nil
	}
	n, err := a.cfg.Index.Build(b.Requests[a.done:])
	a.done += n
	return err
}

// failed gives the index up after a failed sync or a panic, or waits before the next attempt.
func (a *Actor) failed(err error) {
	full := errors.Is(err, vfs.ErrNoSpace)
	switch {
	case errors.Is(err, index.ErrFailed), full && a.leaving:
		a.breakDown(err)
		return
	case full && a.inVain():
		a.breakOff(err)
		return
	case a.inVain():
		a.breakDown(fmt.Errorf("in vain for %v: %w", patience, err))
		return
	}
	a.pause = min(max(2*a.pause, firstPause), maxPause)
	a.retry = a.self.After(a.pause, retryTick{})
	if full && a.short {
		return // said already
	}
	if full {
		a.short = true
		a.cfg.Space.Send(messages.SpaceProblem{Part: "index", Err: err, Refuse: true})
	}
	a.cfg.Logger.Error().Err(err).Dur("retry_in", a.pause).Msg("building the index failed; it is tried again")
}

// inVain tells whether attempts have been failing for so long that consumers, who wait behind the index, are worth more than it.
func (a *Actor) inVain() bool {
	if a.failing.IsZero() {
		a.failing = time.Now()
	}
	return time.Since(a.failing) >= patience
}

// breakDown ends building: what is dispatched from now on counts as built, so that nobody waits for the index.
func (a *Actor) breakDown(err error) {
	if a.broken != nil {
		return
	}
	a.broken, a.behind = err, nil
	a.roomAgain()
	a.cfg.Logger.Error().Err(err).Str("role", string(actors.RoleIndexer)).
		Msg("the index is not built any further: it is rebuilt at the next start")
	if a.cfg.OnBroken != nil {
		a.cfg.OnBroken(err)
	}
}

func (a *Actor) armTick() {
	if a.tick == nil && a.builtMs != a.toldMs && a.broken == nil {
		a.tick = a.self.After(a.cfg.Interval, flushTick{})
	}
}

// flush makes the index durable and says so. What is durable is told only when nothing is held back.
func (a *Actor) flush() error {
	if a.broken != nil {
		return a.broken
	}
	if err := actors.Protect("flush the index", a.cfg.Index.Flush); err != nil {
		a.breakDown(err)
		return err
	}
	if a.builtMs != a.toldMs {
		a.toldMs = a.builtMs
		a.cfg.Flusher.Send(messages.IndexFlushed{StoreTimestampMs: a.cfg.Index.FlushedTimestampMs()})
	}
	return nil
}

func (a *Actor) stopping() {
	for _, t := range []*time.Timer{a.retry, a.tick} {
		if t != nil {
			t.Stop()
		}
	}
	for _, d := range a.held {
		d.Refuse(messages.ErrClosed)
	}
	a.held = nil
}
