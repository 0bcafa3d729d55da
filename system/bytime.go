package system

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
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
	r := timeReader{store: s, units: q.Glance()}
	defer r.close()
	var at messages.QueueOffset
	err := vfs.Guard("search by time", func() (err error) {
		at, err = r.search(ctx, &w, boundary)
		return err
	})
	return at, err
}

// timeReader reads the store times of messages of a queue, here and there. It keeps the segment and the file of its last look.
type timeReader struct {
	store *Store
	units consumequeue.Glance
	held  commitlog.Slice // from the beginning of a segment on
	start messages.PhysicalOffset
}

func (r *timeReader) close() {
	r.units.Close()
	r.held.Release()
}

func (r *timeReader) search(ctx context.Context, w *timeWindow, boundary messages.TimeBoundary) (messages.QueueOffset, error) {
	from, end := w.lo, w.hi
	if err := r.lowerBound(ctx, w); err != nil || boundary == messages.TimeLower {
		return w.lo, err
	}
	return r.nearest(from, end, w)
}

// time is the store time (ms) of a message; the errors are those of Store.StoreTime. It may fault.
func (r *timeReader) time(at messages.QueueOffset) (int64, error) {
	var one [1]consumequeue.Unit
	n, err := r.units.At(at, &one)
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, fmt.Errorf("queue offset %d: %w", at, ErrNoMessage)
	}
	off := one[0].PhysicalOffset
	if i := off - r.start; i >= 0 && i < messages.PhysicalOffset(len(r.held.Bytes)) {
		if ms, ok := record.StoreTimestamp(r.held.Bytes[i:], off); ok {
			return ms, nil
		}
	}
	ms, err := r.store.timeOf(off)
	if err == nil {
		r.hold(off)
	}
	return ms, err
}

// hold takes the segment that has an offset.
func (r *timeReader) hold(off messages.PhysicalOffset) {
	r.held.Release()
	r.start = r.store.log.SegmentStart(off)
	r.held, _ = r.store.log.ReadFrom(r.start) // without it the next look tells why
}

// since is the first offset of a queue whose message is not older than the time, near the queue's beginning most likely.
func (s *Store) since(ctx context.Context, q *consumequeue.Queue, timestampMs int64) (messages.QueueOffset, error) {
	w := timeWindow{wanted: timestampMs}
	w.lo, w.hi = q.Range()
	r := timeReader{store: s, units: q.Glance()}
	defer r.close()
	err := vfs.Guard("search by time", func() error {
		for at, step := w.lo, messages.QueueOffset(1); at < w.hi; at, step = w.lo+step, step*2 {
			found, err := r.timeFrom(at, w.hi)
			if err != nil {
				return fmt.Errorf("search by time: %w", err)
			}
			if w.note(at, found); found.ms >= timestampMs {
				break
			}
		}
		return r.lowerBound(ctx, &w)
	})
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
func (r *timeReader) lowerBound(ctx context.Context, w *timeWindow) error {
	halved := true
	for newest := true; w.lo < w.hi; newest = false {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		place := w.guess(halved)
		if newest {
			place = w.hi - 1
		}
		found, err := r.timeFrom(place, w.hi)
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
func (r *timeReader) timeFrom(at, end messages.QueueOffset) (timed, error) {
	for ; at < end; at++ {
		ms, err := r.time(at)
		switch {
		case err == nil:
			return timed{at, ms, true}, nil
		case errors.Is(err, commitlog.ErrNotInLog) && r.deleted(at):
			return timed{at: at, ms: math.MinInt64}, nil
		case !errors.Is(err, ErrNoMessage):
			return timed{}, err
		}
	}
	return timed{at: at, ms: math.MaxInt64}, nil
}

// deleted tells whether a message lay in front of the log.
func (r *timeReader) deleted(at messages.QueueOffset) bool {
	var one [1]consumequeue.Unit
	n, err := r.units.At(at, &one)
	return err != nil || n == 0 || one[0].PhysicalOffset < r.store.log.Min()
}

// nearest picks between the end of a search and the message before it: the nearer one, the earlier of two equally near.
func (r *timeReader) nearest(from, end messages.QueueOffset, w *timeWindow) (messages.QueueOffset, error) {
	at := w.lo
	if from == end {
		return 0, nil
	}
	if at == end {
		return end - 1, nil
	}
	right, err := r.known(at, w.above)
	if err != nil || at == from || right == w.wanted {
		return at, err
	}
	left, err := r.known(at-1, w.below)
	if err != nil {
		return at, nil //nolint:nilerr // the neighbour has been deleted meanwhile: the lower bound is the nearest
	}
	if w.wanted-left > right-w.wanted {
		return at, nil
	}
	return at - 1, nil
}

// known is the store time (ms) of a message, which the search may have looked at.
func (r *timeReader) known(at messages.QueueOffset, looked timed) (int64, error) {
	if looked.known && looked.at == at {
		return looked.ms, nil
	}
	return r.time(at)
}
