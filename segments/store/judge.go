package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/consumequeue/ext"
	"github.com/actormq/actormq/segments/record"
)

// Reasons why a queue must be mended.
var (
	errBehindLog  = errors.New("names records behind the end of the log")
	errWrongUnit  = errors.New("a unit does not name its record")
	errNoRecord   = errors.New("units that name no record of the queue")
	errNoBegin    = errors.New("units of records at the log's beginning are missing")
	errOutOfOrder = errors.New("a record does not follow in its queue")
	errCutShort   = errors.New("its last units had no room when their records left the log")
)

// judge compares the consume queues with the records that a scan meets.
type judge struct {
	*planner
	verdicts *queueStates[verdict]
}

// verdict is what is known about one queue.
type verdict struct {
	unitWindow
	drop    bool
	cut     messages.QueueOffset    // the queue must end here, -1: where it ends
	why     error                   // of drop or cut
	from    messages.PhysicalOffset // records from here on must be dispatched to it, -1: none
	damaged bool                    // units are missing at its end
	seen    messages.QueueOffset    // behind the last record that the scan has met
	next    messages.QueueOffset    // of a dropped queue of which nothing is built again, -1: what its files say
}

func newJudge(p *planner) *judge {
	j := &judge{planner: p}
	j.verdicts = newQueueStates(func(key messages.QueueKey) *verdict {
		return &verdict{unitWindow: unitWindow{key: key, q: p.queues.Lookup(key)}, cut: -1, from: -1, next: -1}
	})
	return j
}

// eachQueue calls fn for every queue of the table until it fails.
func (j *judge) eachQueue(fn func(*verdict) error) error {
	var err error
	j.queues.Each(func(key messages.QueueKey, _ *consumequeue.Queue) {
		if err == nil {
			err = fn(j.verdicts.of([]byte(key.Topic), key.QueueID))
		}
	})
	return err
}

// queuesAlone judges the queues before the log is read: those found damaged, and after an unclean stop or a failed sync, when pages may be
// missing anywhere, those that are not sound from end to end. Where they are not proven they end in front of the scan.
func (j *judge) queuesAlone() error {
	var unsound map[*consumequeue.Queue]error
	if !j.Clean || j.unproven != proven {
		unsound = j.queues.Verify()
	}
	return j.eachQueue(func(v *verdict) error {
		if err := v.q.Damaged(); err != nil && v.q.PhysicalEnd() <= max(j.Min, 0) {
			j.dropQueue(v, err) // of what has expired only its end counts, and that is not known by the sound part
			if messages.PhysicalOffset(j.floors.Topics[v.key.Topic].Below) > max(j.Min, 0) {
				v.next = 0 // its topic was deleted, and all that has come since is in the log
			}
			return nil
		} else if err != nil {
			v.damaged, v.cut, v.why = true, v.q.Max(), err // what is sound of it is compared like any other
		}
		if gone, err := j.deleted(v); gone || err != nil {
			return err
		}
		err := unsound[v.q]
		var damage *segments.CorruptionError
		if errors.As(err, &damage) {
			j.dropQueue(v, err)
			return nil
		}
		if err != nil {
			return err
		}
		if j.unproven == proven {
			return nil
		}
		return j.inDoubt(v)
	})
}

// doubtFrom is the place from which on the queues are built again, whatever they hold: proven, if they are. What is scanned belongs to it,
// as records are compared only with queues that stay as they are.
func (j *judge) doubtFrom() messages.PhysicalOffset {
	if j.unproven == proven {
		return proven
	}
	return min(j.unproven, j.ScanFrom)
}

// inDoubt has a queue built again from where it is not proven. What is in front of that was durable before. Units of records that have gone
// with the log's beginning can't be built again: a queue of such alone stays as it can be read, as it must not give its offsets anew.
func (j *judge) inDoubt(v *verdict) error {
	from := j.doubtFrom()
	if v.q.PhysicalEnd() < 0 { // it was dropped, and where it goes on is noted for the case that nothing can be built of it
		v.drop, v.from, v.why, v.next = true, from, errUnproven, v.q.Max()
		return nil
	}
	if end := v.q.PhysicalEnd(); end <= from || end <= j.Min {
		return nil
	}
	at, err := v.q.Search(from)
	if err != nil {
		return err
	}
	v.drop, v.cut, v.from, v.why = at <= v.q.Min() || from < j.Min, at, from, errUnproven
	return nil
}

// deleted drops a queue that still has units of its topic's life before a deletion.
func (j *judge) deleted(v *verdict) (bool, error) {
	below := messages.PhysicalOffset(j.floors.Topics[v.key.Topic].Below)
	if below == 0 || v.q.PhysicalEnd() < 0 {
		return false, nil
	}
	at, err := v.q.Search(below)
	if err != nil || at == v.q.Min() {
		return false, err
	}
	v.drop, v.why, v.from, v.next = true, errDeleted, below, 0
	return true, nil
}

// dropQueue has the queue built again from the log's beginning.
func (j *judge) dropQueue(v *verdict, why error) {
	v.drop, v.why, v.from = true, why, j.Min
}

// cutAt has the queue cut at a queue offset and built again with the records from a place on.
func (j *judge) cutAt(v *verdict, at messages.QueueOffset, from messages.PhysicalOffset, why error) {
	if at <= v.q.Min() || v.q.PhysicalEnd() < 0 {
		j.dropQueue(v, why)
		return
	}
	v.cut, v.from, v.why = at, from, why
}

// record judges the queues of a sound record.
func (j *judge) record(r *record.Record) error {
	if !messages.TakesQueueOffset(r.SysFlag) {
		return nil
	}
	if !j.floors.isDeleted(r.Topic, r.PhysicalOffset) {
		if err := j.unit(j.verdicts.of(r.Topic, r.QueueID), r, r.QueueOffset); err != nil {
			return err
		}
	}
	if j.params.MultiDispatch {
		return j.multi(r)
	}
	return nil
}

func (j *judge) multi(r *record.Record) error {
	for key, at := range record.MultiQueues(r) {
		if j.floors.isDeleted([]byte(key.Topic), r.PhysicalOffset) {
			continue
		}
		if err := j.unit(j.verdicts.of([]byte(key.Topic), key.QueueID), r, at); err != nil {
			return err
		}
	}
	return nil
}

// unit judges a queue by a record that has a queue offset in it.
func (j *judge) unit(v *verdict, r *record.Record, at messages.QueueOffset) error {
	v.seen = max(v.seen, at+1)
	if v.from >= 0 || at < 0 {
		return nil
	}
	switch {
	case v.q == nil && at == 0:
		v.from = r.PhysicalOffset
	case v.q == nil:
		v.from = j.Min
	case at < v.q.Min() && r.PhysicalOffset < j.floors.begin(v.key.Topic):
	case at < v.q.Min():
		j.dropQueue(v, fmt.Errorf("%w: queue offset %d", errNoBegin, at))
	case at >= v.q.Max():
		return j.missing(v, r, at)
	default:
		return j.compare(v, r, at)
	}
	return nil
}

// missing judges a queue that ends in front of the record's queue offset.
func (j *judge) missing(v *verdict, r *record.Record, at messages.QueueOffset) error {
	end := v.q.PhysicalEnd()
	switch {
	case end < 0:
		v.from = j.Min
	case r.PhysicalOffset < end:
		// A topic that was deleted and made again has older records with higher offsets in the log: they are gone for good.
		u, err := v.unitAt(v.q.Max() - 1)
		if err != nil || Names(j.log, u, v.key, v.q.Max()-1) != nil {
			j.dropQueue(v, fmt.Errorf("%w: queue offset %d at %d", errOutOfOrder, at, r.PhysicalOffset))
		}
	case at == v.q.Max():
		v.from = r.PhysicalOffset
	default:
		v.from = end
	}
	return nil
}

// compare checks that the unit at the record's queue offset names the record, or another one with a right to the place: a
// topic that was made again gives its offsets anew. A unit with another tag than its record, as it is left when only one of the
// two pages on which it stands reaches the disk, would hide the message from those who want the tag.
func (j *judge) compare(v *verdict, r *record.Record, at messages.QueueOffset) error {
	u, err := v.unitAt(at)
	var damage *segments.CorruptionError
	switch {
	case errors.As(err, &damage):
		j.dropQueue(v, err)
		return nil
	case err != nil:
		return err
	case u.PhysicalOffset == r.PhysicalOffset && u.Size == r.Size:
		if j.sameTag(u, r) {
			return nil
		}
	case Names(j.log, u, v.key, at) == nil:
		return nil
	}
	why := fmt.Errorf("%w: queue offset %d names %d, the record is at %d", errWrongUnit, at, u.PhysicalOffset, r.PhysicalOffset)
	if at, err = v.endBelow(at, r.PhysicalOffset); err == nil {
		j.cutAt(v, at, r.PhysicalOffset, why)
	}
	return err
}

// sameTag compares the tag of a unit with its record's, where the record tells it: the place in an extension file, and the time of
// delivery by levels that have been changed since, are the unit's.
func (j *judge) sameTag(u consumequeue.Unit, r *record.Record) bool {
	return ext.IsAddress(u.TagsCode) || r.Lost() || string(r.Topic) == messages.TopicSchedule || u.TagsCode == r.TagsCode(j.delays.Millis)
}

// endBelow returns the queue offset behind the last unit in front of one that ends at or below a place in the log: a unit of
// a damaged record may have any size, and no record could follow it.
func (v *verdict) endBelow(at messages.QueueOffset, place messages.PhysicalOffset) (messages.QueueOffset, error) {
	for ; at > v.q.Min(); at-- {
		u, err := v.unitAt(at - 1)
		if err != nil {
			return 0, err
		}
		if u.End() <= place {
			break
		}
	}
	return at, nil
}

// finish judges what lies behind the last record of each queue, and writes the plan.
func (j *judge) finish() error {
	if err := j.eachQueue(j.behind); err != nil {
		return err
	}
	j.QueuesFrom = min(j.End, max(j.doubtFrom(), j.Min)) // of queues that have gone, too
	j.Queues = nil
	var errs []error
	j.verdicts.each(func(v *verdict) {
		if v.from >= 0 {
			j.QueuesFrom = min(j.QueuesFrom, max(v.from, j.Min))
		}
		if v.q == nil {
			return
		}
		next, err := j.reached(v)
		errs = append(errs, err)
		step := QueueStep{Queue: v.key, Drop: v.drop, Next: next, Cut: v.cut, Why: v.why}
		if step.Cut < 0 && !j.Clean && v.seen > 0 && !v.q.Tidy() {
			step.Cut = v.q.Max() // units of a lost run may lie behind
		}
		if step.Drop || step.Cut >= 0 {
			j.Queues = append(j.Queues, step)
		}
	})
	slices.SortFunc(j.Queues, func(a, b QueueStep) int {
		return cmp.Or(cmp.Compare(a.Queue.Topic, b.Queue.Topic), cmp.Compare(a.Queue.QueueID, b.Queue.QueueID))
	})
	return errors.Join(errs...)
}

// behind judges the units that no record of the scan has confirmed.
func (j *judge) behind(v *verdict) error {
	if v.drop || j.cutShort(v) {
		return nil
	}
	if v.damaged && v.from < 0 && v.seen == 0 {
		v.from = v.q.PhysicalEnd() // its records may all be older than the scan
		if v.from > j.End {
			v.from = j.Min
		}
	}
	if v.q.PhysicalEnd() > j.End {
		to, err := v.q.Search(j.End)
		if err != nil {
			return err
		}
		below, err := v.endBelow(to, j.End)
		if err != nil {
			return err
		}
		if below < to && v.from < 0 {
			v.from = j.Min // what the last units should have named is not known
		}
		if gone, err := j.goneBelow(v, below); below < to && gone || err != nil {
			v.drop, v.why = true, errBehindLog
			return err
		}
		j.shorten(v, below, errBehindLog)
	}
	if v.drop || v.q.PhysicalEnd() <= j.ScanFrom {
		return nil
	}
	return j.unconfirmed(v)
}

// goneBelow tells whether the log has no record any more of the queue in front of a queue offset.
func (j *judge) goneBelow(v *verdict, at messages.QueueOffset) (bool, error) {
	if at <= v.q.Min() {
		return true, nil
	}
	u, err := v.unitAt(at - 1)
	return u.End() <= j.Min, err
}

// shorten makes the queue end at a queue offset; nothing has to be dispatched for that.
func (j *judge) shorten(v *verdict, to messages.QueueOffset, why error) {
	if to <= v.q.Min() {
		v.drop, v.why, v.next = true, why, to
		return
	}
	if v.cut < 0 || to < v.cut {
		v.cut, v.why = to, why
	}
}

// unconfirmed cuts the queue at the first unit of the scanned part that names another record. What names damage stays:
// its reader is told that the message is gone.
func (j *judge) unconfirmed(v *verdict) error {
	at := v.seen
	if at == 0 {
		var err error
		if at, err = v.q.Search(j.ScanFrom); err != nil {
			return err
		}
	}
	end := v.q.Max()
	if v.cut >= 0 {
		end = v.cut
	}
	for at = max(at, v.q.Min()); at < end; at++ {
		u, err := v.unitAt(at)
		if err != nil {
			return err
		}
		if errors.Is(Names(j.log, u, v.key, at), ErrOtherRecord) {
			j.shorten(v, at, fmt.Errorf("%w: queue offset %d", errNoRecord, at))
			return nil
		}
	}
	return nil
}
