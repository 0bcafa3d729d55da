package produce

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway/broker"
)

// replyTimeout is how long a requester may take to accept a reply (spec/remoting.md §1.8).
const replyTimeout = 10 * time.Second

// reply answers 324 and 325: the reply to a request goes to the requester's connection, then into the reply topic
// (spec/remoting.md §12.3). What the replier is told is whether the requester has it; it is stored in any case.
func (p *Producers) reply(r *gateway.Request) {
	h, topic, ok := p.accept(r)
	if !ok {
		return
	}
	e := new(envelope)
	p.fill(e, r, &h, topic)
	m := &e.message
	d := p.placed(r, topic.TopicName, h.QueueID)
	d.pushed = true
	conn, err := p.requester(m.Properties)
	if err != nil {
		d.pushErr = err
		p.keepReply(d, m, messages.Properties(h.Properties).Waits())
		return
	}
	answer := conn.Call(p.replyPush(r, &h), replyTimeout)
	go func() {
		response, err := answer.Wait(context.Background()) // the call has a timeout of its own
		if err != nil || response.Code != remoting.ResponseSuccess {
			to, _ := m.Properties.Get(messages.PropertyReplyToClient)
			d.pushErr = broker.Refuse(remoting.ResponseSystemError, "push reply message to %sfail.", to) // the original's words
		}
		err = actors.Protect("keep a reply", func() error {
			p.keepReply(d, m, messages.Properties(h.Properties).Waits())
			return nil
		})
		if err != nil {
			d.done(messages.PutResult{Status: messages.UnknownError}, err)
		}
	}()
}

// keepReply stores a reply, unless replies are only pushed, and answers its sender.
func (p *Producers) keepReply(d *placed, m *messages.Message, waitStored bool) {
	if p.b.Policy().DropReplies {
		d.done(messages.PutResult{Status: messages.ServiceNotAvailable}, nil)
		return
	}
	p.b.Store.PutAsync(m, waitStored, p.deadline(time.Now()), d.tell)
}

// requester is the connection that waits for a reply.
func (p *Producers) requester(properties messages.Properties) (*gateway.Conn, error) {
	id, ok := properties.Get(messages.PropertyReplyToClient)
	if !ok {
		return nil, broker.Refuse(remoting.ResponseSystemError, "reply message properties[%s] is null", messages.PropertyReplyToClient)
	}
	if c := p.b.Clients.Producer(id); c != nil {
		if conn, ok := c.Channel.(*gateway.Conn); ok {
			return conn, nil
		}
	}
	return nil, broker.Refuse(remoting.ResponseSystemError, "push reply message fail, channel of <%s> not found.", id)
}

// replyPush is the request that brings a reply to its requester.
func (p *Producers) replyPush(r *gateway.Request, h *remoting.SendMessageHeader) *remoting.Command {
	now := strconv.FormatInt(r.At.UnixMilli(), 10)
	c := remoting.NewRequest(remoting.RequestPushReplyMessageToClient, &remoting.ReplyPushHeader{
		ProducerGroup: h.ProducerGroup, Topic: h.Topic, DefaultTopic: h.DefaultTopic,
		DefaultTopicQueueNums: h.DefaultTopicQueueNums, QueueID: h.QueueID, SysFlag: h.SysFlag,
		BornTimestampMs: h.BornTimestampMs, Flag: h.Flag, ReconsumeTimes: h.ReconsumeTimes, UnitMode: h.UnitMode,
		Properties: string(messages.Properties(h.Properties).With(messages.PropertyPushReplyTime, now)),
		BornHost:   r.Conn.RemoteAddr(), StoreHost: fmt.Sprint(p.b.StoreHost), StoreTimestampMs: r.At.UnixMilli(),
	})
	c.Body = r.Body
	return c
}
