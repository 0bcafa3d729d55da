package consume

import (
	"context"
	"strings"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway/broker"
)

// queryOffset answers 14 (spec/remoting.md §11.1). To the Java client every error means "no offset", on which it skips to the
// end of the queue: trouble therefore closes the connection.
func (c *Consumers) queryOffset(r *gateway.Request) {
	var h remoting.QueryConsumerOffsetHeader
	if err := remoting.FromExt(r.ExtFields, &h); err != nil {
		r.Abandon(err)
		return
	}
	q := messages.QueueKey{Topic: h.Topic, QueueID: h.QueueID}
	ctx, cancel := c.b.Context()
	defer cancel()
	at, err := c.b.Offsets.Query(ctx, h.ConsumerGroup, q)
	switch {
	case err != nil:
		r.Abandon(err)
	case at >= 0:
		r.OK(&remoting.OffsetAnswer{Offset: int64(at)})
	case c.young(q):
		r.OK(&remoting.OffsetAnswer{})
	default:
		broker.Bare(r, remoting.ResponseQueryNotFound, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first")
	}
}

// young tells whether a queue has all of its messages yet, and the first one in memory: a new group then begins with it,
// whatever it asks for. So it does on a queue without messages.
func (c *Consumers) young(q messages.QueueKey) bool {
	if c.b.Store.MinOffset(q) > 0 {
		return false
	}
	return c.b.Store.MaxOffset(q) == 0 || c.b.Store.HoldsInMemory(q, 0)
}

// updateOffset answers 15. Nothing is checked (spec/remoting.md §11.1); the keeper counts what goes backwards.
func (c *Consumers) updateOffset(r *gateway.Request) {
	var h remoting.UpdateConsumerOffsetHeader
	if !broker.Header(r, &h) {
		return
	}
	q := messages.QueueKey{Topic: h.Topic, QueueID: h.QueueID}
	group := h.ConsumerGroup
	if c.b.Offsets.Lookup(group, q) == messages.NoOffset { // the names will be kept
		group, q.Topic = strings.Clone(group), strings.Clone(q.Topic)
	}
	if err := c.b.Offsets.Commit(group, q, messages.QueueOffset(h.CommitOffset)); err != nil {
		broker.Fail(r, err)
		return
	}
	broker.Bare(r, remoting.ResponseSuccess, "")
}

// maxOffset answers 30.
func (c *Consumers) maxOffset(r *gateway.Request) { c.offset(r, c.b.Store.MaxOffset) }

// minOffset answers 31.
func (c *Consumers) minOffset(r *gateway.Request) { c.offset(r, c.b.Store.MinOffset) }

func (c *Consumers) offset(r *gateway.Request, of func(messages.QueueKey) messages.QueueOffset) {
	var h remoting.QueueHeader
	if !broker.Header(r, &h) {
		return
	}
	r.OK(&remoting.OffsetAnswer{Offset: int64(of(messages.QueueKey{Topic: h.Topic, QueueID: h.QueueID}))})
}

// earliest answers 32.
func (c *Consumers) earliest(r *gateway.Request) {
	var h remoting.QueueHeader
	if !broker.Header(r, &h) {
		return
	}
	ms, ok := c.b.Store.EarliestStoreTime(messages.QueueKey{Topic: h.Topic, QueueID: h.QueueID})
	if !ok {
		ms = -1
	}
	r.OK(&remoting.TimestampAnswer{TimestampMs: ms})
}

// search answers 29.
func (c *Consumers) search(r *gateway.Request) {
	var h remoting.SearchOffsetHeader
	if !broker.Header(r, &h) {
		return
	}
	q := messages.QueueKey{Topic: h.Topic, QueueID: h.QueueID}
	at, err := c.b.Store.OffsetByTime(context.Background(), q, h.TimestampMs, c.b.Policy().SearchBoundary)
	if err != nil {
		broker.Fail(r, err)
		return
	}
	r.OK(&remoting.OffsetAnswer{Offset: int64(at)})
}
