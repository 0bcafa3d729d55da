package store

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/record"
)

// dispatcher puts records into the queues and the index that do not have them yet.
type dispatcher struct {
	*Store
	queuesFrom messages.PhysicalOffset
	indexFrom  messages.PhysicalOffset
	indexEnd   messages.PhysicalOffset // the last record that was indexed before

	firstIndexed messages.PhysicalOffset // the first record that putKept has counted
	states       *queueStates[target]
	unwritten    int // units in memory only

	unknown []unknown               // what stands for lost records of which nothing is known
	divided messages.PhysicalOffset // the first of them that was divided; -1: none was
}

// maxUnwritten bounds the units that are kept in memory.
const maxUnwritten = 1 << 20

// target is a queue that records go to.
type target struct {
	q        *consumequeue.Queue
	rejected bool
	// odd is a record whose queue offset does not follow, and that waits for one that confirms it.
	odd   consumequeue.Unit
	oddAt messages.QueueOffset // -1: none
}

// dispatch reads the log from the plan's place on. What queues and index have already is skipped.
func (s *Store) dispatch(p *Plan) error {
	d := &dispatcher{
		Store: s, queuesFrom: p.QueuesFrom, indexFrom: p.End, firstIndexed: noneIndexed, unknown: s.blanks, divided: -1,
	}
	if s.Index != nil {
		d.indexFrom, d.indexEnd = p.Index.From, s.Index.EndPhysical()
		if d.indexFrom < 0 {
			d.indexFrom = max(d.indexEnd, p.Min)
		}
		if s.options.IndexUnbuilt {
			s.Report.IndexFrom, d.indexFrom = d.indexFrom, p.End
		}
	}
	from := max(min(d.queuesFrom, d.indexFrom), p.Min)
	if from >= p.End {
		return nil
	}
	d.states = newQueueStates(d.target)
	if err := d.putKept(p); err != nil {
		return err
	}
	if rest := max(min(d.queuesFrom, d.indexFrom), p.Min); rest < p.End {
		if err := d.walk(p, rest, 0, d.item); err != nil {
			return err
		}
	}
	if err := d.settleOdd(); err != nil {
		return fmt.Errorf("dispatch: %w", err)
	}
	if d.divided >= 0 {
		if err := s.syncLog(d.divided); err != nil {
			return fmt.Errorf("dispatch: %w", err)
		}
	}
	if s.Report.Dispatched > 0 {
		s.tell(Event{What: Dispatched, From: int64(from), To: int64(p.End)})
	}
	return nil
}

// walk reads the log from a place to another one, to the plan's end when that is 0. What the plan has read is not compared with its
// checksums again, where nothing is damaged.
func (d *dispatcher) walk(p *Plan, from, until messages.PhysicalOffset, fn func(*Item) error) error {
	checked := from >= p.ScanFrom && len(p.Holes) == 0
	w := Walk{
		Log: d.Log, Queues: d.Queues, CheckCRC: d.Params.CheckCRC && !checked, Until: until,
		Progress: progressOf(d.options.Progress, "dispatch", from, d.Log),
	}
	to := p.End
	if until > 0 {
		to = until
	}
	end, stop, err := w.Run(d.align(p, from), fn)
	if err != nil {
		return fmt.Errorf("dispatch: %w", err)
	}
	if end < to {
		return fmt.Errorf("dispatch: the log ends at %d, not at %d: %w", end, to, stop)
	}
	return nil
}

// align returns a place at or in front of the given one where a walk may start. Ends of queues and of the index are ends
// or starts of records, if what they name is sound; else the walk starts with the segment.
func (d *dispatcher) align(p *Plan, from messages.PhysicalOffset) messages.PhysicalOffset {
	err := look(d.Log, from, func(r *record.Record, kind record.Kind) error {
		if kind == record.KindMessage && r.PhysicalOffset != from {
			return ErrMisplaced
		}
		return nil
	})
	if err != nil {
		return max(d.Log.SegmentStart(from), p.Min)
	}
	return from
}

func (d *dispatcher) item(it *Item) error {
	if it.Kind != ItemRecord {
		return nil
	}
	r := &it.Record
	d.noteUnknown(it)
	before := d.Report.Dispatched
	queued := messages.TakesQueueOffset(r.SysFlag) && r.QueueOffset >= 0
	if it.From >= d.queuesFrom && queued {
		if err := d.toQueues(r); err != nil {
			return err
		}
	}
	if it.From >= d.indexFrom {
		if err := d.toIndex(r); err != nil {
			return err
		}
	}
	if d.counted(r) {
		d.Report.Dispatched = before
	}
	d.Report.Dispatched = min(d.Report.Dispatched, before+1)
	return nil
}

func (d *dispatcher) target(key messages.QueueKey) *target {
	q, err := d.Queues.Create(key)
	if err != nil {
		d.tell(Event{What: RejectedRecord, Queue: key, Err: err})
		return &target{rejected: true, oddAt: -1}
	}
	return &target{q: q, oddAt: -1}
}

func (d *dispatcher) toQueues(r *record.Record) error {
	unit := consumequeue.Unit{PhysicalOffset: r.PhysicalOffset, Size: r.Size, TagsCode: r.TagsCode(d.Delays.Millis)}
	if !d.floors.isDeleted(r.Topic, r.PhysicalOffset) {
		if err := d.append(d.states.of(r.Topic, r.QueueID), unit, r.QueueOffset); err != nil {
			return err
		}
	}
	if !d.Params.MultiDispatch {
		return nil
	}
	for key, at := range record.MultiQueues(r) {
		if d.floors.isDeleted([]byte(key.Topic), r.PhysicalOffset) {
			continue
		}
		if err := d.append(d.states.of([]byte(key.Topic), key.QueueID), unit, at); err != nil {
			return err
		}
	}
	return nil
}

// append puts a unit into a queue that may lack it.
func (d *dispatcher) append(t *target, u consumequeue.Unit, at messages.QueueOffset) error {
	if t.rejected {
		return nil
	}
	added, err := t.q.Append(u, at)
	switch {
	case err == nil:
		t.oddAt = -1
	case u.PhysicalOffset < t.q.PhysicalEnd():
		return nil // the queue has what came later: this message is of a topic that was deleted and made again
	case errors.Is(err, consumequeue.ErrGap), errors.Is(err, consumequeue.ErrOrder):
		added, err = d.misplaced(t, u, at)
	}
	if err != nil || !added {
		return err
	}
	d.Report.Dispatched++
	if d.unwritten++; d.unwritten < maxUnwritten {
		return nil
	}
	return d.write()
}

// write puts the units that are in memory into the files.
func (d *dispatcher) write() error {
	d.unwritten = 0
	var errs []error
	d.states.each(func(t *target) {
		if !t.rejected {
			errs = append(errs, t.q.Write())
		}
	})
	return d.room(errors.Join(errs...))
}

// misplaced handles a record whose queue offset does not follow. Records may be lost, or the topic was deleted and made
// again; but the offset itself may be damaged too, since no checksum covers it. So it waits for the next record, which
// confirms it when it follows.
func (d *dispatcher) misplaced(t *target, u consumequeue.Unit, at messages.QueueOffset) (bool, error) {
	if t.oddAt < 0 || !t.confirmed(u, at) {
		t.odd, t.oddAt = u, at
		return false, nil
	}
	take := d.restart
	if t.missing() {
		take = d.closeGap
	}
	if err := take(t); err != nil {
		return false, err
	}
	if at > t.q.Max() {
		t.odd, t.oddAt = u, at // more is missing between the two
		return false, nil
	}
	return t.q.Append(u, at)
}

// confirmed tells whether a record may stand behind the odd one.
func (t *target) confirmed(u consumequeue.Unit, at messages.QueueOffset) bool {
	missing, room := int64(at-t.oddAt)-1, int64(u.PhysicalOffset-t.odd.End())
	return missing == 0 || missing > 0 && t.missing() && missing <= room/record.MinBytes
}

// missing tells whether the odd record stands behind a gap in the queue's offsets, and the log has room for what is
// missing.
func (t *target) missing() bool {
	missing, room := int64(t.oddAt-t.q.Max()), int64(t.odd.PhysicalOffset-t.q.PhysicalEnd())
	return missing > 0 && t.q.PhysicalEnd() >= 0 && missing <= room/record.MinBytes
}

func (d *dispatcher) appendOdd(t *target) error {
	_, err := t.q.Append(t.odd, t.oddAt)
	t.oddAt = -1
	d.Report.Dispatched++
	return err
}

// restart makes the queue begin anew with the odd record.
func (d *dispatcher) restart(t *target) error {
	key := t.q.Key()
	if err := t.q.Destroy(); err != nil {
		return err
	}
	q, err := d.Queues.Create(key)
	if err != nil {
		return err
	}
	d.tell(Event{What: RestartedQueue, Queue: key, From: int64(t.oddAt)})
	t.q = q
	return d.appendOdd(t)
}

// settleOdd decides about records whose queue offset does not follow and that were the last of their queue: what is missing
// before may be lost; one with offset 0 is the first of a topic that was made again; any other is left out.
func (d *dispatcher) settleOdd() error {
	var errs []error
	d.states.each(func(t *target) {
		switch {
		case t.oddAt == 0:
			errs = append(errs, d.restart(t))
		case t.oddAt > 0 && t.missing():
			errs = append(errs, d.closeGap(t))
		case t.oddAt > 0:
			err := fmt.Errorf("%w: queue offset %d, the queue ends at %d", errOutOfOrder, t.oddAt, t.q.Max())
			d.tell(Event{What: RejectedRecord, Queue: t.q.Key(), From: int64(t.odd.PhysicalOffset), Err: err})
		}
	})
	return errors.Join(errs...)
}

func (d *dispatcher) toIndex(r *record.Record) error {
	if d.Index == nil || r.PhysicalOffset < d.indexEnd || !Indexed(r) {
		return nil
	}
	req := requestOf(r, string(r.Topic))
	if r.PhysicalOffset == d.indexEnd {
		// A crash may have kept some of its keys from the index; those that are there must not come twice.
		if all, err := d.hasAllKeys(&req); all || err != nil {
			return err
		}
	}
	d.Report.Dispatched++
	return d.indexOrNone(d.Index.BuildFrom(&req))
}

func (d *dispatcher) hasAllKeys(req *messages.DispatchRequest) (bool, error) {
	for _, key := range append(strings.Split(string(req.Keys), " "), string(req.UniqKey)) {
		if key == "" {
			continue
		}
		at, err := d.Index.Query(req.Queue.Topic, key, 1, 0, math.MaxInt64)
		if err != nil || !slices.Contains(at, req.PhysicalOffset) {
			return false, err
		}
	}
	return true, nil
}

// queueStates keeps something for each queue, found without allocating by the bytes of the topic.
type queueStates[T any] struct {
	topics map[string]map[int32]*T
	all    []*T // in the order they came, so that a recovery writes in the same order each time
	fresh  func(messages.QueueKey) *T
}

func newQueueStates[T any](fresh func(messages.QueueKey) *T) *queueStates[T] {
	return &queueStates[T]{topics: map[string]map[int32]*T{}, fresh: fresh}
}

// of returns the state of a queue; it is made when it is not there.
func (s *queueStates[T]) of(topic []byte, id int32) *T {
	queues, ok := s.topics[string(topic)]
	if !ok {
		queues = map[int32]*T{}
		s.topics[string(topic)] = queues
	}
	t, ok := queues[id]
	if !ok {
		t = s.fresh(messages.QueueKey{Topic: string(topic), QueueID: id})
		queues[id] = t
		s.all = append(s.all, t)
	}
	return t
}

// each calls fn for every state.
func (s *queueStates[T]) each(fn func(*T)) {
	for _, t := range s.all {
		fn(t)
	}
}

// requestOf describes a record to the index.
func requestOf(r *record.Record, topic string) messages.DispatchRequest {
	req := messages.DispatchRequest{
		Queue:                     messages.QueueKey{Topic: topic, QueueID: r.QueueID},
		QueueOffset:               r.QueueOffset,
		PhysicalOffset:            r.PhysicalOffset,
		PreparedTransactionOffset: r.PreparedTransactionOffset,
		StoreTimestampMs:          r.StoreTimestampMs,
		SizeBytes:                 r.Size,
		SysFlag:                   r.SysFlag,
	}
	keys, uniqKey, _ := messages.ViewProperties(r.Properties).Dispatched()
	req.Keys, req.UniqKey = []byte(keys), []byte(uniqKey)
	return req
}

// Indexed tells whether the index has entries for a record.
func Indexed(r *record.Record) bool {
	if messages.TransactionOf(r.SysFlag) == messages.SysFlagTransactionRollback {
		return false
	}
	keys, uniqKey, _ := messages.ViewProperties(r.Properties).Dispatched()
	return uniqKey != "" || strings.Trim(keys, " ") != ""
}
