package consume

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway/broker"
)

// longestHold bounds what a client may ask for; the usual ones are 15 and 20 s.
const longestHold = 5 * time.Minute

// held is a pull that waits for a message (spec/remoting.md §9.5). It is a tenant of its connection.
type held struct {
	p    *pulling
	park messages.ParkPull
}

// hold parks the pull until a message that it wants arrives, its time is over, or its connection ends.
func (p *pulling) hold() {
	conn, store := p.r.Conn, p.c.b.Store
	if conn.Tenants() >= p.c.b.MaxHeldPulls {
		p.fail(broker.Refuse(remoting.ResponseSystemBusy, "too many pulls are held for this connection, limit %d", p.c.b.MaxHeldPulls))
		return
	}
	wait := time.Duration(min(max(p.h.SuspendTimeoutMs, 0), longestHold.Milliseconds())) * time.Millisecond
	if policy := p.c.b.Policy(); policy.LongPollingOff {
		wait = policy.ShortPolling
	}
	h := &held{p: p}
	h.park = messages.ParkPull{
		Queue: p.queue(), Offset: messages.QueueOffset(p.h.QueueOffset), Tags: p.filter.tags, Deadline: p.r.At.Add(wait),
		Wake: h.wake,
	}
	if !p.held {
		p.held = true
		p.own()
		p.r.Park()
	}
	if !conn.MoveIn(h) {
		p.answerEmpty()
		return
	}
	store.Park(&h.park) // looks once more: a message may have come since
}

// own copies what a pull that is not answered at once keeps of its request. Its topic is the topic's own name once it is checked.
func (p *pulling) own() {
	if p.owned {
		return
	}
	p.owned = true
	for _, s := range []*string{&p.h.ConsumerGroup, &p.h.Subscription, &p.h.ExpressionType} {
		*s = strings.Clone(*s)
	}
}

// Evict implements gateway.Tenant: the pull hold wakes the pull, which is then answered.
func (h *held) Evict() { h.p.c.b.Store.Unpark(&h.park) }

// wake runs on the pull hold's goroutine: the read is repeated on one of its own.
func (h *held) wake(why messages.WakeReason) {
	h.p.r.Conn.MoveOut(h)
	h.p.r.Go(func(*gateway.Request) { h.p.again(why) })
}

// again repeats a pull that was held, checks included. It waits no more, unless its time is not over and the filter on
// properties, which the pull hold does not know, wants nothing of what has come.
func (p *pulling) again(why messages.WakeReason) {
	select {
	case <-p.r.Conn.Closed():
		p.fail(messages.ErrClosed)
		return
	default:
	}
	if p.r.Conn.Congested() {
		p.answerEmpty()
		return
	}
	if err := p.check(); err != nil {
		p.fail(err)
		return
	}
	p.read(why == messages.WakeArrived && p.filter.properties != nil)
}

// answerEmpty answers that there is no message, without looking.
func (p *pulling) answerEmpty() {
	p.found = remoting.PullMessageAnswer{
		NextBeginOffset: p.h.QueueOffset, MinOffset: int64(p.c.b.Store.MinOffset(p.queue())),
		MaxOffset: int64(p.c.b.Store.MaxOffset(p.queue())),
	}
	p.r.Reply(remoting.ResponsePullNotFound, messages.OffsetOverflowOne.String(), &p.found)
}

// eventPause is the least time between two events: a client that asks for a wrong offset in a loop must not fill the disk.
const eventPause = 100 * time.Millisecond

// offsetMoved stores the event that monitors read (spec/remoting.md §9.3). It is best effort.
func (c *Consumers) offsetMoved(p *pulling, next messages.QueueOffset) {
	now := p.r.At.UnixMilli()
	last := c.lastMoved.Load()
	if now-last < eventPause.Milliseconds() || !c.lastMoved.CompareAndSwap(last, now) {
		return
	}
	body, err := json.Marshal(remoting.OffsetMovedEvent{
		ConsumerGroup: p.h.ConsumerGroup,
		MessageQueue:  remoting.MessageQueue{BrokerName: c.b.BrokerName, QueueID: p.h.QueueID, Topic: p.h.Topic},
		OffsetNew:     int64(next), OffsetRequest: p.h.QueueOffset,
	})
	if err != nil {
		return // can't be: names and numbers
	}
	m := &messages.Message{
		Topic: messages.TopicOffsetMovedEvent, Body: body, BornTimestampMs: now, BornHost: c.b.StoreHost, StoreHost: c.b.StoreHost,
		Properties: messages.PropertiesOf(map[string]string{
			messages.PropertyTags: p.group.GroupName, messages.PropertyKeys: p.group.GroupName, messages.PropertyWait: broker.Bool(false),
		}),
	}
	c.b.Store.PutAsync(m, false, p.r.At.Add(c.b.PutTimeout), func(messages.PutResult, error) {})
}
