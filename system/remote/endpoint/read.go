package endpoint

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system/remote/wire"
)

// Bounds of one read.
const (
	readTimeout  = 5 * time.Second
	maxQueried   = 64
	maxQueues    = 1024 // of a topic, in one answer
	maxReadBytes = 1 << 20
)

// reply answers a read; its bytes count until the client has confirmed the answer.
func (c *caller) reply(m *wire.Envelope, kind string, payload interface {
	wireMessage
	GetRecords() []byte
}) {
	n := len(payload.GetRecords())
	c.hold(n)
	c.answered = append(c.answered, answered{m.GetId(), n})
	c.e.answer(c.to, m, kind, payload)
}

// mayRead refuses a read that there is no room for, and one that has been answered.
func (c *caller) mayRead(m *wire.Envelope, topic string) bool {
	switch {
	case m.GetId() < c.done:
		return false
	case c.full() || len(c.answered) >= wire.Window:
		c.refuse(m, wire.Code_BUSY, fmt.Sprintf("%d bytes are on their way", c.held))
		return false
	}
	return c.mine(m, topic)
}

func (c *caller) get(m *wire.Envelope, r *wire.Get) {
	if !c.mayRead(m, r.GetTopic()) {
		return
	}
	result, err := c.e.read(messages.GetMessage{
		Queue: messages.QueueKey{Topic: r.GetTopic(), QueueID: r.GetQueueId()}, Offset: messages.QueueOffset(r.GetOffset()),
		MaxMessages: int(min(r.GetMaxMessages(), 1<<10)), MaxBytes: bytesOf(r.GetMaxBytes()), Tags: wire.TagFilter(r.GetTags()), WillRead: true,
	})
	if err != nil {
		c.refuse(m, wire.Code_FAILED, err.Error())
		return
	}
	c.reply(m, wire.KindGetResult, result)
}

// bytesOf bounds what one read may bring; one message comes whatever its size.
func bytesOf(asked uint32) int {
	if asked == 0 {
		return maxReadBytes
	}
	return int(min(asked, maxReadBytes))
}

// read is a get whose records are copied.
func (e *Endpoint) read(m messages.GetMessage) (*wire.GetResult, error) {
	ctx, cancel := context.WithTimeout(e.alive, readTimeout)
	defer cancel()
	r, err := e.cfg.Store.Get(ctx, m)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	out := &wire.GetResult{
		Status: int32(r.Status), NextOffset: int64(r.NextOffset), MinOffset: int64(r.MinOffset), MaxOffset: int64(r.MaxOffset),
	}
	if len(r.Records) == 0 {
		return out, nil
	}
	out.Records = make([]byte, 0, r.Bytes)
	err = vfs.Guard("read the commit log", func() error {
		for _, raw := range r.Records {
			out.Records = append(out.Records, raw...)
		}
		return nil
	})
	return out, err
}

func (c *caller) query(m *wire.Envelope, r *wire.Query) {
	if !c.mayRead(m, r.GetTopic()) {
		return
	}
	ctx, cancel := context.WithTimeout(c.e.alive, readTimeout)
	defer cancel()
	found, err := c.e.cfg.Store.Query(ctx, messages.QueryMessage{
		Topic: r.GetTopic(), Key: r.GetKey(), MaxMessages: int(min(r.GetMaxMessages(), maxQueried)), BeginMs: r.GetBeginMs(), EndMs: r.GetEndMs(),
	})
	if err != nil {
		c.refuse(m, wire.Code_FAILED, err.Error())
		return
	}
	result := &wire.QueryResult{}
	for i := range found {
		from := len(result.Records)
		all, err := record.Append(result.Records, &found[i].Message)
		if err != nil {
			c.refuse(m, wire.Code_FAILED, err.Error())
			return
		}
		record.SetPlace(all[from:], found[i].QueueOffset, found[i].PhysicalOffset, found[i].StoreTimestampMs)
		result.Records = all
		if len(all) > maxReadBytes {
			break
		}
	}
	c.reply(m, wire.KindQueryResult, result)
}

func (c *caller) offsets(m *wire.Envelope, r *wire.Offsets) {
	if m.GetId() < c.done || !c.mine(m, r.GetTopic()) {
		return
	}
	ctx, cancel := context.WithTimeout(c.e.alive, readTimeout)
	defer cancel()
	ids := r.GetQueueIds()
	if len(ids) == 0 {
		ids = c.e.queuesOf(r.GetTopic())
	}
	result := &wire.OffsetsResult{}
	for _, id := range ids[:min(len(ids), maxQueues)] {
		q := messages.QueueKey{Topic: r.GetTopic(), QueueID: id}
		of := &wire.QueueOffsets{
			QueueId: id, Min: int64(c.e.cfg.Store.MinOffset(q)), Max: int64(c.e.cfg.Store.MaxOffset(q)), Committed: int64(messages.NoOffset),
		}
		if r.GetGroup() != "" && c.e.cfg.Offsets != nil {
			of.Committed = int64(c.e.cfg.Offsets.Lookup(r.GetGroup(), q))
		}
		if r.GetByTime() {
			at, err := c.e.cfg.Store.OffsetByTime(ctx, q, r.GetTimeMs(), messages.TimeBoundary(r.GetBoundary()))
			if err != nil {
				c.refuse(m, wire.Code_FAILED, err.Error())
				return
			}
			of.ByTime = int64(at)
		}
		result.Queues = append(result.Queues, of)
	}
	c.e.answer(c.to, m, wire.KindOffsetsResult, result)
}

// queuesOf are the queues of a topic: those that it is configured to have, and those that there are.
func (e *Endpoint) queuesOf(topic string) []int32 {
	var ids []int32
	if e.cfg.Topics != nil {
		if t, ok := e.cfg.Topics.Lookup(topic); ok {
			for id := range min(t.ReadQueueNums, maxQueues) {
				ids = append(ids, int32(id))
			}
			return ids
		}
	}
	e.cfg.Store.EachQueue(func(key messages.QueueKey, _, _ messages.QueueOffset) {
		if key.Topic == topic {
			ids = append(ids, key.QueueID)
		}
	})
	slices.Sort(ids)
	return ids
}
