package flusher

import (
	"errors"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
)

// parts returns the put that is answered for a message, and the end of the log that it waits for.
func parts(m messages.Linked) (lead *messages.PutMessage, end messages.PhysicalOffset) {
	switch m := m.(type) {
	case *messages.PutMessage:
		return m, m.Result.End()
	case *messages.PutGroup:
		for _, p := range m.Puts {
			end = max(end, p.Result.End())
		}
		return m.Lead, end
	}
	panic("BUG: a message that is no put waits for a flush")
}

// armDeadline sets the timer for a deadline, unless an earlier one is set already. A timer that finds nothing to do is
// harmless, so it is not stopped when its put is answered in time.
func (a *Actor) armDeadline(at time.Time) {
	if a.deadline != nil && !at.Before(a.deadlineAt) {
		return
	}
	if a.deadline != nil {
		a.deadline.Stop()
	}
	a.deadlineAt = at
	a.deadline = a.self.After(max(time.Until(at), 0), deadlineTick{})
}

// expire answers the puts whose deadline has passed: stored, not confirmed.
func (a *Actor) expire() {
	a.deadline = nil
	now := time.Now()
	var next time.Time
	a.waiting = expireList(a.waiting, now, &next)
	if !next.IsZero() {
		a.armDeadline(next)
	}
}

// expireList answers what has expired, keeps the rest, and lowers next to the earliest deadline that is left.
func expireList(list []messages.Linked, now time.Time, next *time.Time) []messages.Linked {
	keep := list[:0]
	for _, m := range list {
		lead, _ := parts(m)
		if !lead.Deadline.After(now) {
			if lead.Result.Status == messages.PutOK { // what a replica lacks counts more (spec/store.md §3.7)
				lead.Result.Status = messages.FlushDiskTimeout
			}
			lead.Fulfil()
			continue
		}
		if next.IsZero() || lead.Deadline.Before(*next) {
			*next = lead.Deadline
		}
		keep = append(keep, m)
	}
	clear(list[len(keep):])
	return keep
}

// fail ends acknowledging for good. The client is told an error, never FLUSH_DISK_TIMEOUT, which it would take as sent.
func (a *Actor) fail(cause error) {
	if a.failed != nil {
		return
	}
	a.failed = errors.Join(messages.ErrFailed, cause)
	a.cfg.Logger.Error().Err(cause).Str("role", string(actors.RoleFlusher)).
		Msg("the flusher has failed: nothing more is acknowledged")
	a.refuseAll(a.failed) // OnFailed was told before: who is refused finds the store's state as it is from now on
}

func (a *Actor) refuseAll(cause error) {
	for _, m := range a.waiting {
		lead, _ := parts(m)
		lead.Fail(messages.UnknownError, cause)
	}
	for _, list := range [][]messages.FlushNow{a.asked, a.queued, a.saves} {
		for _, q := range list {
			q.Refuse(cause)
		}
	}
	a.waiting, a.asked, a.queued, a.saves = nil, nil, nil, nil
}

func (a *Actor) stopping() {
	for _, t := range []*time.Timer{a.tick, a.deadline} {
		if t != nil {
			t.Stop()
		}
	}
	close(a.jobs)
	a.refuseAll(messages.ErrClosed)
	if a.failed == nil {
		a.failed = messages.ErrClosed
	}
}
