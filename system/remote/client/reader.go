package client

import (
	"slices"
	"sort"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system/remote/wire"
)

// reader is one queue of a subscription. The core owns it.
type reader struct {
	sub   *Subscribed
	queue int32

	id       uint64 // of the subscription at the node
	node     *node  // nil: it has none now
	notUntil time.Time
	refusals int

	start        messages.QueueOffset
	received     messages.QueueOffset // everything below has come
	acknowledged messages.QueueOffset // everything below has been handled
	told         messages.QueueOffset // acknowledged, as the node was told last
	handling     []handling           // come and not acknowledged, in order
	epoch        int                  // grows when the queue has become shorter: older deliveries mean other messages
	rewinding    bool
	renew        time.Time
	due          time.Time // acknowledge at the latest
	gone         bool
}

// handling is a message that the handler has, or will have.
type handling struct {
	offset messages.QueueOffset
	acked  bool
}

// What the core is told of subscriptions.
type (
	acked struct {
		reader *reader
		epoch  int
		offset messages.QueueOffset
	}
	leave struct {
		sub    *Subscribed
		answer *messages.Answer[struct{}]
	}
)

func newReader(d *Subscribed, queue int32, from messages.QueueOffset) *reader {
	return &reader{sub: d, queue: queue, start: from, received: from, acknowledged: from, told: from}
}

// settle subscribes at the node that leads the topic, if it is up.
func (k *core) settle(r *reader) {
	now := time.Now()
	if now.Before(r.notUntil) {
		k.arm(r.notUntil)
		return
	}
	n := k.nodeOf(r.sub.Topic, now)
	if n == nil {
		return
	}
	k.homeless = slices.DeleteFunc(k.homeless, func(other *reader) bool { return other == r })
	r.id, r.node, r.rewinding = k.id(), n, false
	k.readers[r.id] = r
	r.renew = now.Add(renewEvery)
	k.arm(r.renew)
	k.send(n, wire.KindSubscribe, r.id, &wire.Subscribe{
		Topic: r.sub.Topic, QueueId: r.queue, Offset: int64(r.received), Acknowledged: int64(r.acknowledged), Tags: r.sub.Tags,
		WindowMessages: uint32(r.sub.Window), WindowBytes: uint32(r.sub.WindowBytes),
	})
	if r.told != r.acknowledged {
		k.tell(r, now, false)
	}
}

// uproot takes a reader's subscription away: it needs another one.
func (k *core) uproot(r *reader) {
	delete(k.readers, r.id)
	r.node = nil
	if !r.gone {
		k.homeless = append(k.homeless, r)
	}
}

// homelessOf uproots the readers of a node.
func (k *core) homelessOf(n *node) {
	for _, r := range k.readers {
		if r.node == n {
			k.uproot(r)
		}
	}
}

func (k *core) readerRefused(r *reader, why *wire.Refused, now time.Time) {
	n := r.node
	k.uproot(r)
	switch why.GetCode() {
	case wire.Code_NO_SUBSCRIPTION:
	case wire.Code_NOT_LEADER, wire.Code_UNAVAILABLE:
		k.reroute(r.sub.Topic, n.address, why.GetLeader(), now)
		fallthrough
	default:
		r.refusals++
		r.notUntil = now.Add(grown(firstPause, maxPause, r.refusals))
		k.c.opt.Logger.Debug().Stringer("code", why.GetCode()).Str("text", why.GetText()).Str("topic", r.sub.Topic).Msg("a subscription is refused for now")
	}
	k.settle(r)
}

// delivery hands messages to the handler, those that it has not had. A gap means that a delivery was lost.
func (k *core) delivery(n *node, e *wire.Envelope) {
	r := k.readers[e.GetId()]
	if r == nil || r.node != n {
		return
	}
	d, err := unpack(e, &wire.Delivery{})
	if err != nil {
		k.c.opt.Logger.Warn().Err(err).Str("node", n.address).Msg("a delivery can't be read")
		return
	}
	from, next := messages.QueueOffset(d.GetFrom()), messages.QueueOffset(d.GetNext())
	now := time.Now()
	switch {
	case from > r.received:
		if !r.rewinding {
			r.rewinding = true
			k.tell(r, now, true)
		}
		return
	case next < from:
		k.shortened(r, next)
		return
	case next <= r.received:
		return // it has come before
	}
	all, err := decode(d.GetRecords())
	if err != nil {
		k.c.opt.Logger.Warn().Err(err).Str("node", n.address).Msg("a delivery can't be read")
		return
	}
	if len(all) == 0 && messages.GetStatus(d.GetStatus()) != messages.NoMatchedMessage {
		k.c.opt.Logger.Warn().Str("topic", r.sub.Topic).Int32("queue", r.queue).Int64("from", d.GetFrom()).Int64("to", d.GetNext()).
			Stringer("why", messages.GetStatus(d.GetStatus())).Msg("messages that are no longer there were passed over")
	}
	r.rewinding, r.refusals = false, 0
	var come []*Delivery
	for _, m := range all {
		if m.QueueOffset >= r.received && wire.HasTag(m.Properties, r.sub.Tags) {
			come = append(come, &Delivery{Message: m, c: k.c, reader: r, epoch: r.epoch})
			r.handling = append(r.handling, handling{offset: m.QueueOffset})
		}
	}
	r.received = next
	k.advance(r, now)
	if len(come) > 0 {
		r.sub.inbox.put(come)
	}
}

// shortened goes on at the end of a queue that has lost messages that have come already: the node that leads it now never had them.
func (k *core) shortened(r *reader, end messages.QueueOffset) {
	k.c.opt.Logger.Warn().Str("topic", r.sub.Topic).Int32("queue", r.queue).Int64("from", int64(r.received)).Int64("to", int64(end)).
		Msg("the queue has become shorter")
	r.epoch++
	r.handling, r.received = nil, end
	r.acknowledged, r.told = min(r.acknowledged, end), min(r.told, end)
}

// acked notes that the handler is done with a message.
func (k *core) acked(m acked) {
	r := m.reader
	if m.epoch != r.epoch {
		return
	}
	if i := sort.Search(len(r.handling), func(i int) bool { return r.handling[i].offset >= m.offset }); i < len(r.handling) && r.handling[i].offset == m.offset {
		r.handling[i].acked = true
		k.advance(r, time.Now())
	}
}

// advance moves acknowledged, and tells the node soon; at once when the window is half empty.
func (k *core) advance(r *reader, now time.Time) {
	n := 0
	for n < len(r.handling) && r.handling[n].acked {
		n++
	}
	if r.handling = r.handling[n:]; len(r.handling) == 0 {
		r.handling = nil
		r.acknowledged = r.received
	} else {
		r.acknowledged = r.handling[0].offset
	}
	switch {
	case r.node == nil || r.acknowledged == r.told:
	case len(r.handling) == 0, int(r.acknowledged-r.told)*2 >= r.sub.Window:
		k.tell(r, now, false)
	case r.due.IsZero():
		r.due = now.Add(ackEvery)
		k.arm(r.due)
	}
}

// tell tells the node how far the reader is.
func (k *core) tell(r *reader, now time.Time, rewind bool) {
	renewal := !now.Before(r.renew)
	r.told, r.due = r.acknowledged, time.Time{}
	if renewal {
		r.renew = now.Add(renewEvery)
	}
	group := r.sub.Group
	if r.acknowledged == r.start {
		group = "" // nothing has been handled: the group's offset is left alone
	}
	k.send(r.node, wire.KindAck, r.id, &wire.Ack{
		Acknowledged: int64(r.acknowledged), Received: int64(r.received), Rewind: rewind, Group: group, Renewal: renewal,
	})
}

func (k *core) readersTick(now time.Time) {
	for _, r := range k.readers {
		if !now.Before(r.renew) || !r.due.IsZero() && !now.Before(r.due) {
			k.tell(r, now, false)
		}
		k.arm(r.renew)
		if !r.due.IsZero() {
			k.arm(r.due)
		}
	}
	for _, r := range append([]*reader(nil), k.homeless...) {
		k.settle(r)
	}
}

// leave ends a subscription.
func (k *core) leave(m leave) {
	for _, r := range m.sub.readers {
		k.depart(r)
		k.homeless = slices.DeleteFunc(k.homeless, func(other *reader) bool { return other == r })
	}
	m.answer.Complete(struct{}{}, nil)
}

// depart tells the node how far the reader is, for the last time.
func (k *core) depart(r *reader) {
	if r.gone = true; r.node != nil {
		k.tell(r, time.Now(), false)
		k.send(r.node, wire.KindUnsubscribe, r.id, &wire.Unsubscribe{})
		k.uproot(r)
	}
}
