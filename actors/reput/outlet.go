package reput

import (
	"errors"
	"fmt"

	"github.com/actormq/actormq/messages"
)

// outlet is the dispatcher's side of one builder.
type outlet struct {
	Builder
	free   []*messages.Delivery // its credit
	built  messages.PhysicalOffset
	failed error
}

func newOutlet(number int, b Builder, from messages.PhysicalOffset, back func(*messages.Delivery)) *outlet {
	if b.Credit <= 0 {
		b.Credit = defaultCredit
	}
	o := &outlet{Builder: b, built: from}
	for range b.Credit {
		o.free = append(o.free, messages.NewDelivery(number, back))
	}
	return o
}

// hasCredit tells whether every builder that works can take one more batch.
func (a *Actor) hasCredit() bool {
	working := len(a.outlets) == 0
	for _, o := range a.outlets {
		if o.failed != nil {
			continue
		}
		if len(o.free) == 0 {
			return false
		}
		working = true
	}
	return working
}

// send hands a batch to every builder that works; there is one at least, and each has credit.
func (a *Actor) send(b *batch) {
	users := 0
	for _, o := range a.outlets {
		if o.failed == nil {
			users++
		}
	}
	if users == 0 { // a dispatcher without builders
		a.batches.drop(b)
		return
	}
	a.batches.lend(b, users)
	for _, o := range a.outlets {
		if o.failed != nil {
			continue
		}
		d := o.free[len(o.free)-1]
		o.free = o.free[:len(o.free)-1]
		d.Load(&b.DispatchBatch)
		o.post(d)
	}
}

func (o *outlet) post(d *messages.Delivery) {
	if o.Mailbox == nil {
		o.Peer.Send(d)
		return
	}
	if err := o.Mailbox.Post(d.MailboxLink()); err != nil {
		d.Refuse(err)
	}
}

// returned takes a builder's answer.
func (a *Actor) returned(d *messages.Delivery) {
	o := a.outlets[d.Builder]
	upTo := d.Batch.UpTo
	a.batches.returned(d.Batch)
	d.Batch = nil
	o.free = append(o.free, d)
	switch {
	case d.Err == nil && o.failed == nil:
		o.built = max(o.built, upTo)
	case o.failed == nil:
		o.failed = fmt.Errorf("builder %s: %w", o.Name, d.Err)
		if !errors.Is(d.Err, messages.ErrClosed) {
			a.cfg.Logger.Error().Err(d.Err).Str("builder", o.Name).Msg("a builder has failed: it gets no more batches")
		}
		a.refuseWaiting(o.failed)
	}
}

// builtTo is the physical offset below which every builder has built everything, and why it will not move any more.
func (a *Actor) builtTo() (messages.PhysicalOffset, error) {
	to := a.sent
	for _, o := range a.outlets {
		if o.failed != nil {
			return min(to, o.built), o.failed
		}
		if len(o.free) < o.Credit {
			to = min(to, o.built)
		}
	}
	return to, a.failed
}

// reached is up to where the log counts as dispatched when everything below to is built.
func (a *Actor) reached(to messages.PhysicalOffset) messages.PhysicalOffset {
	if to == a.sent {
		return max(to, a.seen)
	}
	return to
}

// await keeps a request until its offset is reached.
func (a *Actor) await(m messages.AwaitDispatched) {
	to, err := a.builtTo()
	switch {
	case err != nil:
		m.Refuse(err)
	case m.UpTo <= a.reached(to):
		m.Answer.Complete(to, nil)
	case len(a.waiting) >= maxWaiting:
		m.Refuse(messages.ErrBusy)
	default:
		a.waiting = append(a.waiting, m)
	}
}

// tell publishes the position and answers those who waited for it.
func (a *Actor) tell() {
	to, err := a.builtTo()
	if err != nil || int64(to) == a.DispatchedTo.Load() && a.seen <= to {
		return
	}
	a.DispatchedTo.Store(int64(to))
	for _, bell := range a.cfg.Advanced {
		bell.Ring()
	}
	keep := a.waiting[:0]
	for _, m := range a.waiting {
		if m.UpTo <= a.reached(to) {
			m.Answer.Complete(to, nil)
			continue
		}
		keep = append(keep, m)
	}
	clear(a.waiting[len(keep):])
	a.waiting = keep
}

func (a *Actor) refuseWaiting(cause error) {
	for _, m := range a.waiting {
		m.Refuse(cause)
	}
	a.waiting = nil
}
