package endpoint

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system/remote/wire"
)

// Bounds of one subscription's window, whatever its client asks for.
const (
	maxWindowMessages = 4096
	maxWindowBytes    = 4 << 20
)

type wireMessage = proto.Message

// subscription reads a queue for a client, as far ahead of what it has acknowledged as the window allows. What is on its way is always a
// run of messages behind acknowledged; sending it again does no harm, as the client knows what it has.
type subscription struct {
	id     uint64
	queue  messages.QueueKey
	tags   messages.TagFilter
	window struct{ messages, bytes int }

	acknowledged messages.QueueOffset // the client has handled everything below
	sent         messages.QueueOffset // everything below is on its way
	top          messages.QueueOffset // the highest that sent ever was
	sending      []delivered          // behind acknowledged, in order
	bytes        int                  // of sending
	committed    messages.QueueOffset // for the group, as the client said last; -1: nothing
	renewed      messages.QueueOffset // received, as the last renewal said; -1: there was none since the last delivery

	parked  *messages.ParkPull // not nil: it waits for a message
	reading bool               // a readOn is in the mailbox
	ended   bool
}

// delivered is one delivery that is not acknowledged.
type delivered struct {
	next  messages.QueueOffset
	bytes int
}

func (c *caller) subscribe(m *wire.Envelope, r *wire.Subscribe) {
	switch {
	case c.subs[m.GetId()] != nil:
		return // an echo
	case len(c.subs) >= c.e.cfg.Limits.Subscriptions:
		c.refuse(m, wire.Code_BUSY, fmt.Sprintf("%d subscriptions are the limit", c.e.cfg.Limits.Subscriptions))
		return
	case r.GetAcknowledged() < 0 || r.GetOffset() < r.GetAcknowledged() || r.GetWindowMessages() == 0:
		c.refuse(m, wire.Code_INVALID, "offsets that make no sense, or no window")
		return
	case !c.mine(m, r.GetTopic()):
		return
	}
	at := messages.QueueOffset(r.GetOffset())
	s := &subscription{
		id: m.GetId(), queue: messages.QueueKey{Topic: r.GetTopic(), QueueID: r.GetQueueId()}, tags: wire.TagFilter(r.GetTags()),
		acknowledged: messages.QueueOffset(r.GetAcknowledged()), sent: at, top: at, committed: -1, renewed: -1,
	}
	s.window.messages = int(min(r.GetWindowMessages(), maxWindowMessages))
	s.window.bytes = int(min(max(r.GetWindowBytes(), 1), maxWindowBytes))
	c.subs[s.id] = s
	c.readLater(s)
}

func (c *caller) unsubscribe(id uint64) {
	s := c.subs[id]
	if s == nil {
		return
	}
	s.ended = true
	delete(c.subs, id)
	c.hold(-s.bytes)
	c.unpark(s)
}

// ack takes note of how far the client is; when something was lost on the way it is sent again.
func (c *caller) ack(m *wire.Envelope, r *wire.Ack) {
	s := c.subs[m.GetId()]
	if s == nil {
		c.refuse(m, wire.Code_NO_SUBSCRIPTION, "subscribe again")
		return
	}
	if leads, _ := c.e.leads(s.queue.Topic); !leads {
		c.unsubscribe(s.id)
		c.mine(m, s.queue.Topic)
		return
	}
	acknowledged, received := messages.QueueOffset(r.GetAcknowledged()), messages.QueueOffset(r.GetReceived())
	if received > s.top || received < acknowledged {
		c.unsubscribe(s.id)
		c.refuse(m, wire.Code_NO_SUBSCRIPTION, "it is ahead of what was sent")
		return
	}
	if received > s.sent { // it was sent again, but has come at the first time
		s.sending, s.sent = append(s.sending, delivered{next: received}), received
	}
	if acknowledged > s.acknowledged {
		s.acknowledged = acknowledged
		n := 0
		for ; n < len(s.sending) && s.sending[n].next <= acknowledged; n++ {
			s.bytes -= s.sending[n].bytes
			c.hold(-s.sending[n].bytes)
		}
		s.sending = s.sending[n:]
	}
	c.commit(s, r.GetGroup(), acknowledged)
	lost := r.GetRewind() || r.GetRenewal() && received == s.renewed
	if r.GetRenewal() {
		s.renewed = received
	}
	if lost && received < s.sent && received >= s.acknowledged {
		c.rewind(s, received)
	}
	c.readOnAll() // room for one is room for others
}

// commit keeps what a group has handled. One that the keeper has no room for is made up for by the next renewal.
func (c *caller) commit(s *subscription, group string, offset messages.QueueOffset) {
	if group == "" || c.e.cfg.Offsets == nil || offset == s.committed {
		return
	}
	if err := c.e.cfg.Offsets.Commit(group, s.queue, offset); err != nil {
		c.e.cfg.Logger.Debug().Err(err).Str("group", group).Msg("an offset of a remote client is not committed yet")
		return
	}
	s.committed = offset
}

// rewind takes back what was sent from an offset on.
func (c *caller) rewind(s *subscription, to messages.QueueOffset) {
	for n := len(s.sending); n > 0 && s.sending[n-1].next > to; n-- {
		s.bytes -= s.sending[n-1].bytes
		c.hold(-s.sending[n-1].bytes)
		s.sending = s.sending[:n-1]
	}
	s.sent = to
	c.unpark(s)
}

func (c *caller) unpark(s *subscription) {
	if s.parked != nil {
		c.e.cfg.Store.Unpark(s.parked)
		s.parked = nil
	}
}

func (c *caller) readOnAll() {
	for _, s := range c.subs {
		c.readLater(s)
	}
}

// readLater reads on behind what is in the mailbox, so that subscriptions take turns.
func (c *caller) readLater(s *subscription) {
	if s.reading || s.parked != nil || s.ended {
		return
	}
	s.reading = true
	c.e.root.Send(c.self, readOn{s})
}

// readOn delivers the next messages, if there are any and the window has room.
func (c *caller) readOn(s *subscription) {
	s.reading = false
	room := s.window.messages - int(s.sent-s.acknowledged)
	if s.ended || room <= 0 || s.bytes >= s.window.bytes || c.full() {
		return
	}
	r, err := c.e.read(messages.GetMessage{
		Queue: s.queue, Offset: s.sent, MaxMessages: room, MaxBytes: max(s.window.bytes-s.bytes, 1), Tags: s.tags, WillRead: true,
	})
	if err != nil {
		c.unsubscribe(s.id)
		c.e.answer(c.to, &wire.Envelope{Client: c.key.client, Id: s.id}, wire.KindRefused, &wire.Refused{Code: wire.Code_FAILED, Text: err.Error()})
		return
	}
	next := messages.QueueOffset(r.GetNextOffset())
	if next == s.sent {
		c.park(s)
		return
	}
	delivery := &wire.Delivery{From: int64(s.sent), Next: r.GetNextOffset(), Records: r.GetRecords(), Status: r.GetStatus()}
	if next < s.sent { // the queue has become shorter: the client is told, and goes on there
		s.acknowledged = min(s.acknowledged, next)
		c.rewind(s, next)
		s.top = next
	} else {
		s.sending = append(s.sending, delivered{next: next, bytes: len(r.GetRecords())})
		s.bytes += len(r.GetRecords())
		c.hold(len(r.GetRecords()))
		s.sent, s.top = next, max(s.top, next)
	}
	s.renewed = -1
	c.e.answer(c.to, &wire.Envelope{Client: c.key.client, Id: s.id}, wire.KindDelivery, delivery)
	c.readLater(s)
}

// woken is what the store says to a subscription that waits.
type woken struct {
	sub  *subscription
	pull *messages.ParkPull
	why  messages.WakeReason
}

// park waits for a message behind what was sent.
func (c *caller) park(s *subscription) {
	root, self := c.e.root, c.self
	pull := &messages.ParkPull{Queue: s.queue, Offset: s.sent, Tags: s.tags}
	pull.Wake = func(why messages.WakeReason) { root.Send(self, woken{s, pull, why}) }
	s.parked = pull
	c.e.cfg.Store.Park(pull)
}

// woken reads on when a message has come. When the store has let go for another reason, the client's next renewal looks again.
func (c *caller) woken(m woken) {
	if m.sub.parked != m.pull {
		return
	}
	if m.sub.parked = nil; m.why == messages.WakeArrived {
		c.readLater(m.sub)
	}
}
