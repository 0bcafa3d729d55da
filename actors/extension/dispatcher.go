package extension

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/vfs"
)

// KindDispatcher is the kind of a dispatcher's status.
const KindDispatcher = "dispatcher"

// DispatcherConfig is what a dispatcher is made of.
type DispatcherConfig struct {
	Name   string
	Handle func(context.Context, *messages.DispatchBatch) error
	Policy Policy

	Log     *commitlog.Log
	From    messages.PhysicalOffset // where the last run ended
	Limit   func() messages.PhysicalOffset
	Flusher actors.Peer
	Disk    vfs.Disk
	// Path is the file of the position; empty: the user keeps it. Generation is that of the position that was loaded.
	Path       string
	Generation int64
	Interval   time.Duration // between saves; 0: 5 s

	Logger zerolog.Logger
}

const defaultInterval = 5 * time.Second

// Dispatcher is the builder at the end of a dispatcher's own reader: it hands batches to the user's function.
type Dispatcher struct {
	cfg DispatcherConfig
	runner
	keeper keeper

	held    []*messages.Delivery // not handled yet, in order; the first one is being handled
	at      messages.PhysicalOffset
	saved   messages.PhysicalOffset
	tick    *time.Timer
	saving  bool
	skipped atomic.Int64
}

type (
	saveTick struct{}
	saveDone struct {
		at  messages.PhysicalOffset
		err error
	}
	readerFailed struct{ cause error }
)

// NewDispatcher returns the actor; spawn it with a mailbox of package mailbox whose inline budget is 0.
func NewDispatcher(cfg DispatcherConfig) *Dispatcher {
	if cfg.Interval <= 0 {
		cfg.Interval = defaultInterval
	}
	d := &Dispatcher{
		cfg: cfg, runner: newRunner(KindDispatcher, cfg.Name, cfg.Policy, cfg.Logger), at: cfg.From, saved: cfg.From,
		keeper: keeper{disk: cfg.Disk, path: cfg.Path, log: cfg.Log, flusher: cfg.Flusher},
	}
	d.board.change(func(s *Status) { s.Position = d.at })
	if first := max(cfg.Log.Min(), 0); cfg.From < first {
		d.skipped.Store(int64(first - cfg.From))
	}
	return d
}

// Receive implements actor.Actor.
func (d *Dispatcher) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *mailbox.Batch:
		for l := m.Next(); l != nil; l = m.Next() {
			m.Handled()
			if l, ok := l.(*messages.Delivery); ok {
				d.held = append(d.held, l)
			}
		}
		d.next()
	case callDone:
		d.handled(m)
	case callStalled:
		d.stalledCall(m)
	case retryTick:
		d.retried()
		d.next()
	case messages.ResumeExtension:
		d.resume()
		d.next()
	case saveTick:
		d.tick = nil
		d.save()
	case saveDone:
		d.wasSaved(m)
	case readerFailed:
		d.readerFailed(m)
	case messages.StopExtension:
		d.waiting = append(d.waiting, m)
		d.stop()
		d.settle()
	case *actor.Started:
		d.self = actors.NewPeer(ctx.ActorSystem().Root, ctx.Self())
	case *actor.Stopping:
		d.ending()
	}
}

// next hands the first batch that is held to the user.
func (d *Dispatcher) next() {
	if len(d.held) == 0 || !d.ready() {
		return
	}
	batch := d.held[0].Batch
	d.run(func(ctx context.Context) error { return d.cfg.Handle(ctx, batch) })
}

func (d *Dispatcher) handled(m callDone) {
	first := d.held[0]
	if d.done(m, len(first.Batch.Requests)) {
		d.at = max(d.at, first.Batch.UpTo)
		d.board.change(func(s *Status) { s.Position = d.at })
		d.held[0] = nil
		d.held = d.held[1:]
		first.Built(nil)
		d.armTick()
	}
	d.next()
	d.settle()
}

func (d *Dispatcher) armTick() {
	if d.tick == nil && d.cfg.Path != "" && d.at != d.saved && !d.stopped {
		d.tick = d.self.After(d.cfg.Interval, saveTick{})
	}
}

// save saves the position on a goroutine of its own: a slow disk must not hold up the handling.
func (d *Dispatcher) save() {
	if d.saving || d.cfg.Path == "" || d.at == d.saved {
		return
	}
	d.saving = true
	d.cfg.Generation++
	at, generation, self := d.at, d.cfg.Generation, d.self
	ctx := context.WithoutCancel(d.ctx)
	go func() {
		self.Send(saveDone{at, actors.Protect("save a position", func() error { return d.keeper.save(ctx, at, generation) })})
	}()
}

func (d *Dispatcher) wasSaved(m saveDone) {
	d.saving = false
	switch {
	case m.err == nil:
		d.saved = m.at
	case d.stopped:
		d.log.Error().Err(m.err).Msg("a dispatcher's position is not saved: some messages will be dispatched again")
		d.saved = d.at // nothing more is tried
	default:
		d.log.Error().Err(m.err).Msg("a dispatcher's position is not saved; it is tried again")
		d.board.change(func(s *Status) { s.LastError, s.LastFailed = m.err, time.Now() })
	}
	d.armTick()
	d.settle()
}

// settle answers those who wait for the end, once nothing is in flight and the position is saved.
func (d *Dispatcher) settle() {
	if !d.stopped || d.busy || d.saving {
		return
	}
	if d.cfg.Path != "" && d.at != d.saved {
		d.save()
		return
	}
	d.answer()
}

func (d *Dispatcher) readerFailed(m readerFailed) {
	d.parked = true
	d.board.change(func(s *Status) { s.State, s.LastError, s.LastFailed = Parked, m.cause, time.Now() })
}

func (d *Dispatcher) ending() {
	if d.tick != nil {
		d.tick.Stop()
	}
	for i, h := range d.held {
		if i > 0 || !d.busy { // the batch of a call that runs is left to it
			h.Refuse(messages.ErrClosed)
		}
	}
	d.held = nil
	d.stopping()
}

// Damaged notes a part of the log that the reader has left out; any goroutine may call it.
func (d *Dispatcher) Damaged(m messages.LogDamage) { d.skipped.Add(int64(m.To - m.From)) }

// ReaderFailed notes that the reader has failed for good; any goroutine may call it once the actor is spawned.
func (d *Dispatcher) ReaderFailed(m messages.Failed) { d.self.Send(readerFailed{m.Cause}) }

// Status tells how far the dispatcher is; any goroutine may ask.
func (d *Dispatcher) Status() Status {
	s := *d.board.now.Load()
	s.LagBytes = max(0, int64(d.cfg.Limit()-s.Position))
	s.Skipped = d.skipped.Load()
	return s
}
