package cleaner

import (
	"errors"
	"fmt"
	"math"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/consumequeue"
)

// markUnread marks the oldest segments that hold something that a consumer group has still to read. When that can't be found out,
// all of them. Topics with a retention of their own keep it too.
func (r *round) markUnread(topics map[string]*topic) error {
	if !r.policy.KeepUnread {
		r.done.WaitsFor = ""
		return nil
	}
	first, by, err := r.unread(topics)
	for i := range r.plan.Segments {
		r.plan.Segments[i].Unread = r.plan.Segments[i].End > first
	}
	if oldest := r.plan.Segments; len(oldest) == 0 || !oldest[0].Unread || !r.policy.expired(oldest[0], r.plan.Now) || r.policy.pressed(r.plan) {
		by = ""
	}
	if by != r.done.WaitsFor && by != "" {
		r.cfg.Logger.Info().Str("for", by).Int64("offset", int64(first)).
			Msg("expired commit-log files are kept: a consumer group has not read them")
	}
	r.done.WaitsFor = by
	return err
}

// unread is where the first message stands that a group has still to read, and who that is. Topics begin no later than what is
// unread of them, unless the disk is too full.
func (r *round) unread(topics map[string]*topic) (first messages.PhysicalOffset, by string, err error) {
	pressed := r.policy.pressed(r.plan)
	keep := func(t *topic, at messages.PhysicalOffset) {
		if t != nil && !pressed {
			t.begin = min(t.begin, at)
		}
	}
	readers, ok := r.cfg.Readers(r.policy.GroupTimeout)
	defer func() {
		if !ok || err != nil {
			for _, t := range topics {
				keep(t, 0)
			}
		}
	}()
	if !ok {
		return 0, "all: nobody knows yet how far they are", nil
	}
	first = math.MaxInt64
	for key, reader := range readers {
		q := r.cfg.Queues.Lookup(key)
		if q == nil {
			continue
		}
		at, err := placeFrom(q, reader.Next)
		if err != nil {
			return 0, "", fmt.Errorf("how far %s has read %s/%d: %w", reader.Group, key.Topic, key.QueueID, err)
		}
		keep(topics[key.Topic], at)
		if at < first {
			first, by = at, fmt.Sprintf("%s in %s/%d", reader.Group, key.Topic, key.QueueID)
		}
	}
	return first, by, nil
}

// placeFrom is where in the log the first message of a queue stands at or behind an offset, the end of time without one.
func placeFrom(q *consumequeue.Queue, next messages.QueueOffset) (messages.PhysicalOffset, error) {
	lo, hi := q.Range()
	for at := max(next, lo); at < hi; at++ {
		var one [1]consumequeue.Unit
		_, err := q.Read(at, one[:])
		var damage *segments.CorruptionError
		switch {
		case err == nil:
			return one[0].PhysicalOffset, nil
		case errors.Is(err, consumequeue.ErrDestroyed):
			return math.MaxInt64, nil
		case !errors.As(err, &damage):
			return 0, err
		}
	}
	return math.MaxInt64, nil
}
