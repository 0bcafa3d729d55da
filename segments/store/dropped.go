package store

import (
	"errors"
	"fmt"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/vfs"
)

// errInterrupted is what the marker of queues that are not to be believed says while they are built again.
var errInterrupted = errors.New("queues were being built again")

// noteQueues makes durable what would be lost with the queues that are about to be cut: where they go on when the log has none of their
// records any more, as their consumers are past their offsets; and that queues have to be built again from a place that the next
// start would not read, which may be less than this one has read: all of the log is read without queues, and when somebody wants it.
func (s *Store) noteQueues(p *Plan) error {
	if err := s.noteNext(p); err != nil {
		return err
	}
	if p.QueuesFrom >= min(p.NextScan, p.End) {
		return nil
	}
	return s.must(ErrNoNote, s.Params.UnprovenQueuesPath(), func() error { return s.queueDoubt.note(p.QueuesFrom, errInterrupted) })
}

// noteNext notes where queues go on. What stands in the file already takes no room, but who wrote it need not have made its name durable.
func (s *Store) noteNext(p *Plan) error {
	stands, changed := false, false
	for _, step := range p.Queues {
		switch {
		case step.Next <= 0:
		case s.setFloor(step.Queue, step.Next):
			changed = true
		default:
			stands = true
		}
	}
	switch {
	case changed:
		return s.must(ErrNoNote, s.Params.FloorsPath(), s.saveFloors)
	case stands:
		return s.Disk.SyncDir(s.Params.Dir)
	}
	return nil
}

// beginDropped has the queues go on where they were of which the log has no record.
func (s *Store) beginDropped(p *Plan) error {
	for _, step := range p.Queues {
		if step.Next <= 0 {
			continue
		}
		q, err := s.Queues.Create(step.Queue)
		if err != nil {
			return fmt.Errorf("begin a dropped queue: %w", err)
		}
		if q.PhysicalEnd() >= 0 || q.Max() > 0 {
			continue
		}
		if err := q.Begin(step.Next); err != nil {
			return err
		}
		s.tell(Event{What: EmptiedQueue, Queue: step.Queue, From: int64(step.Next)})
	}
	return nil
}

// forgetNoted takes out where queues would have gone on of which the log has messages: they say it.
func (s *Store) forgetNoted(p *Plan) error {
	stale := false
	for topic, queues := range s.floors.Queues {
		for id := range queues {
			q := s.Queues.Lookup(messages.QueueKey{Topic: topic, QueueID: id})
			if q != nil && q.PhysicalEnd() > max(p.Min, 0) {
				delete(queues, id)
				stale = true
			}
		}
	}
	if !stale || s.unwritten {
		return nil
	}
	if err := s.saveFloors(); !errors.Is(err, vfs.ErrNoSpace) { // nobody asks for them while the files are there
		return err
	}
	return nil
}

// reached is where a dropped queue goes on when nothing is built of it; 0 when the log has a record of it, which says so itself.
func (j *judge) reached(v *verdict) (messages.QueueOffset, error) {
	switch {
	case !v.drop:
		return 0, nil
	case v.next >= 0:
		return max(v.next, j.floors.next(v.key)), nil // no note is of its topic's life before the last deletion
	case v.seen > 0:
		return 0, nil
	}
	if there, err := j.inLog(v); there || err != nil {
		return 0, err
	}
	at, err := v.q.Reached()
	return max(at, j.floors.next(v.key)), err
}

// cutShort drops a queue that was noted to go on behind what its files have, when its records have gone: there was no room for the units in between.
func (j *judge) cutShort(v *verdict) bool {
	next := j.floors.next(v.key)
	if next <= v.q.Max() || v.seen > 0 || v.q.PhysicalEnd() > max(j.Min, 0) {
		return false
	}
	v.drop, v.next, v.why, v.from = true, next, errCutShort, -1
	return true
}

// maxNamed is how many of the last units of a dropped queue are looked at for one that names its record.
const maxNamed = 32

// inLog tells whether the log is known to have a record of those that a dropped queue is built from.
func (j *judge) inLog(v *verdict) (there bool, err error) {
	looked := 0
	err = v.q.Standing(func(at messages.QueueOffset, u consumequeue.Unit) bool {
		there = u.Valid() && u.PhysicalOffset >= max(j.Min, v.from, 0) && u.End() <= j.End && Names(j.log, u, v.key, at) == nil
		looked++
		return !there && looked < maxNamed
	})
	return there, err
}
