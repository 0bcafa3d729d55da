package endpoint

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/remote/wire"
)

// How long a caller waits for what it needs for a put, and how far clocks of index and node may differ.
const (
	ensureTimeout = 3 * time.Second
	lookTimeout   = 5 * time.Second
	lookSlack     = time.Minute
	newQueues     = 4 // of a topic that is made, at most: what RocketMQ's producers ask for
)

// put is one put that the client has not confirmed: it is carried out, and its answer kept, once.
type put struct {
	id      uint64
	request *wire.Envelope
	payload *wire.Put
	message messages.Message
	answer  *wire.Envelope // nil: not answered yet
}

// What comes back to a caller.
type (
	stored struct {
		put    *put
		result messages.PutResult
		err    error
	}
	topicMade struct {
		name  string
		topic metadata.TopicConfig
		err   error
	}
	lookedUp struct {
		puts  []*put
		found []*messages.StoredMessage // nil: it is not there
		err   error
	}
)

// put stores a message, unless it has been stored or is being stored already.
func (c *caller) put(m *wire.Envelope) {
	id := m.GetId()
	if id < c.done {
		return // an echo: it has been answered
	}
	if p := c.puts[id%wire.Window]; p != nil && p.id == id {
		if p.answer != nil {
			c.e.send(c.to, p.answer)
		}
		return
	}
	switch {
	case id-c.done >= wire.Window:
		c.refuse(m, wire.Code_BUSY, fmt.Sprintf("request %d, but %d is not answered yet", id, c.done))
		return
	case c.e.closing.Load():
		c.refuse(m, wire.Code_UNAVAILABLE, "the node is stopping")
		return
	}
	p := &put{id: id, request: m, payload: &wire.Put{}}
	if err := wire.Unpack(m, p.payload); err != nil {
		c.refuse(m, wire.Code_INVALID, err.Error())
		return
	}
	if !c.mine(m, p.payload.GetMessage().GetTopic()) {
		return
	}
	if why := p.read(c.key.address); why != "" {
		c.refuse(m, wire.Code_INVALID, why)
		return
	}
	c.puts[id%wire.Window] = p
	c.open++
	if p.payload.GetRetry() {
		c.lookUp(p)
		return
	}
	c.place(p)
}

// read takes over the message; it says what is wrong with it.
func (p *put) read(address string) (why string) {
	w := p.payload.GetMessage()
	topic := w.GetTopic()
	if err := messages.CheckTopicName(topic); err != nil {
		return err.Error()
	}
	if messages.IsReservedTopic(topic) {
		return "nobody may send to " + topic
	}
	properties := messages.Properties(w.GetProperties())
	if half, _ := properties.Get(messages.PropertyTransactionMessage); strings.EqualFold(half, "true") {
		return "transactions are not served here"
	}
	p.message = messages.Message{
		Topic: topic, QueueID: w.GetQueueId(), Flag: w.GetFlag(), BornTimestampMs: w.GetBornMs(), Body: w.GetBody(), Properties: properties,
	}
	if born, err := netip.ParseAddrPort(address); err == nil {
		p.message.BornHost = born
	}
	return ""
}

// place finds the topic and hands the message to the store.
func (c *caller) place(p *put) {
	if c.e.cfg.Policy != nil {
		if err := c.e.cfg.Policy.Admit(time.Now(), true); err != nil {
			c.takeBack(p, wire.Code_UNAVAILABLE, err.Error())
			return
		}
	}
	if c.e.cfg.Topics == nil {
		p.message.QueueID = max(p.message.QueueID, 0)
		c.store(p)
		return
	}
	name := p.message.Topic
	if behind, making := c.making[name]; making {
		c.making[name] = append(behind, p) // bounded by the window
		return
	}
	if topic, ok := c.e.cfg.Topics.Lookup(name); ok {
		c.placeIn(p, topic)
		return
	}
	c.making[name] = []*put{p}
	e, self := c.e, c.self
	e.running.Go(func() {
		made := topicMade{name: name}
		made.err = actors.Protect("make a topic", func() (err error) {
			ctx, cancel := context.WithTimeout(e.alive, ensureTimeout)
			defer cancel()
			made.topic, err = e.cfg.Topics.EnsureForSend(ctx, name, messages.TopicAutoCreateKey, newQueues, false)
			return err
		})
		e.root.Send(self, made)
	})
}

// topicMade goes on with the puts that have waited for their topic, in their order.
func (c *caller) topicMade(m topicMade) {
	waiting := c.making[m.name]
	delete(c.making, m.name)
	for _, p := range waiting {
		if m.err != nil {
			c.takeBack(p, wire.Code_NO_TOPIC, m.err.Error())
			continue
		}
		c.placeIn(p, m.topic)
	}
}

func (c *caller) placeIn(p *put, topic metadata.TopicConfig) {
	queues := topic.WriteQueueNums
	switch {
	case topic.Perm&metadata.PermWrite == 0 || queues <= 0:
		c.takeBack(p, wire.Code_NO_TOPIC, "nobody may write to "+p.message.Topic)
		return
	case p.message.QueueID < 0:
		p.message.QueueID = rand.Int32N(int32(queues))
	case int(p.message.QueueID) >= queues:
		c.takeBack(p, wire.Code_INVALID, fmt.Sprintf("queue %d of %s, which has %d", p.message.QueueID, p.message.Topic, queues))
		return
	}
	c.store(p)
}

// store hands the message to the store; its answer comes as a message.
func (c *caller) store(p *put) {
	if c.e.cfg.Policy != nil {
		if err := c.e.cfg.Policy.Limit(p.message.Topic, 1, len(p.message.Body), time.Now(), c.key.address); err != nil {
			c.takeBack(p, wire.Code_BUSY, err.Error())
			return
		}
	}
	root, self := c.e.root, c.self
	deadline := time.Now().Add(time.Duration(max(p.payload.GetTimeoutMs(), 1)) * time.Millisecond)
	c.e.cfg.Store.PutAsync(&p.message, p.message.Properties.Waits(), deadline, func(r messages.PutResult, err error) {
		root.Send(self, stored{put: p, result: r, err: err})
	})
}

// stored takes the store's answer. What was not stored and may be later is not remembered: the client asks again.
func (c *caller) stored(m stored) {
	text := m.result.Status.String()
	if m.err != nil {
		text = m.err.Error()
	}
	switch m.result.Status {
	case messages.OSPageCacheBusy:
		c.takeBack(m.put, wire.Code_BUSY, text)
	case messages.ServiceNotAvailable, messages.CreateMapedFileFailed:
		c.takeBack(m.put, wire.Code_UNAVAILABLE, text)
	default:
		c.settle(m.put, m.result, m.err)
	}
}

// takeBack answers that nothing was done for a put.
func (c *caller) takeBack(p *put, code wire.Code, text string) {
	delete(c.puts, p.id%wire.Window)
	c.refuse(p.request, code, text)
	c.open--
	c.idle()
}

// settle answers a put and keeps the answer; the message is no longer needed.
func (c *caller) settle(p *put, r messages.PutResult, cause error) {
	result := &wire.PutResult{
		Status: int32(r.Status), QueueId: p.message.QueueID, QueueOffset: int64(r.QueueOffset), PhysicalOffset: int64(r.PhysicalOffset),
		Bytes: r.Bytes, StoreMs: r.StoreTimestampMs,
	}
	if cause != nil {
		result.Text = cause.Error()
	}
	if r.Status.Stored() {
		result.MessageId = messages.OffsetMessageID(c.e.cfg.Store.Options().StoreHost, r.PhysicalOffset)
	}
	answer, err := wire.Pack(wire.KindPutResult, c.key.client, p.id, result)
	if err != nil {
		c.e.cfg.Logger.Error().Err(err).Msg("the answer of a put can't be sent")
		return
	}
	p.request, p.payload, p.message = nil, nil, messages.Message{}
	p.answer = answer
	c.e.send(c.to, answer)
	c.open--
	c.idle()
}

// lookUp finds out whether a put of an earlier life was carried out; what comes meanwhile is looked up together.
func (c *caller) lookUp(p *put) {
	c.unknown = append(c.unknown, p) // bounded by the window
	if c.looking {
		return
	}
	c.looking = true
	e, self, batch := c.e, c.self, c.unknown
	c.unknown = nil
	e.running.Go(func() {
		m := lookedUp{puts: batch, found: make([]*messages.StoredMessage, len(batch))}
		m.err = actors.Protect("look up puts", func() error {
			ctx, cancel := context.WithTimeout(e.alive, lookTimeout)
			defer cancel()
			if err := e.cfg.Store.AwaitDispatched(ctx); err != nil {
				return err
			}
			for i, p := range batch {
				var err error
				if m.found[i], err = e.find(ctx, p); err != nil {
					return err
				}
			}
			return nil
		})
		e.root.Send(self, m)
	})
}

// find looks for the message of a put by its unique key.
func (e *Endpoint) find(ctx context.Context, p *put) (*messages.StoredMessage, error) {
	key, ok := p.message.Properties.Get(messages.PropertyUniqKey)
	if !ok {
		return nil, nil
	}
	topics := []string{p.message.Topic}
	if _, delayed := p.message.Properties.Get(messages.PropertyDelay); delayed {
		topics = append(topics, messages.TopicSchedule)
	}
	now := time.Now()
	begin := now.Add(-lookSlack - time.Duration(p.payload.GetAgeMs())*time.Millisecond)
	for _, topic := range topics {
		found, err := e.cfg.Store.Query(ctx, messages.QueryMessage{
			Topic: topic, Key: key, MaxMessages: 1, BeginMs: begin.UnixMilli(), EndMs: now.Add(lookSlack).UnixMilli(),
		})
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			return &found[0], nil
		}
	}
	return nil, nil
}

func (c *caller) lookedUp(m lookedUp) {
	c.looking = false
	for i, p := range m.puts {
		switch found := m.found[i]; {
		case m.err != nil:
			c.takeBack(p, wire.Code_UNAVAILABLE, m.err.Error())
		case found == nil:
			c.place(p)
		default:
			p.message.QueueID = found.QueueID
			c.settle(p, c.confirmation(found), nil)
		}
	}
	if len(c.unknown) > 0 {
		next := c.unknown
		c.unknown = nil
		for _, p := range next {
			c.lookUp(p)
		}
	}
}

// confirmation is what can be said of a message that an earlier life has stored: no more than is known.
func (c *caller) confirmation(m *messages.StoredMessage) messages.PutResult {
	r := messages.PutResult{
		Status: messages.PutOK, PhysicalOffset: m.PhysicalOffset, QueueOffset: m.QueueOffset, Bytes: m.StoreSize, Count: 1,
		StoreTimestampMs: m.StoreTimestampMs,
	}
	opt := c.e.cfg.Store.Options()
	switch {
	case opt.FlushDiskType == system.SyncFlush && c.e.cfg.Store.FlushedTo() < r.End():
		r.Status = messages.FlushDiskTimeout
	case opt.Role == messages.SyncMaster && opt.Group == nil: // in a group only what is confirmed is found
		r.Status = messages.FlushSlaveTimeout
	}
	return r
}
