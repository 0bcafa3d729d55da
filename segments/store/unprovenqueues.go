package store

import (
	"errors"
	"path"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/vfs"
)

// errUnproven is why a queue is built again from a place on that nobody has found wrong.
var errUnproven = errors.New("a sync of a consume queue had failed, or a start was interrupted that built queues again")

// unsound has all queues looked at, and only those built again that are damaged.
const unsound = proven - 1

// UnprovenQueuesPath is the marker that consume queues are not to be believed as they can be read: its number is the physical offset
// from which on their units may be missing on the disk, since a sync has failed: a system says that just once, and what it shows of a file afterwards
// is not what the disk holds. RocketMQ ignores it; so it counts whoever has closed the store since, and however.
func (p Params) UnprovenQueuesPath() string { return path.Join(p.Dir, "unprovenqueues") }

// MarkQueuesDamaged has the next start, also one after a clean stop, look at all consume queues from end to end, and build again from the log
// what is not sound. For damage that is met while the store is open. When it returns nil that survives a power cut. Safe for concurrent use.
func (s *Store) MarkQueuesDamaged(cause error) error { return s.queueDoubt.mark(unsound, cause) }

// noteUnsynced keeps for the next start that queues are not durable, those that an earlier process has written too. After a sync that has failed nothing
// else tells, however many succeed later; one that has not come to pass for want of room the queue builder does later.
func (s *Store) noteUnsynced(p *Plan, cause error) error {
	mark := func() error { return s.queueDoubt.mark(min(p.ScanFrom, p.QueuesFrom), cause) }
	if errors.Is(cause, consumequeue.ErrUnsynced) {
		if err := s.must(ErrNoNote, s.queueDoubt.path, mark); err != nil {
			return errors.Join(err, cause)
		}
		return nil
	}
	if err := mark(); err != nil && !errors.Is(err, vfs.ErrNoSpace) {
		return errors.Join(cause, err)
	}
	return nil
}

// queuesUnproven is told of a sync of a queue that has failed.
func (s *Store) queuesUnproven(from messages.PhysicalOffset, cause error) {
	if err := s.queueDoubt.mark(from, cause); err != nil && s.options.OnUnmarked != nil {
		s.options.OnUnmarked(errors.Join(err, cause))
	}
}

// errLacking is what the marker says of queues that were under repair.
var errLacking = errors.New("a consume queue lacked units when the store was closed")

// noteLacking has the next start build from the log what queues still lack, as a clean stop says that they have everything. Where they go on when it has
// left the log is noted already.
func (s *Store) noteLacking() error {
	var errs []error
	s.Queues.Each(func(_ messages.QueueKey, q *consumequeue.Queue) {
		if _, end := q.GoesOn(); q.Lacks() && end > s.Log.Min() {
			errs = append(errs, s.queueDoubt.mark(q.PhysicalEnd(), errLacking))
		}
	})
	return errors.Join(errs...)
}
