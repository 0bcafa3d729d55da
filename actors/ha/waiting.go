package ha

import (
	"time"

	"github.com/actormq/actormq/messages"
)

// await keeps a put until a replica has it. They come in the order of the log, but for one that was alone and is overtaken by the next on its
// way here. Nothing is asked here that could panic: from now on the put
// is answered, at its deadline at the latest; settle, behind it, looks at whether it can be acknowledged at all.
func (r *Replicator) await(w *messages.ReplicaWait) {
	r.waiting = append(r.waiting, w)
	for i := len(r.waiting) - 1; i > 0 && r.waiting[i-1].End > w.End; i-- {
		r.waiting[i-1], r.waiting[i] = w, r.waiting[i-1]
	}
	r.armDeadline(w.Deadline)
}

// fenced tells that another node may lead by now.
func (r *Replicator) fenced() bool { return r.cfg.Group != nil && r.cfg.Group.Fenced() }

// giveUp answers everything that waits.
func (r *Replicator) giveUp() { r.answer(func(*messages.ReplicaWait) bool { return true }) }

// answer ends the waiting of some. Once another leader may go on without them nobody is told that they are stored: the client is to send
// again. The same where a panic keeps that from being known. Others wait on, and the timer is set for them.
func (r *Replicator) answer(over func(*messages.ReplicaWait) bool) {
	status := messages.UnknownError
	defer func() {
		list, soonest := r.waiting, time.Now().Add(expiryStep)
		r.waiting = nil
		for _, w := range list {
			if over(w) {
				w.Settle(status)
				continue
			}
			r.waiting = append(r.waiting, w)
			at := w.Deadline
			if at.Before(soonest) {
				at = soonest
			}
			r.armDeadline(at)
		}
	}()
	if !r.fenced() {
		status = messages.FlushSlaveTimeout
	}
}

// settle answers the puts that a replica has, and all when they can't be acknowledged any more. Alone: the one that waits is answered as such.
func (r *Replicator) settle(alone bool) {
	if r.stopped || r.fenced() {
		r.giveUp()
		return
	}
	best := r.settled()
	for len(r.waiting) > 0 && r.waiting[0].End <= best {
		w := r.waiting[0]
		r.waiting[0] = nil
		if r.waiting = r.waiting[1:]; len(r.waiting) == 0 {
			r.waiting = nil
		}
		if alone {
			w.SettleAlone(messages.PutOK)
		} else {
			w.Settle(messages.PutOK)
		}
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
	now := time.Now()
	r.answer(func(w *messages.ReplicaWait) bool { return !w.Deadline.After(now) })
	r.settle(false)
}
