package store

import (
	"errors"
	"fmt"
	"maps"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/vfs"
)

// apply does what the plan says. It can be interrupted anywhere: what it has done so far does not change what the next
// plan finds.
func (s *Store) apply(p *Plan) error {
	steps := []func(*Plan) error{
		s.cutLog, s.noteQueues, s.cutQueues, s.noteIndex, s.cutIndex, s.dispatch, s.beginDropped, s.syncRecovered, s.forgetNoted, s.raiseMins,
	}
	for _, step := range steps {
		if err := step(p); err != nil {
			return fmt.Errorf("recovery: %w", err)
		}
	}
	return nil
}

// cutLog makes the log end at the plan's end: everything behind is copied aside, and then gone from the disk, the last
// segment first. What is left is durable.
func (s *Store) cutLog(p *Plan) error {
	q := &quarantine{disk: s.Disk, dir: s.Params.QuarantineDir(), limit: s.Params.QuarantineBytes, now: s.now()}
	if err := s.closeHoles(q, p); err != nil {
		return err
	}
	cut := s.Log.CutTo(p.End, p.LastStoreMs)
	for i := len(cut) - 1; i >= 0; i-- {
		if err := s.removeSegment(q, cut[i], p.Remove[i]); err != nil {
			return errors.Join(err, retireAll(cut[:i]))
		}
	}
	if len(cut) > 0 {
		if err := s.Disk.SyncDir(s.Log.Dir()); err != nil {
			return err
		}
	}
	if err := s.zeroTail(q, p); err != nil {
		return err
	}
	s.Report.Quarantine = q.run
	return s.syncLog(p.ScanFrom)
}

// removeSegment deletes a whole segment behind the end.
func (s *Store) removeSegment(q *quarantine, seg *segments.Segment, r Removal) error {
	err := s.changing(RemovedSegment, Span{From: r.Start, To: r.Start + messages.PhysicalOffset(seg.Size())})
	if err == nil {
		s.keep(q, seg, r.Used)
	}
	seg.Retire(func(e error) { err = errors.Join(err, e) })
	if err == nil {
		err = s.Disk.Remove(r.Path)
	}
	if err != nil {
		return err
	}
	s.tell(Event{What: RemovedSegment, Path: r.Path})
	return nil
}

func retireAll(segs []*segments.Segment) error {
	var errs []error
	for _, seg := range segs {
		seg.Retire(func(err error) { errs = append(errs, err) })
	}
	return errors.Join(errs...)
}

// zeroTail clears what is behind the end in its segment; syncLog makes that durable.
func (s *Store) zeroTail(q *quarantine, p *Plan) error {
	if p.Tail.Empty() {
		return nil
	}
	if err := s.changing(CutTail, p.Tail); err != nil {
		return err
	}
	seg := s.Log.View().Last()
	s.keep(q, seg, p.Tail)
	err := vfs.Guard(seg.Path(), func() error {
		clear(seg.Data()[int64(p.Tail.From)-seg.Start() : int64(p.Tail.To)-seg.Start()])
		return nil
	})
	if err != nil {
		return fmt.Errorf("clear %s behind the end: %w", seg.Path(), err)
	}
	s.tell(Event{What: CutTail, Path: q.run, From: int64(p.Tail.From), To: int64(p.Tail.To), Err: p.Stop})
	return nil
}

// keep copies what is about to be cut. That there is no room for the copy is reported and does not keep the store closed.
func (s *Store) keep(q *quarantine, seg *segments.Segment, span Span) bool {
	if span.Empty() {
		return true
	}
	err := q.keep(seg, span)
	if err != nil {
		s.tell(Event{What: NotKept, Path: seg.Path(), From: int64(span.From), To: int64(span.To), Err: err})
	}
	return err == nil
}

// syncLog makes the scanned part of the log durable: after a kill it may be in the page cache only, and who goes on from
// here takes everything below the end for flushed. When that fails the next Open must not try the same again, which would succeed
// without having written anything: it finds the log unproven.
func (s *Store) syncLog(from messages.PhysicalOffset) error {
	view := s.Log.View()
	for i := range view.Len() {
		seg := view.At(i)
		if seg.Start()+seg.Size() <= int64(from) {
			continue
		}
		if err := seg.DataSync(); err != nil {
			err = fmt.Errorf("sync %s: %w", seg.Path(), err)
			return errors.Join(err, MarkUnproven(s.Disk, s.Params, messages.PhysicalOffset(seg.Start()), err))
		}
	}
	return nil
}

// cutQueues takes the consume queues back to what the plan believes of them.
func (s *Store) cutQueues(p *Plan) error {
	for _, step := range p.Queues {
		q := s.Queues.Lookup(step.Queue)
		if q == nil {
			continue
		}
		if err := s.cutQueue(q, step); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) cutQueue(q *consumequeue.Queue, step QueueStep) error {
	if step.Drop {
		s.tell(Event{What: DroppedQueue, Queue: step.Queue, Err: step.Why})
		return q.Destroy()
	}
	if step.Why == nil && s.scratch {
		return nil
	}
	if step.Why != nil {
		s.tell(Event{What: CutQueue, Queue: step.Queue, From: int64(step.Cut), Err: step.Why})
	}
	return q.Truncate(step.Cut)
}

// cutIndex takes the index back to what the plan believes of it.
func (s *Store) cutIndex(p *Plan) error {
	if s.Index == nil {
		return nil
	}
	if p.Index.DropDamaged {
		for _, d := range s.Index.Damaged() {
			s.tell(Event{What: DroppedIndex, Path: d.Path, Err: d.Err})
		}
		if err := s.Index.DropDamaged(); err != nil {
			return err
		}
	}
	if p.Index.Cut < 0 {
		return nil
	}
	if before := s.Index.EndPhysical(); before >= p.Index.Cut {
		s.tell(Event{What: CutIndex, From: int64(p.Index.Cut)})
	}
	return s.Index.Truncate(p.Index.Cut)
}

// syncQueues makes the queues durable; after an unclean stop also what was found of them.
func (s *Store) syncQueues(p *Plan) error {
	sync := s.Queues.Sync
	if p != nil && !p.Clean && !s.scratch {
		sync = func() error { return s.Queues.SyncAll(min(p.ScanFrom, p.QueuesFrom)) }
	}
	return sync()
}

// syncIndex makes the index durable.
func (s *Store) syncIndex() error {
	if s.Index == nil {
		return nil
	}
	err := s.Index.Flush()
	s.indexDurable = err == nil
	return err
}

// raiseMins makes each queue begin at the first record that the log still has (spec/store.md §8.7), and that has not expired.
func (s *Store) raiseMins(p *Plan) error {
	maps.DeleteFunc(s.floors.Expired, func(_ string, f topicFloor) bool { return messages.PhysicalOffset(f.Below) > p.End })
	if p.Min <= 0 && len(s.floors.Expired) == 0 {
		return nil
	}
	var err error
	s.Queues.Each(func(key messages.QueueKey, q *consumequeue.Queue) {
		if least := max(p.Min, s.floors.begin(key.Topic)); err == nil && least > 0 {
			err = q.SetMin(least)
		}
	})
	return err
}
