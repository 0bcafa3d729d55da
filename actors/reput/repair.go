package reput

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/record"
)

// maxScanUnits bounds what one step of a repair brings.
const maxScanUnits = 8192

// ErrStuck: the queue lacks records that the log does not hold.
var ErrStuck = errors.New("the log does not hold what the queue lacks")

// repair reads the log again for a queue that lacks units. Steps of it follow one another until it has caught up with what
// is built; then the queue grows with the others again.
type repair struct {
	from    messages.PhysicalOffset // everything below has been looked at
	next    messages.QueueOffset    // of the record behind the last one that was dispatched meanwhile; 0: none was
	end     messages.PhysicalOffset // of that last one
	waiting []messages.RebuildQueue
}

func (r *repair) refuse(cause error) {
	for _, m := range r.waiting {
		m.Refuse(cause)
	}
	r.waiting = nil
}

type (
	// scan is one step of a repair, on a goroutine of its own.
	scan struct {
		state    *queueState
		log      *commitlog.Log
		from, to messages.PhysicalOffset
		multi    bool
		delay    func(int) (int64, int)
	}

	// scanned ends a step.
	scanned struct {
		scan     *scan
		requests []messages.DispatchRequest // of the queue, in order, without keys
		upTo     messages.PhysicalOffset
		err      error
	}
)

// startRepair begins to read what a queue lacks, after a record that leaves a gap.
func (a *QueueBuilder) startRepair(st *queueState, r *messages.DispatchRequest, err error) {
	a.report(messages.QueueProblem{
		Kind: messages.QueueGap, Queue: st.key, QueueOffset: r.QueueOffset, PhysicalOffset: r.PhysicalOffset, Err: err,
	})
	st.repair = &repair{}
	st.lacks(r.QueueOffset+1, r.End())
	a.queueRepair(st)
}

// lacks notes of a queue under repair a record that it does not take now. The repair finds it in the log, unless it expires before: then nothing but
// this tells where the queue goes on.
func (st *queueState) lacks(next messages.QueueOffset, end messages.PhysicalOffset) {
	if end > st.repair.end { // else a batch comes again
		st.repair.next, st.repair.end = next, end
		st.queue.Lack(next, end)
	}
}

// rebuild begins to read what a queue lacks because somebody asks for it.
func (a *QueueBuilder) rebuild(m messages.RebuildQueue) {
	if a.failed != nil {
		m.Refuse(a.failed)
		return
	}
	st, err := a.state(m.Queue)
	if err != nil {
		m.Refuse(err)
		return
	}
	if st.repair == nil {
		st.repair = &repair{}
	}
	st.repair.waiting = append(st.repair.waiting, m)
	if !slices.Contains(a.repairs, st) {
		a.queueRepair(st)
	}
	a.scanNext()
}

func (a *QueueBuilder) queueRepair(st *queueState) {
	a.repairs = append(a.repairs, st)
	if a.cfg.Log == nil {
		a.stick(st, -1, errors.New("no log to read again"))
		return
	}
	st.repair.from = max(st.queue.PhysicalEnd(), a.cfg.Log.Min(), 0)
}

// whole tells whether no queue lacks units.
func (a *QueueBuilder) whole() bool { return len(a.repairs)+len(a.stuck) == 0 }

func (a *QueueBuilder) unqueue(st *queueState) {
	a.repairs = slices.DeleteFunc(a.repairs, func(other *queueState) bool { return other == st })
}

// scanNext begins the next step of the oldest repair.
func (a *QueueBuilder) scanNext() {
	if a.scanning || len(a.repairs) == 0 || a.failed != nil {
		return
	}
	st := a.repairs[0]
	s := &scan{state: st, log: a.cfg.Log, from: st.repair.from, to: a.built, multi: a.cfg.MultiDispatch, delay: a.cfg.Delay}
	self := a.self
	a.scanning = true
	go func() { self.Send(s.run()) }()
}

// run reads the records of the queue. Damage in the log has been reported by the dispatcher.
func (s *scan) run() (found scanned) {
	found.scan = s
	c := cursor{log: s.log, pos: s.from}
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		c.close()
		if r := recover(); r != nil {
			found.err = recovered("read the commit log again", r)
		}
	}()
	key := s.state.key
	for len(found.requests) < maxScanUnits && c.next(s.to) {
		r := &c.rec
		at, further, ok := s.place(r)
		if !ok {
			continue
		}
		found.requests = append(found.requests, messages.DispatchRequest{
			Queue: key, QueueOffset: at, PhysicalOffset: r.PhysicalOffset, SizeBytes: r.Size, SysFlag: r.SysFlag,
			StoreTimestampMs: r.StoreTimestampMs, TagsCode: r.TagsCode(s.delay), Further: further,
		})
	}
	found.upTo = c.pos
	return found
}

// place is a record's offset in the queue, if it belongs there, and whether the queue is not the record's own.
func (s *scan) place(r *record.Record) (at messages.QueueOffset, further, ok bool) {
	key := s.state.key
	switch {
	case !messages.TakesQueueOffset(r.SysFlag):
		return 0, false, false
	case r.QueueID == key.QueueID && string(r.Topic) == key.Topic:
		return r.QueueOffset, false, true
	case !s.multi:
		return 0, false, false
	}
	for other, at := range record.MultiQueues(r) {
		if other == key {
			return at, true, true
		}
	}
	return 0, false, false
}

// scanDone appends what a step has found.
func (a *QueueBuilder) scanDone(m scanned) {
	a.scanning = false
	if a.failed != nil {
		return
	}
	st := m.scan.state
	if slices.Contains(a.repairs, st) { // else it was deleted meanwhile
		a.goOn(st, m)
	}
	a.tellListeners()
	a.armTick()
	a.buildHeld()
}

func (a *QueueBuilder) goOn(st *queueState, m scanned) {
	if m.err != nil {
		a.stick(st, m.scan.from, m.err)
		return
	}
	for i := range m.requests {
		r := &m.requests[i]
		err := a.appendUnit(st, r)
		if errors.Is(err, consumequeue.ErrGap) {
			if st = a.restart(st, r, err); st == nil {
				return
			}
			err = a.appendUnit(st, r)
		} else if a.isReborn(st, r, err) {
			if st = a.replaced(st, r.PhysicalOffset); st == nil {
				return
			}
			err = a.appendUnit(st, r)
		}
		if err != nil {
			st.refused++
			a.refuseRecord(r, st.refused, err)
		}
	}
	switch {
	case m.upTo >= a.built:
		a.healed(st)
	case m.upTo == m.scan.from:
		a.stick(st, m.upTo, fmt.Errorf("read from offset %d to %d: %w", m.upTo, m.scan.to, ErrMissing))
	default:
		st.repair.from = m.upTo
	}
}

// healed lets a queue grow again. Whoever waits for it is told last, when nothing more changes.
func (a *QueueBuilder) healed(st *queueState) {
	if next, end := st.queue.GoesOn(); st.queue.Lacks() && end <= a.cfg.Log.Min() { // what it lacks has expired
		if st = a.replaced(st, -1); st == nil {
			return
		}
		if err := st.queue.Begin(next); err != nil {
			a.stick(st, -1, err)
			return
		}
	}
	end, waiting := st.queue.Max(), st.repair.waiting
	st.repair = nil
	st.queue.Lack(0, -1)
	delete(a.stuck, st.key)
	a.unqueue(st)
	if end == 0 { // the log holds nothing of it: it need not be there
		a.forget(st)
		if err := st.queue.Destroy(); err != nil {
			a.cfg.Logger.Warn().Err(err).Msg("deleting an empty consume queue failed")
		}
	}
	a.report(messages.QueueProblem{Kind: messages.QueueRebuilt, Queue: st.key, QueueOffset: end, PhysicalOffset: -1})
	for _, m := range waiting {
		m.Answer.Complete(end, nil)
	}
}

// stick gives a repair up: the queue stays without the records behind its end.
func (a *QueueBuilder) stick(st *queueState, at messages.PhysicalOffset, cause error) {
	err := errors.Join(ErrStuck, cause)
	st.repair.refuse(err)
	a.stuck[st.key] = true
	a.unqueue(st)
	a.report(messages.QueueProblem{
		Kind: messages.QueueStuck, Queue: st.key, QueueOffset: st.queue.Max(), PhysicalOffset: at, Err: err,
	})
}

// restart lets a queue begin anew at a record, when the log holds none of the records that it names any more. Otherwise
// it is stuck, and the result is nil.
func (a *QueueBuilder) restart(st *queueState, r *messages.DispatchRequest, gap error) *queueState {
	if st.queue.PhysicalEnd() > a.cfg.Log.Min() {
		a.stick(st, r.PhysicalOffset, gap)
		return nil
	}
	a.report(messages.QueueProblem{
		Kind: messages.QueueRestarted, Queue: st.key, QueueOffset: r.QueueOffset, PhysicalOffset: r.PhysicalOffset, Err: gap,
	})
	return a.replaced(st, r.PhysicalOffset)
}

// replaced puts an empty queue in the place of one under repair, which goes on; nil when that fails: it is stuck.
func (a *QueueBuilder) replaced(st *queueState, at messages.PhysicalOffset) *queueState {
	if err := st.queue.Destroy(); err != nil {
		a.stick(st, at, err)
		return nil
	}
	next := &queueState{key: st.key, refused: st.refused, repair: st.repair}
	var err error
	if next.queue, err = a.cfg.Table.Create(st.key); err != nil {
		panic("BUG: a queue that was there cannot be made: " + err.Error())
	}
	next.queue.Lack(next.repair.next, next.repair.end)
	a.flush.forget(st)
	a.forgetMet()
	a.queues[st.key] = next
	a.repairs[slices.Index(a.repairs, st)] = next
	return next
}
