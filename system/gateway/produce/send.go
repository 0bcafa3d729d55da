package produce

import (
	"strings"
	"sync"
	"time"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system/gateway/broker"
)

// Producers answers the requests of producers. Safe for concurrent use.
type Producers struct {
	b    *broker.Broker
	pool sync.Pool // of *placed
}

// New returns the handlers.
func New(b *broker.Broker) *Producers { return &Producers{b: b} }

// Routes are the request codes that this package serves.
func (p *Producers) Routes() gateway.Routes {
	send := gateway.Route{Handle: p.send, Lane: gateway.Quick, RefuseWhenStopping: true, Borrows: true}
	return gateway.Routes{
		remoting.RequestSendMessage:            send,
		remoting.RequestSendMessageV2:          send,
		remoting.RequestSendBatchMessage:       send,
		remoting.RequestSendReplyMessage:       {Handle: p.reply, Lane: gateway.Quick, RefuseWhenStopping: true},
		remoting.RequestSendReplyMessageV2:     {Handle: p.reply, Lane: gateway.Quick, RefuseWhenStopping: true},
		remoting.RequestConsumerSendMsgBack:    {Handle: p.sendBack, Lane: gateway.Ordered},
		remoting.RequestEndTransaction:         {Handle: p.endTransaction, Lane: gateway.Quick},
		remoting.RequestResumeCheckHalfMessage: {Handle: p.resume, Lane: gateway.Ordered},
	}
}

// fail answers a send; its errors too carry the two fields that clients read (spec/remoting.md §8.5).
func (p *Producers) fail(r *gateway.Request, err error) {
	code, remark := broker.Code(err)
	p.failWith(r, code, remark)
}

func (p *Producers) failWith(r *gateway.Request, code int, remark string) {
	c := r.Command.Answer(code, remark)
	c.ExtFields = remoting.Ext{
		{Name: remoting.ExtMsgRegion, Value: p.b.Region}, {Name: remoting.ExtTraceOn, Value: broker.Bool(!p.b.Policy().TraceOff)},
	}
	r.Answer(c)
}

// accept reads the header of a send or a reply and finds its topic; a queue is chosen when the header names none. False: it was
// refused, and is answered.
func (p *Producers) accept(r *gateway.Request) (h remoting.SendMessageHeader, topic metadata.TopicConfig, ok bool) {
	h, err := remoting.DecodeSend(r.Command)
	if err != nil {
		p.failWith(r, remoting.ResponseSystemError, err.Error())
		return h, topic, false
	}
	if topic, err = p.topicOf(r, &h); err != nil {
		p.fail(r, err)
		return h, topic, false
	}
	if p.b.Policy().Limits != nil {
		count := 1
		if h.Batch {
			count = messagesIn(r.Body)
		}
		if err = p.b.Limit(topic.TopicName, count, len(r.Body), r.At, r.Conn.RemoteAddr()); err != nil {
			p.fail(r, err)
			return h, topic, false
		}
	}
	if h.QueueID < 0 {
		h.QueueID = randomQueue(topic.WriteQueueNums)
	}
	return h, topic, true
}

// send answers 10, 310 and 320; the header's batch flag decides on the form of the body, not the code.
func (p *Producers) send(r *gateway.Request) {
	h, topic, ok := p.accept(r)
	if !ok {
		return
	}
	e := envelopes.Get().(*envelope)
	defer envelopes.Put(e)
	sent := p.fill(e, r, &h, topic)
	if h.Batch {
		p.putBatch(r, &h, &e.message, sent.Waits)
		return
	}
	if err := p.route(r, &h, &e.message, sent.Half); err != nil {
		p.fail(r, err)
		return
	}
	d := p.placed(r, topic.TopicName, h.QueueID)
	d.half = e.message.Topic == messages.TopicTransactionHalf
	p.b.Store.PutAsync(&e.message, sent.Waits, p.deadline(r.At), d.tell)
}

// route puts a message into the topic where it belongs.
func (p *Producers) route(r *gateway.Request, h *remoting.SendMessageHeader, m *messages.Message, half bool) error {
	if strings.HasPrefix(h.Topic, messages.RetryTopicPrefix) {
		if err := p.retried(r, h, m); err != nil {
			return err
		}
	}
	if half {
		if p.b.Policy().RejectHalf || p.b.Transactions == nil {
			return broker.Refuse(remoting.ResponseNoPermission, "the broker[%s] sending transaction message is forbidden", p.b.IP())
		}
		return p.halve(r, h, m)
	}
	return nil
}

// envelope is what is handed to the store, one message or a batch, with the memory of its properties. The store has made its
// own record of it when a put returns, so it serves the next send then.
type envelope struct {
	message    messages.Message
	properties []byte
}

var envelopes = sync.Pool{New: func() any { return new(envelope) }}

// fill takes over what a send says. The properties are stored without WAIT, and with the cluster's name, which a consumer
// needs to reply to a request (spec/remoting.md §8.2, §12.3). Nothing of the request is copied but them.
func (p *Producers) fill(
	e *envelope, r *gateway.Request, h *remoting.SendMessageHeader, topic metadata.TopicConfig,
) (sent messages.Sent) {
	e.properties, sent = messages.Properties(h.Properties).AppendSent(e.properties[:0], p.b.ClusterName)
	e.message = messages.Message{
		Topic: topic.TopicName, QueueID: h.QueueID, Flag: h.Flag, SysFlag: h.SysFlag, ReconsumeTimes: h.ReconsumeTimes,
		BornTimestampMs: h.BornTimestampMs, BornHost: r.Conn.Remote(), StoreHost: p.b.StoreHost, Body: r.Body,
		Properties: messages.ViewProperties(e.properties),
	}
	if topic.TopicFilterType == metadata.FilterMultiTag {
		e.message.SysFlag |= messages.SysFlagMultiTags
	}
	return sent
}

// putCode says a put's status in the protocol's codes (spec/remoting.md §8.4).
func putCode(status messages.PutStatus, err error) (int, string) {
	because := ""
	if err != nil {
		because = " " + err.Error()
	}
	switch status {
	case messages.PutOK:
		return remoting.ResponseSuccess, ""
	case messages.FlushDiskTimeout:
		return remoting.ResponseFlushDiskTimeout, ""
	case messages.FlushSlaveTimeout:
		return remoting.ResponseFlushSlaveTimeout, ""
	case messages.SlaveNotAvailable:
		return remoting.ResponseSlaveNotAvailable, ""
	case messages.MessageIllegal, messages.PropertiesSizeExceeded:
		return remoting.ResponseMessageIllegal,
			"the message is illegal, maybe msg body or properties length not matched." + because
	case messages.ServiceNotAvailable:
		return remoting.ResponseServiceNotAvailable, "service not available now." + because
	case messages.OSPageCacheBusy:
		return remoting.ResponseSystemError, "[PC_SYNCHRONIZED]broker busy, start flow control for a while." + because
	case messages.CreateMapedFileFailed:
		return remoting.ResponseSystemError, "create mapped file failed, server is busy or broken." + because
	}
	return remoting.ResponseSystemError, status.String() + because
}

// deadline is when a put of now has to be answered.
func (p *Producers) deadline(now time.Time) time.Time { return now.Add(p.b.PutTimeout) }
