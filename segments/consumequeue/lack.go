package consumequeue

import "github.com/actormq/actormq/messages"

// Lack notes that the queue lacks units of records that were dispatched, the last of which has the queue offset in front of next and ends at a physical
// offset: it does not grow until they are read again. With 0 it lacks none. Builder only.
func (q *Queue) Lack(next messages.QueueOffset, end messages.PhysicalOffset) {
	q.lackEnd.Store(int64(end))
	q.lackNext.Store(int64(next))
}

// Lacks tells whether units are missing behind the last one. Safe for any goroutine.
func (q *Queue) Lacks() bool {
	_, end := q.GoesOn()
	return end > q.PhysicalEnd()
}

// GoesOn is the queue offset of the next message, and the physical offset behind the last one's record, -1 when there is none: Max and PhysicalEnd, unless
// the queue lacks units. End is never older than next. Safe for any goroutine.
func (q *Queue) GoesOn() (next messages.QueueOffset, end messages.PhysicalOffset) {
	next, end = messages.QueueOffset(q.lackNext.Load()), messages.PhysicalOffset(q.lackEnd.Load())
	own := q.Max() // in front of its end, which is stored before it
	if ownEnd := q.PhysicalEnd(); next <= 0 || end <= ownEnd {
		return own, ownEnd
	}
	return next, end
}
