package keeper

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/vfs"
)

// Config is what makes a keeper that of its table. The functions run on the actor's goroutine.
type Config[V any] struct {
	What string // an entry, as errors and log lines call it: "topic"
	Disk vfs.Disk
	Path string

	File   func(*State[V]) any                         // the content of the file
	Handle func(d *Draft[V], message any) (known bool) // one request; it answers with Settle or Later
	Saved  func(*Draft[V])                             // after a change is published, before it is answered; nil: nothing

	Logger zerolog.Logger
}

// Actor is the actor behind a Keeper.
type Actor[V any] struct {
	cfg       Config[V]
	published atomic.Pointer[State[V]]

	// Of the running batch.
	draft   *Draft[V]
	waiting []func(error) // answers that depend on the draft

	rejects int // messages that nobody knows
}

// Load returns an actor with the content of its file, which state takes from what file points to, completed with what is always
// there. It fails when the file is there but neither it nor its backup can be read.
func Load[V any](cfg Config[V], file any, state func() *State[V], complete func(*Draft[V])) (*Actor[V], error) {
	report, err := metadata.LoadReport(cfg.Disk, cfg.Path, file)
	if err != nil {
		return nil, fmt.Errorf("load %ss: %w", cfg.What, err)
	}
	if report.MainErr != nil {
		cfg.Logger.Error().Err(report.MainErr).Str("from", report.From).
			Msgf("the %s file is damaged; its backup was loaded", cfg.What)
	}
	a := &Actor[V]{cfg: cfg}
	d := newDraft(state())
	complete(d)
	if report.From == "" {
		d.Version.Counter = 0 // as the original begins
	}
	first := d.state()
	if d.dirty {
		if err := metadata.Save(cfg.Disk, cfg.Path, cfg.File(first)); err != nil {
			// Not fatal: it is what every start makes, and the next change saves it.
			cfg.Logger.Error().Err(err).Msgf("the %s file could not be written at start", cfg.What)
		}
	}
	a.published.Store(first)
	return a, nil
}

// Receive implements actor.Actor.
func (a *Actor[V]) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *mailbox.Batch:
		a.batch(m)
	case actor.SystemMessage, actor.AutoReceiveMessage:
	default:
		a.reject(m)
	}
}

// batch handles the waiting requests as one change.
func (a *Actor[V]) batch(b *mailbox.Batch) {
	a.draft = newDraft(a.published.Load())
	for m := b.Next(); m != nil; m = b.Next() {
		if !a.cfg.Handle(a.draft, m) {
			a.reject(m)
		}
	}
	a.finish(a.save())
}

// Settle answers a refusal at once; anything else waits for the save.
func (a *Actor[V]) Settle(err error, answer *messages.Answer[struct{}]) {
	if err != nil {
		answer.Refuse(err)
		return
	}
	a.Later(func(err error) { answer.Complete(struct{}{}, err) })
}

// Later has an answer given with the result of the save.
func (a *Actor[V]) Later(answer func(error)) { a.waiting = append(a.waiting, answer) }

// reject notes a message that this actor does not know, and does not leave its sender waiting.
func (a *Actor[V]) reject(message any) {
	a.rejects++
	a.cfg.Logger.Warn().Type("message", message).Int("count", a.rejects).
		Msgf("the %s keeper does not know a message", a.cfg.What)
	messages.Refuse(message, errors.ErrUnsupported)
}

// save makes the draft durable and publishes it. On an error nothing has changed.
func (a *Actor[V]) save() error {
	if !a.draft.dirty {
		return nil
	}
	next := a.draft.state()
	if err := metadata.Save(a.cfg.Disk, a.cfg.Path, a.cfg.File(next)); err != nil {
		return err
	}
	a.published.Store(next)
	if a.cfg.Saved != nil {
		a.cfg.Saved(a.draft)
	}
	return nil
}

// finish answers everybody who waits for the draft.
func (a *Actor[V]) finish(err error) {
	if err != nil {
		err = fmt.Errorf("%ss are not changed: %w", a.cfg.What, err)
		a.cfg.Logger.Error().Err(err).Int("requests", len(a.waiting)).Msgf("saving %ss failed", a.cfg.What)
	}
	answers := a.waiting
	a.waiting, a.draft = nil, nil
	for _, answer := range answers {
		answer(err)
	}
}

// panicked is the mailbox's OnPanic: the batch's draft is dropped; whether it reached the disk is unknown, so the next
// change writes the whole file anyway.
func (a *Actor[V]) panicked(reason any, stack []byte) {
	a.cfg.Logger.Error().Interface("reason", reason).Bytes("stack", stack).Msgf("the %s keeper panicked", a.cfg.What)
	a.finish(messages.ErrPanicked)
}
