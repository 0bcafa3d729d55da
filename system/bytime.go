package system

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/consumequeue"
)

// OffsetByTime finds an offset of a queue by store timestamp (ms); it does not depend on file times. TimeLower: the first
// message stored at or after the time, MaxOffset when there is none. TimeNearest: RocketMQ's rule (spec/store.md §7.6).
func (s *Store) OffsetByTime(
	ctx context.Context, key messages.QueueKey, timestampMs int64, boundary messages.TimeBoundary,
) (messages.QueueOffset, error) {
	if err := s.readable(); err != nil {
		return 0, err
	}
	q := s.queues.Lookup(key)
	if q == nil {
		return 0, nil
	}
	w := timeWindow{wanted: timestampMs}
	w.lo, w.hi = q.Range()
	from, end := w.lo, w.hi
	if err := s.lowerBound(ctx, q, &w); err != nil || boundary == messages.TimeLower {
		return w.lo, err
	}
	return s.nearest(q, from, end, &w)
}

// since is the first offset of a queue whose message is not older than the time, near the queue's beginning most likely.
func (s *Store) since(ctx context.Context, q *consumequeue.Queue, timestampMs int64) (messages.QueueOffset, error) {
	w := timeWindow{wanted: timestampMs}
	w.lo, w.hi = q.Range()
	for at, step := w.lo, messages.QueueOffset(1); at < w.hi; at, step = w.lo+step, step*2 {
		found, err := s.timeFrom(q, at, w.hi)
		if err != nil {
			return 0, fmt.Errorf("search by time: %w", err)
		}
		if w.note(at, found); found.ms >= timestampMs {
			break
		}
	}
	err := s.lowerBound(ctx, q, &w)
	return w.lo, err
}

// timeWindow is what a search by time knows: each message in front of lo is older than what is wanted, none from hi on is.
type timeWindow struct {
	wanted int64 // ms
	lo, hi messages.QueueOffset

	below, above timed // the nearest messages outside that were looked at
}

// timed is a place of a queue with the store time (ms) of its message. Without known the time is not that of a message.
type timed struct {
	at    messages.QueueOffset
	ms    int64
	known bool
}

// note takes in what the message at a place, or the next one that is there, says.
func (w *timeWindow) note(place messages.QueueOffset, found timed) {
	if found.ms < w.wanted {
		w.lo, w.below = found.at+1, found
	} else {
		w.hi, w.above = place, found
	}
}

// evenWindow is so few messages that they may well have come evenly. In a larger window the middle is the better guess: every
// search looks at the same ones first, so that they are in the processor's cache.
const evenWindow = 1024

// guess is where to look next: the middle, and in a small window where the time would be if the messages between two that are
// known had come evenly, unless that did not halve the window before.
func (w *timeWindow) guess(halved bool) messages.QueueOffset {
	a, b := w.below, w.above
	if w.hi-w.lo > evenWindow || !halved || !a.known || !b.known || b.ms <= a.ms {
		return w.lo + (w.hi-w.lo)/2
	}
	part := (float64(w.wanted-a.ms) - 0.5) / float64(b.ms-a.ms) // where the millisecond begins
	at := a.at + messages.QueueOffset(part*float64(b.at-a.at))
	return min(max(at, w.lo), w.hi-1)
}

// lowerBound closes the window: lo is the first offset whose message is not older than what is wanted. Messages whose segment
// has been deleted count as older; a place whose message is lost counts as the next one that is there. The newest message is
// looked at first: it is in memory, and often all that a caller asks about. At most two looks halve the window.
func (s *Store) lowerBound(ctx context.Context, q *consumequeue.Queue, w *timeWindow) error {
	halved := true
	for newest := true; w.lo < w.hi; newest = false {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		place := w.guess(halved)
		if newest {
			place = w.hi - 1
		}
		found, err := s.timeFrom(q, place, w.hi)
		if err != nil {
			return fmt.Errorf("search by time: %w", err)
		}
		before := w.hi - w.lo
		w.note(place, found)
		halved = newest || w.hi-w.lo <= before/2
	}
	return nil
}

// timeFrom is the store time of the first message that is there, at or behind an offset and in front of end; without one,
// the end of time. One that has been deleted is as old as can be; one whose segment is missing in the middle is lost.
func (s *Store) timeFrom(q *consumequeue.Queue, at, end messages.QueueOffset) (timed, error) {
	for ; at < end; at++ {
		ms, err := s.storeTime(q, at)
		switch {
		case err == nil:
			return timed{at, ms, true}, nil
		case errors.Is(err, commitlog.ErrNotInLog) && s.deleted(q, at):
			return timed{at: at, ms: math.MinInt64}, nil
		case !errors.Is(err, ErrNoMessage):
			return timed{}, err
		}
	}
	return timed{at: at, ms: math.MaxInt64}, nil
}

// deleted tells whether a message lay in front of the log.
func (s *Store) deleted(q *consumequeue.Queue, at messages.QueueOffset) bool {
	var one [1]consumequeue.Unit
	n, err := q.Read(at, one[:])
	return err != nil || n == 0 || one[0].PhysicalOffset < s.log.Min()
}

// nearest picks between the end of a search and the message before it: the nearer one, the earlier of two equally near.
func (s *Store) nearest(q *consumequeue.Queue, from, end messages.QueueOffset, w *timeWindow) (messages.QueueOffset, error) {
	at := w.lo
	if from == end {
		return 0, nil
	}
	if at == end {
		return end - 1, nil
	}
	right, err := s.known(q, at, w.above)
	if err != nil || at == from || right == w.wanted {
		return at, err
	}
	left, err := s.known(q, at-1, w.below)
	if err != nil {
		return at, nil //nolint:nilerr // the neighbour has been deleted meanwhile: the lower bound is the nearest
	}
	if w.wanted-left > right-w.wanted {
		return at, nil
	}
	return at - 1, nil
}

// known is the store time (ms) of a message, which the search may have looked at.
func (s *Store) known(q *consumequeue.Queue, at messages.QueueOffset, looked timed) (int64, error) {
	if looked.known && looked.at == at {
		return looked.ms, nil
	}
	return s.storeTime(q, at)
}
