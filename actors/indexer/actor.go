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
	// OnBroken is told once when the index is not built any further; it must not block.
	OnBroken func(error)
	Logger   zerolog.Logger
}

const (
	defaultInterval = time.Minute
	firstPause      = 100 * time.Millisecond // after a failed attempt, doubled each time
	maxPause        = 2 * time.Second        // a deletion helps at once
	patience        = 5 * time.Second        // with attempts that fail, but not for want of room
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
	short   bool      // Space has been told that there is no room
	failing time.Time // since when every attempt has failed, not for want of room; zero: the last one has not
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
		m.Answer.Complete(a.builtMs, a.flush())
	case *actor.Started:
		a.self = actors.NewPeer(ctx.ActorSystem().Root, ctx.Self())
	case *actor.Stopping:
		a.stopping()
	}
}

// build builds what is held, unless an attempt has just failed.
func (a *Actor) build() {
	for len(a.held) > 0 && a.retry == nil {
		d := a.held[0]
		if err := a.buildBatch(d.Batch); err != nil {
			a.failed(err)
			continue
		}
		if n := len(d.Batch.Requests); n > 0 {
			a.builtMs = d.Batch.Requests[n-1].StoreTimestampMs
		}
		if a.short {
			a.short = false
			a.cfg.Space.Send(messages.SpaceProblem{Part: "index"})
		}
		a.pause, a.done, a.failing = 0, 0, time.Time{}
		a.held[0] = nil
		a.held = a.held[1:]
		d.Built(nil)
	}
	if len(a.held) == 0 {
		a.held = nil
	}
	a.armTick()
}

// buildBatch puts what is left of a batch.
func (a *Actor) buildBatch(b *messages.DispatchBatch) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.Join(fmt.Errorf("build the index: %v: %w", r, messages.ErrPanicked), index.ErrFailed)
			a.cfg.Logger.Error().Interface("panic", r).Bytes("stack", debug.Stack()).Msg("building the index panicked")
		}
	}()
	for ; a.done < len(b.Requests) && a.broken == nil; a.done++ {
		if err := a.cfg.Index.BuildFrom(&b.Requests[a.done]); err != nil {
			return err
		}
	}
	return nil
}

// failed gives the index up after a failed sync or a panic, or waits before the next attempt.
func (a *Actor) failed(err error) {
	if errors.Is(err, index.ErrFailed) {
		a.breakDown(err)
		return
	}
	a.pause = min(max(2*a.pause, firstPause), maxPause)
	if a.leaving && errors.Is(err, vfs.ErrNoSpace) {
		a.breakDown(err)
		return
	}
	if errors.Is(err, vfs.ErrNoSpace) {
		if a.short {
			a.retry = a.self.After(a.pause, retryTick{})
			return // said already
		}
		a.short = true
		a.cfg.Space.Send(messages.SpaceProblem{Part: "index", Err: err, Refuse: true})
	} else if a.inVain() {
		a.breakDown(fmt.Errorf("in vain for %v: %w", patience, err))
		return
	}
	a.cfg.Logger.Error().Err(err).Dur("retry_in", a.pause).Msg("building the index failed; it is tried again")
	a.retry = a.self.After(a.pause, retryTick{})
}

// inVain tells whether attempts have been failing for so long, not for want of room, that consumers, who wait behind the index,
// are worth more than it.
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
	a.broken = err
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
