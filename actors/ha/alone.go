package ha

import (
	"time"

	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
)

// A put that finds no other one waiting goes to the replicas on the goroutine that puts, and is answered on the one that reads the
// acknowledgement: with nobody else at work, waking goroutines, and threads for them, is most of what it costs. As soon as there are more the
// actors have goroutines of their own, so that transfers are large and nobody waits for others (docs/adr/0009).

// aloneAfter is how many puts in a row must have found nothing waiting: what comes many at a time is not taken for it.
const aloneAfter = 8

// AwaitHere is Await for a put that was alone: true, it waits, and SendHere is to be called, on this goroutine, once others may run the
// writer; the bell is not to be rung for it. False: nothing was done, and it is for Await. The writer calls it.
func (r *Replicator) AwaitHere(p *messages.PutMessage) bool {
	if !r.first(p) {
		return false
	}
	if r.alone < aloneAfter {
		r.alone++
		return false
	}
	if p.Result.Bytes > quickBytes || int64(p.Result.Bytes) >= r.cfg.FallbehindMax || r.held.Load() != nil {
		return false
	}
	w := p.AwaitReplica(time.Now().Add(r.cfg.Timeout))
	w.SetHere()
	r.here.Store(true)
	r.held.Store(w)
	return true
}

// first tells whether replicas have, as far as it matters, everything below a put.
func (r *Replicator) first(p *messages.PutMessage) bool {
	if r.cfg.Group != nil {
		return p.Result.PhysicalOffset <= r.Confirmed()
	}
	return int64(p.Result.PhysicalOffset) <= r.best.Load()
}

// crowded notes a put that is not alone, or does not go that way.
func (r *Replicator) crowded(p *messages.PutMessage) {
	if r.alone > 0 && !r.first(p) {
		r.alone = 0
	}
	if r.here.Load() {
		r.here.Store(false)
	}
}

// SendHere hands the put of AwaitHere to the replicator, which has it sent without blocking. Safe for any goroutine.
func (r *Replicator) SendHere() {
	w := r.held.Swap(nil)
	if w == nil {
		return
	}
	if r.port.PostHere(w.MailboxLink()) != nil {
		w.Settle(messages.FlushSlaveTimeout) // no room to wait
		r.cfg.Grown.Ring()
	}
}

// acknowledge has the replicator look how far its replicas are: on this goroutine, which has read it, if the put that waits was alone.
func (r *Replicator) acknowledge() {
	if r.here.Load() {
		r.acked.RingBy(r.answers)
	} else {
		r.acked.Ring()
	}
}

// wakeHere has the senders send on this goroutine.
func (r *Replicator) wakeHere() {
	for _, x := range r.replicas {
		if x.reports {
			x.grown.RingBy(x.sends)
		}
	}
}

// here returns what announces a message to an actor that is to handle it on the goroutine of whoever announces it.
func here(port *mailbox.Combining, message any) func() {
	announcement := messages.Announce(message)
	return func() { _ = port.PostHere(announcement.MailboxLink()) } // there is room for announcements
}
