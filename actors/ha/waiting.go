package ha

import (
	"time"

	"github.com/actormq/actormq/messages"
)

// await keeps a put until a replica has it. They come in the order of the log.
func (r *Replicator) await(w *messages.ReplicaWait) {
	if r.stopped || r.fenced() {
		w.Settle(r.unconfirmed())
		return
	}
	r.waiting = append(r.waiting, w)
	r.armDeadline(w.Deadline)
}

// fenced tells that another node may lead by now.
func (r *Replicator) fenced() bool { return r.cfg.Group != nil && r.cfg.Group.Fenced() }

// unconfirmed is what a put is told that waits no longer. Once another leader may go on without it nobody is told that it is stored: the
// client is to send again.
func (r *Replicator) unconfirmed() messages.PutStatus {
	if r.fenced() {
		return messages.UnknownError
	}
	return messages.FlushSlaveTimeout
}

// giveUp answers everything that waits.
func (r *Replicator) giveUp() {
	status := r.unconfirmed()
	for _, w := range r.waiting {
		w.Settle(status)
	}
	r.waiting = nil
}

// settle answers the puts that a replica has, and all when they can't be acknowledged any more.
func (r *Replicator) settle() {
	if r.fenced() {
		r.giveUp()
		return
	}
	best, n := r.settled(), 0
	for n < len(r.waiting) && r.waiting[n].End <= best {
		r.waiting[n].Settle(messages.PutOK)
		n++
	}
	if n == 0 {
		return
	}
	clear(r.waiting[:n])
	if r.waiting = r.waiting[n:]; len(r.waiting) == 0 {
		r.waiting = nil
	}
}

// armDeadline sets the timer for a deadline, unless an earlier one is set. One that finds nothing to do is harmless.
func (r *Replicator) armDeadline(at time.Time) {
	if r.deadline != nil && !at.Before(r.expires) {
		return
	}
	if r.deadline != nil {
		r.deadline.Stop()
	}
	r.expires = at
	r.deadline = r.self.After(max(time.Until(at), 0), deadlineTick{})
}

// expire answers the puts whose own deadline has passed (§16, W10: no other put's deadline matters).
func (r *Replicator) expire() {
	r.deadline = nil
	if r.fenced() {
		r.giveUp()
		return
	}
	now := time.Now()
	keep := r.waiting[:0]
	var next time.Time
	for _, w := range r.waiting {
		if !w.Deadline.After(now) {
			w.Settle(messages.FlushSlaveTimeout)
			continue
		}
		if next.IsZero() || w.Deadline.Before(next) {
			next = w.Deadline
		}
		keep = append(keep, w)
	}
	clear(r.waiting[len(keep):])
	r.waiting = keep
	if soonest := now.Add(expiryStep); !next.IsZero() {
		if next.Before(soonest) {
			next = soonest
		}
		r.armDeadline(next)
	}
}
