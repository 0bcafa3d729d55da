package transaction

import (
	"context"
	"fmt"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
)

// opSlack is how many op messages below the progress are read at the start, so that a transaction that ended shortly before is
// known.
const opSlack = 4096

// load reads what is undecided. The log has been dispatched to its end then, so every op message counts.
func (a *transactions) load(ctx context.Context) error {
	if err := a.cfg.Store.AwaitDispatched(ctx); err != nil {
		return fmt.Errorf("wait for the queues: %w", err)
	}
	a.ledger = newLedger(a.position(halfQueue), a.cfg.MaxWaiting)
	a.opHead = a.position(opQueue)
	a.next = progress{half: a.ledger.head, op: a.opHead}
	a.opsRead = max(a.cfg.Store.MinOffset(opQueue), a.opHead-opSlack)
	a.opsEnd = a.cfg.Store.MaxOffset(opQueue)
	end := a.cfg.Store.MaxOffset(halfQueue)
	a.announced.Store(int64(end))
	for before := messages.NoOffset; a.opsRead < a.opsEnd && a.opsRead != before && ctx.Err() == nil; {
		before = a.opsRead
		a.catchUp()
	}
	for !a.walk(end) && ctx.Err() == nil {
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	a.count.Store(int64(len(a.ledger.waiting)))
	a.findCommitted()
	return nil
}

// position is the saved progress in a queue, within what the queue has.
func (a *transactions) position(q messages.QueueKey) messages.QueueOffset {
	at := a.cfg.Offsets.Lookup(messages.GroupTransactions, q)
	return min(max(at, a.cfg.Store.MinOffset(q)), a.cfg.Store.MaxOffset(q))
}

// findCommitted looks for transactions whose message was committed and whose op message a crash has taken.
func (a *transactions) findCommitted() {
	for _, at := range a.ledger.due() {
		stored, err := a.cfg.Store.MessageAt(a.ledger.waiting[at].place)
		if err != nil {
			continue // the rounds deal with it
		}
		if found, _ := a.committed(&stored); found {
			a.mend = append(a.mend, at)
			a.cfg.Logger.Warn().Int64("half", int64(at)).Msg("a committed transaction has lost its op message: it is written again")
		}
	}
}

// catchUp reads some of the ops that were there at the start; true when they are all known, or no more can be known for now.
func (a *transactions) catchUp() bool {
	if a.opsRead >= a.opsEnd {
		return true
	}
	halves := a.cfg.Store.MaxOffset(halfQueue)
	next, err := a.readOps(a.opsRead, stepSize, func(at messages.QueueOffset, op messages.PhysicalOffset) bool {
		if !a.ledger.ends.fits(at) {
			return at >= halves // what names nothing keeps nobody waiting
		}
		h := a.ledger.waiting[at]
		switch {
		case h == nil:
			a.ledger.ends.set(at, over, op)
		case h.place < op && a.ending[at] == nil:
			a.ledger.finish(at, over)
		}
		return true
	})
	stuck := next == a.opsRead
	a.opsRead = next
	return err != nil || stuck || next >= a.opsEnd
}

// readOps reads op messages from an offset on and gives each half message that they name to fn, with the place of the op message;
// fn returns false to stop before that op message. It returns where to go on.
func (a *transactions) readOps(
	from messages.QueueOffset, most int, fn func(half messages.QueueOffset, op messages.PhysicalOffset) bool,
) (messages.QueueOffset, error) {
	from = max(from, a.cfg.Store.MinOffset(opQueue))
	found, err := a.get(opQueue, from, most)
	if err != nil {
		a.cfg.Logger.Error().Err(err).Int64("from", int64(from)).Msg("op messages can't be read")
		return from, err
	}
	defer found.Release()
	next, goOn := max(from, found.NextOffset), true
	err = each(found, func(r *record.Record) bool {
		endedBy(r, func(at messages.QueueOffset) { goOn = goOn && fn(at, r.PhysicalOffset) })
		if !goOn {
			next = r.QueueOffset
		}
		return goOn
	})
	if err != nil {
		return from, err
	}
	return next, nil
}

// walk takes half messages from the queue; true when it has come to the end, or takes no more for now.
func (a *transactions) walk(end messages.QueueOffset) bool {
	l := a.ledger
	if lo := a.cfg.Store.MinOffset(halfQueue); l.walked < lo {
		a.cfg.Logger.Error().Int64("from", int64(l.walked)).Int64("to", int64(lo)).
			Msg("half messages were deleted before they were looked at")
		l.walked = lo
	}
	for n := 0; n < stepSize; n++ {
		if l.walked >= end || l.full() {
			return true
		}
		if l.ends.known(l.walked) || l.waiting[l.walked] != nil {
			l.walked++
			continue
		}
		found, err := a.get(halfQueue, l.walked, stepSize)
		if err != nil {
			a.cfg.Logger.Error().Err(err).Int64("from", int64(l.walked)).Msg("half messages can't be read")
			return true
		}
		n += len(found.Records)
		err = each(found, func(r *record.Record) bool {
			l.add(halfOf(r))
			return true
		})
		next := found.NextOffset
		found.Release()
		if err != nil || next <= l.walked {
			return true
		}
		l.walked = next
	}
	return false
}

// each takes the records of a result apart. A fault in the map is its error.
func each(found *messages.GetResult, fn func(*record.Record) bool) error {
	return vfs.Guard("read the commit log", func() error {
		for _, raw := range found.Records {
			r, kind, err := record.Parse(raw, false)
			if err != nil || kind != record.KindMessage {
				continue // it is passed over: nothing of it can be believed
			}
			if !fn(&r) {
				return nil
			}
		}
		return nil
	})
}
