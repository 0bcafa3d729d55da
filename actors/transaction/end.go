package transaction

import (
	"context"
	"fmt"
	"time"

	"github.com/actormq/actormq/messages"
)

// ending is a half message on its way to its end: first a put (the committed message, a copy), then the op messages.
//
//	begun ─put─► stored ─op─► over
//	               └─ op failed ─► owed ─op, again and again─► over
type ending struct {
	at     messages.QueueOffset // the present copy
	how    state                // open: it is only renewed
	ask    *messages.EndTransaction
	after  []*messages.EndTransaction // further requests about it
	result messages.PutResult         // of the first put
	ops    []messages.QueueOffset     // still to be written; nil before the first put is stored
	round  bool                       // the round waits for it

	pause time.Duration // until an owed op message is tried again
	timer *time.Timer
}

// refuse answers everybody who waits.
func (e *ending) refuse(result messages.PutResult, err error) {
	if e.ask != nil {
		e.ask.Done(result, err)
		e.ask = nil
	}
	for _, m := range e.after {
		m.Done(result, err)
	}
	e.after = nil
}

// end begins the end of a transaction, or says why not.
func (a *transactions) end(m *messages.EndTransaction) {
	if !m.Deadline.IsZero() && !time.Now().Before(m.Deadline) {
		m.Refuse(fmt.Errorf("end a transaction: %w", context.DeadlineExceeded))
		return
	}
	half, err := a.cfg.Store.MessageAt(m.PhysicalOffset)
	if err == nil {
		err = verify(&half, m)
	} else {
		err = fmt.Errorf("%w: %w", messages.ErrNoHalf, err)
	}
	if err != nil {
		m.Done(messages.PutResult{}, err)
		return
	}
	at := a.ledger.live(m.QueueOffset)
	if e := a.ending[at]; e != nil {
		a.follow(e, m)
		return
	}
	place := half.PhysicalOffset
	if h := a.ledger.waiting[at]; h != nil {
		place = h.place
	}
	if s := a.ledger.ends.of(at, place); s != open {
		m.Done(messages.PutResult{}, a.ended(s, m, &half))
		return
	}
	if len(a.ending) >= maxEnding || !a.ledger.ends.fits(at) {
		m.Refuse(fmt.Errorf("%d transactions are being ended: %w", len(a.ending), messages.ErrBusy))
		return
	}
	if at != m.QueueOffset {
		if half, err = a.cfg.Store.MessageAt(place); err != nil {
			m.Done(messages.PutResult{}, fmt.Errorf("%w: its copy can't be read: %w", messages.ErrNoHalf, err))
			return
		}
	}
	a.endNow(at, m, &half)
}

func (a *transactions) endNow(at messages.QueueOffset, m *messages.EndTransaction, half *messages.StoredMessage) {
	if !m.Commit {
		a.write(&ending{at: at, how: dropped, ask: m})
		return
	}
	message, err := restored(half)
	if err != nil {
		m.Done(messages.PutResult{}, err)
		return
	}
	// Nobody waits for this one to be durable: the op message behind it in the log is.
	a.put(&ending{at: at, how: committed, ask: m}, message, false, m.Deadline)
}

// follow lets a request wait until another one about the same half message is done.
func (a *transactions) follow(e *ending, m *messages.EndTransaction) {
	if len(e.after) >= maxBehind {
		m.Refuse(fmt.Errorf("half message %d is being ended: %w", e.at, messages.ErrBusy))
		return
	}
	e.after = append(e.after, m)
	if e.timer != nil && e.timer.Stop() {
		a.writeOp(e)
	}
}

// ended answers a request about a transaction that is over.
func (a *transactions) ended(s state, m *messages.EndTransaction, half *messages.StoredMessage) error {
	if !m.Commit || s == committed {
		return nil
	}
	if found, known := a.committed(half); s == over && (found || !known) {
		return nil
	}
	return fmt.Errorf("half message %d: %w", half.QueueOffset, messages.ErrTransactionOver)
}

// put begins an ending by a put.
func (a *transactions) put(e *ending, m *messages.Message, waitStored bool, deadline time.Time) {
	a.ending[e.at] = e
	if deadline.IsZero() {
		deadline = time.Now().Add(putTimeout)
	}
	a.cfg.Store.PutAsync(m, waitStored, deadline, func(result messages.PutResult, err error) {
		a.tell(putDone{e, result, err})
	})
}

// write goes on with the op messages: one for each copy, the present one first.
func (a *transactions) write(e *ending) {
	a.ending[e.at] = e
	e.ops = a.ledger.namesOf(e.at)
	a.writeOp(e)
}

// writeOp writes the next op message. Its deadline is its own: what is committed needs it, however late it is.
func (a *transactions) writeOp(e *ending) {
	e.timer = nil
	now := time.Now()
	a.cfg.Store.PutAsync(op(e.ops[0], a.cfg.Host, now), true, now.Add(putTimeout), func(result messages.PutResult, err error) {
		a.tell(putDone{e, result, err})
	})
}

// stored goes on with an ending after a put.
func (a *transactions) stored(m putDone) {
	e, ok := m.e, m.result.Status.Stored()
	switch {
	case a.ending[e.at] != e: // refused by stop
	case e.ops != nil && !ok:
		a.owe(e, m)
	case e.ops != nil:
		if e.ops = e.ops[1:]; len(e.ops) > 0 {
			a.writeOp(e)
			return
		}
		if e.result.Status == messages.PutOK {
			e.result.Status = m.result.Status
		}
		a.ledger.finish(e.at, e.how)
		a.done(e, m.err)
	case !ok:
		a.failed(e, m)
	case e.how == open:
		a.ledger.renewed(e.at, &m.result)
		a.done(e, nil)
	default:
		e.result = m.result
		a.write(e)
	}
}

// failed ends an ending that has stored nothing: the half message stays undecided.
func (a *transactions) failed(e *ending, m putDone) {
	if e.ask == nil {
		a.cfg.Logger.Error().Err(m.err).Int64("half", int64(e.at)).Stringer("status", m.result.Status).
			Msg("a half message could not be copied: the next round tries again")
	}
	e.result = m.result
	a.done(e, m.err)
}

// done ends an ending, answers, and goes on with the requests that waited for it.
func (a *transactions) done(e *ending, err error) {
	delete(a.ending, e.at)
	if e.ask != nil {
		if e.result.Status.Stored() {
			err = nil
		}
		e.ask.Done(e.result, err)
	}
	a.roundGoesOn(e)
	for _, m := range e.after {
		a.end(m)
	}
}

// owe notes that an op message could not be written (weakness W22 of the original): it is tried again until it is there.
func (a *transactions) owe(e *ending, m putDone) {
	const longest = time.Minute
	e.pause = min(max(2*e.pause, time.Second), longest)
	a.cfg.Logger.Error().Err(m.err).Int64("half", int64(e.at)).Stringer("status", m.result.Status).Dur("again_in", e.pause).
		Msg("an op message could not be written")
	e.refuse(m.result, fmt.Errorf("the end of half message %d could not be noted: %w", e.at, m.err))
	a.roundGoesOn(e)
	e.timer = time.AfterFunc(e.pause, func() { a.tell(retryOp{e}) })
}

// committed looks for the message of a committed transaction by its unique key; known tells whether it could be looked for.
func (a *transactions) committed(half *messages.StoredMessage) (found, known bool) {
	to, err := real(half)
	key, ok := half.Properties.Get(messages.PropertyUniqKey)
	if err != nil || !ok {
		return false, false
	}
	const most = 64
	ctx, cancel := context.WithTimeout(context.Background(), putTimeout)
	defer cancel()
	list, err := a.cfg.Store.Query(ctx, messages.QueryMessage{
		Topic: to.Topic, Key: key, MaxMessages: most, BeginMs: half.StoreTimestampMs, EndMs: 1 << 60,
	})
	if err != nil {
		a.cfg.Logger.Warn().Err(err).Int64("half", int64(half.QueueOffset)).Msg("a committed message could not be looked for")
		return false, false
	}
	for i := range list {
		m := &list[i]
		if messages.TransactionOf(m.SysFlag) == messages.SysFlagTransactionCommit &&
			m.PreparedTransactionOffset == half.PhysicalOffset {
			return true, true
		}
	}
	return false, true
}
