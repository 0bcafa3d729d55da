package delay

import (
	"errors"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/consumequeue"
)

// read reads units from next on. With none there, the level is idle, or false comes back and a pause has begun. An offset
// outside of the queue goes to its nearest end (spec/store.md §10.4), a damaged unit is left out.
func (l *level) read(dst []consumequeue.Unit) (int, bool) {
	for {
		if l.queue == nil && !l.find() {
			return 0, false
		}
		n, err := l.queue.Read(l.next, dst)
		var damage *segments.CorruptionError
		switch {
		case err == nil && n > 0:
			return n, true
		case err == nil && len(l.todo) > 0:
			return 0, true
		case err == nil:
			if l.waitsForArrival(func() bool { return l.queue.Max() > l.next }) {
				return 0, true
			}
		case errors.Is(err, consumequeue.ErrBelowMin):
			l.move(l.queue.Min(), err)
		case errors.Is(err, consumequeue.ErrAboveMax):
			l.move(l.queue.Max(), err)
		case errors.Is(err, consumequeue.ErrChanged):
		case errors.Is(err, consumequeue.ErrDestroyed):
			l.queue = nil
			l.move(0, err)
		case errors.As(err, &damage):
			l.move(l.next+1, err)
		default:
			l.log.Error().Err(err).Int64("queue_offset", int64(l.next)).Msg("a schedule queue can't be read; it is tried again")
			if len(l.todo) == 0 {
				l.rest()
			}
			return 0, false
		}
		if len(l.todo) > 0 {
			return 0, false // those first: offsets go on in order
		}
	}
}

// find looks the queue up; without one the level is idle.
func (l *level) find() bool {
	for {
		if l.queue = l.cfg.Table.Lookup(l.key); l.queue != nil {
			return true
		}
		if l.waitsForArrival(func() bool { return l.cfg.Table.Lookup(l.key) != nil }) {
			return false
		}
	}
}

// waitsForArrival makes the level idle, unless something has arrived. What becomes readable after the look finds the level
// idle, and is told by MessagesArrived.
func (l *level) waitsForArrival(arrived func() bool) bool {
	l.idle.Store(true)
	if !arrived() {
		return true
	}
	// Whoever has taken the mark has sent a wake as well, which finds nothing to do.
	l.idle.Store(false)
	return false
}

// move goes on at another offset; nothing is in flight or to be done.
func (l *level) move(to messages.QueueOffset, why error) {
	if len(l.todo) > 0 {
		return
	}
	l.log.Warn().Err(why).Int64("from", int64(l.next)).Int64("to", int64(to)).Msg("a delay level goes on at another offset")
	l.next = to
	l.reach(to)
}
