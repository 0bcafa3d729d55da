package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/actormq/actormq/cmd/actormq/internal/tools"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/client"
)

// reader reads a topic. It belongs to one goroutine, which also does all the printing.
type reader struct {
	client     *client.Client
	flags      consumeFlags
	from       start
	tags       []string
	out, notes io.Writer

	cursors []*cursor
	printed int64
}

// source is a queue and what is wanted of it; it does not change once it has been placed.
type source struct {
	client.Queue
	sinceMs int64 // messages that were stored before are left out
}

// cursor is how far a queue has been read.
type cursor struct {
	source
	next      int64 // where the next pull begins
	end       int64 // where the queue ended when reading began
	ready     []messages.StoredMessage
	committed int64 // -1: nothing
}

// done is the offset before which all is printed.
func (c *cursor) done() int64 {
	if len(c.ready) > 0 {
		return int64(c.ready[0].QueueOffset)
	}
	return c.next
}

// open finds the queues and where to begin in each.
func (r *reader) open(ctx context.Context) error {
	route, err := r.client.Route(ctx, r.flags.topic)
	if client.HasCode(err, remoting.ResponseTopicNotExist) {
		return statusError{statusNotFound, fmt.Errorf("topic %s does not exist", r.flags.topic)}
	}
	if err != nil {
		return err
	}
	queues, err := client.ReadQueues(route, r.flags.topic)
	if err == nil && len(queues) == 0 {
		err = fmt.Errorf("topic %s has no queue that can be read", r.flags.topic)
	}
	if err == nil {
		queues, err = onlyQueue(queues, r.flags.queue)
	}
	if err != nil {
		return err
	}
	cursors := make([]*cursor, 0, len(queues))
	for _, q := range queues {
		c := &cursor{source: source{Queue: q}, committed: -1}
		if err := r.place(ctx, c); err != nil {
			return err
		}
		cursors = append(cursors, c)
	}
	r.cursors = cursors // not before: what has not been placed must not be committed
	return nil
}

// place sets where a queue begins and ends.
func (r *reader) place(ctx context.Context, c *cursor) error {
	first, err := r.client.MinOffset(ctx, c.Queue)
	if err != nil {
		return err
	}
	if c.end, err = r.client.MaxOffset(ctx, c.Queue); err != nil {
		return err
	}
	c.end = max(c.end, first)
	at, known, err := r.groupOffset(ctx, c)
	if err == nil && !known {
		at, err = r.begin(ctx, c)
	}
	if err != nil {
		return err
	}
	c.next = min(max(at, first), c.end)
	if known {
		c.committed = at
	}
	if known && c.next != at {
		r.note(c.Queue, "the group's offset %d is not there, going on from %d", at, c.next)
	}
	return nil
}

// begin is where --from says that a queue begins.
func (r *reader) begin(ctx context.Context, c *cursor) (int64, error) {
	switch {
	case r.from.last:
		return c.end, nil
	case r.from.timeMs > 0:
		c.sinceMs = r.from.timeMs
		return r.client.OffsetFrom(ctx, c.Queue, r.from.timeMs)
	}
	return r.from.offset, nil
}

// groupOffset is where the group goes on; false when it has not begun yet. Brokers say 0 also of a group that they do not know
// (spec/remoting.md §11.1): that matters only when --from says something else.
func (r *reader) groupOffset(ctx context.Context, c *cursor) (int64, bool, error) {
	if r.flags.group == "" {
		return 0, false, nil
	}
	at, err := r.client.GroupOffset(ctx, c.Queue, r.flags.group)
	switch {
	case client.HasCode(err, remoting.ResponseQueryNotFound):
		return 0, false, nil
	case err != nil:
		return 0, false, err
	case at > 0 || r.from == start{}:
		return at, at > 0, nil
	}
	known, err := r.client.HasGroupOffset(ctx, c.Queue, r.flags.group)
	return 0, known, err
}

// read prints what is there, then what comes.
func (r *reader) read(ctx context.Context) error {
	if err := r.commitAll(ctx); err != nil { // a group that begins at the end must find that end again
		return err
	}
	if err := r.drain(ctx); err != nil || r.full() || !r.flags.follow {
		return err
	}
	return r.follow(ctx)
}

func (r *reader) full() bool { return r.flags.max > 0 && r.printed >= r.flags.max }

// drain prints what was there at the beginning, the oldest of all queues first.
func (r *reader) drain(ctx context.Context) error {
	for !r.full() {
		var oldest *cursor
		for _, c := range r.cursors {
			if err := r.fill(ctx, c); err != nil {
				return err
			}
			if len(c.ready) > 0 && (oldest == nil || older(&c.ready[0], &oldest.ready[0])) {
				oldest = c
			}
		}
		if oldest == nil {
			return nil
		}
		if err := r.printFirst(oldest); err != nil {
			return err
		}
	}
	return nil
}

// older tells which message was stored first: of those of one broker exactly, of others by their clocks.
func older(a, b *messages.StoredMessage) bool {
	return cmp.Or(cmp.Compare(a.StoreTimestampMs, b.StoreTimestampMs), cmp.Compare(a.PhysicalOffset, b.PhysicalOffset)) < 0
}

// fill pulls until a message is ready or the queue's end is reached; what was ready before is then committed.
func (r *reader) fill(ctx context.Context, c *cursor) error {
	for len(c.ready) == 0 && c.next < c.end {
		if err := r.commit(ctx, c); err != nil {
			return err
		}
		b, err := r.pull(ctx, c.source, c.next, 0)
		if err != nil {
			return err
		}
		if b.next == c.next {
			c.end = c.next // nothing is there, whatever was said before
		}
		r.take(c, b)
	}
	return nil
}

// batch is what comes of a pull.
type batch struct {
	wanted []messages.StoredMessage // those that pass the filter
	next   int64                    // where the next pull begins
	note   string                   // something that the user should know
}

// take gives a cursor what was pulled.
func (r *reader) take(c *cursor, b batch) {
	c.ready, c.next = b.wanted, b.next
	if b.note != "" {
		r.note(c.Queue, "%s", b.note)
	}
}

// printFirst prints the first message that is ready in a queue.
func (r *reader) printFirst(c *cursor) error {
	m := &c.ready[0]
	var err error
	if r.flags.json {
		err = tools.WriteJSON(r.out, tools.LineOf(c.Broker, m))
	} else {
		_, err = fmt.Fprintln(r.out, tools.LineOf(c.Broker, m))
	}
	if err != nil {
		return err
	}
	c.ready = c.ready[1:]
	r.printed++
	return nil
}

func (r *reader) note(q client.Queue, format string, args ...any) {
	fmt.Fprintf(r.notes, "actormq: %s queue %d: %s\n", q.Broker, q.ID, fmt.Sprintf(format, args...))
}

// pull asks for messages from an offset on; with a hold time it waits for them. Safe for concurrent use.
func (r *reader) pull(ctx context.Context, q source, at int64, hold time.Duration) (batch, error) {
	h := remoting.PullMessageHeader{
		ConsumerGroup: r.group(), Topic: q.Topic, QueueID: q.ID, QueueOffset: at, MaxMsgNums: pullMessages,
		SysFlag: remoting.PullFlagSubscription, Subscription: subscription(r.tags), ExpressionType: "TAG",
	}
	if hold > 0 {
		h.SysFlag |= remoting.PullFlagSuspend
		h.SuspendTimeoutMs = hold.Milliseconds()
	}
	p, err := r.client.Pull(ctx, q.Address, h)
	if err != nil {
		return batch{}, fmt.Errorf("%s queue %d, offset %d: %w", q.Broker, q.ID, at, err)
	}
	b := batch{wanted: r.wanted(p.Messages, q.sinceMs), next: p.NextBeginOffset}
	switch {
	case p.Code == remoting.ResponsePullOffsetMoved:
		b.note = fmt.Sprintf("offset %d is not there, going on from %d", at, b.next)
	case p.Damaged != nil && b.next > at:
		b.note = fmt.Sprintf("left out: %v", p.Damaged)
	case b.next > at || p.Code == remoting.ResponsePullNotFound && b.next == at:
	default:
		return batch{}, fmt.Errorf("%s queue %d: the broker sends the reader from offset %d to %d", q.Broker, q.ID, at, b.next)
	}
	return b, nil
}

func (r *reader) group() string {
	if r.flags.group != "" {
		return r.flags.group
	}
	return consumerGroup
}

// subscription is the expression for a set of tags.
func subscription(tags []string) string {
	if len(tags) == 0 {
		return "*"
	}
	return strings.Join(tags, " || ")
}

// wanted sorts out what the broker can't: it knows the hashes of tags only, and times not exactly.
func (r *reader) wanted(all []messages.StoredMessage, sinceMs int64) []messages.StoredMessage {
	return slices.DeleteFunc(all, func(m messages.StoredMessage) bool {
		tag, _ := m.Properties.Get(messages.PropertyTags)
		return m.StoreTimestampMs < sinceMs || len(r.tags) > 0 && !slices.Contains(r.tags, tag)
	})
}

// commit stores how far a queue has been printed, if that is wanted and not known yet.
func (r *reader) commit(ctx context.Context, c *cursor) error {
	at := c.done()
	if r.flags.group == "" || at == c.committed {
		return nil
	}
	if err := r.client.Commit(ctx, c.Queue, r.flags.group, at); err != nil {
		return err
	}
	c.committed = at
	return nil
}

func (r *reader) commitAll(ctx context.Context) error {
	for _, c := range r.cursors {
		if err := r.commit(ctx, c); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
	}
	return nil
}
