package cleaner

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
)

// topic is what a round finds out of a topic with a retention of its own.
type topic struct {
	queues []*consumequeue.Queue
	begin  messages.PhysicalOffset // of its first message that has not expired; the end of time without one
}

// topics looks at the topics with a retention of their own, and marks the segments that they keep. Store times do not go back in
// the log, so that what is in front of a topic's first message that has not expired has expired, in all of its queues.
func (r *round) topics(ctx context.Context) (map[string]*topic, error) {
	found := map[string]*topic{}
	var errs []error
	for _, q := range r.cfg.Queues.InOrder(func(q *consumequeue.Queue) bool { return r.policy.Topics[q.Key().Topic] > 0 }) {
		name := q.Key().Topic
		t := found[name]
		if t == nil {
			t = &topic{begin: math.MaxInt64}
			found[name] = t
		}
		t.queues = append(t.queues, q)
		begin, err := r.beginOf(ctx, q)
		if ctx.Err() != nil {
			return nil, nil
		}
		if err != nil {
			begin = 0 // nothing of it has expired, as far as is known
			errs = append(errs, fmt.Errorf("what has expired of %s/%d: %w", name, q.Key().QueueID, err))
		}
		t.begin = min(t.begin, begin)
	}
	for name, t := range found {
		for i := range r.plan.Segments {
			s := &r.plan.Segments[i]
			s.Kept = s.Kept || r.policy.Topics[name] > r.policy.Reserved && s.End > t.begin
		}
	}
	return found, errors.Join(errs...)
}

// beginOf is where the first message of a queue stands that has not expired.
func (r *round) beginOf(ctx context.Context, q *consumequeue.Queue) (messages.PhysicalOffset, error) {
	at, err := r.cfg.Since(ctx, q, r.plan.Now.Add(-r.policy.Topics[q.Key().Topic]).UnixMilli())
	if errors.Is(err, consumequeue.ErrDestroyed) {
		return math.MaxInt64, nil
	}
	if err != nil {
		return 0, err
	}
	return placeFrom(q, at)
}

// expire makes the queues of topics begin where their messages have not expired, and deletes the files in front of that.
func (r *round) expire(ctx context.Context, topics map[string]*topic) error {
	below := map[string]messages.PhysicalOffset{}
	for name, t := range topics {
		// What is behind may not be in its queue yet, so that it was not looked at.
		t.begin = min(t.begin, r.plan.Safe)
		for _, q := range t.queues {
			at, err := q.Search(t.begin)
			if err != nil {
				return fmt.Errorf("where %s/%d begins: %w", name, q.Key().QueueID, err)
			}
			if at > q.Min() {
				below[name] = t.begin
			}
		}
	}
	if len(below) == 0 {
		return nil
	}
	if err := r.cfg.Expire(ctx, below); err != nil {
		return err
	}
	for name, begin := range below {
		for _, q := range topics[name].queues {
			if err := q.SetMin(begin); err != nil {
				return fmt.Errorf("raise the minimum of %s/%d: %w", name, q.Key().QueueID, err)
			}
			if goOn, err := r.removeQueueFiles(ctx, q); err != nil || !goOn {
				return err
			}
		}
	}
	return nil
}
