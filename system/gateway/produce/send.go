package produce

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/actors/transaction"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system/gateway/broker"
)

// Producers answers the requests of producers. Safe for concurrent use.
type Producers struct {
	b *broker.Broker
}

// New returns the handlers.
func New(b *broker.Broker) *Producers { return &Producers{b: b} }

// Routes are the request codes that this package serves.
func (p *Producers) Routes() gateway.Routes {
	send := gateway.Route{Handle: p.send, Lane: gateway.Quick, RefuseWhenStopping: true}
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

// refusal is why a send is not stored, in the protocol's words.
type refusal struct {
	code   int
	remark string
}

func (e *refusal) Error() string { return e.remark }

func refuse(code int, format string, args ...any) error {
	return &refusal{code: code, remark: fmt.Sprintf(format, args...)}
}

// codeOf says any error of this package in the protocol's words.
func codeOf(err error) (int, string) {
	var no *refusal
	if errors.As(err, &no) {
		return no.code, no.remark
	}
	return broker.Code(err)
}

// fail answers a send; its errors too carry the two fields that clients read (spec/remoting.md §8.5).
func (p *Producers) fail(r *gateway.Request, err error) {
	code, remark := codeOf(err)
	p.failWith(r, code, remark)
}

func (p *Producers) failWith(r *gateway.Request, code int, remark string) {
	c := r.Command.Answer(code, remark)
	c.ExtFields = remoting.Ext{
		{Name: remoting.ExtMsgRegion, Value: p.b.Region}, {Name: remoting.ExtTraceOn, Value: broker.Bool(!p.b.Policy().TraceOff)},
	}
	r.Answer(c)
}

// send answers 10, 310 and 320; the header's batch flag decides on the form of the body, not the code.
func (p *Producers) send(r *gateway.Request) {
	h, err := remoting.DecodeSend(r.Command)
	if err != nil {
		p.failWith(r, remoting.ResponseSystemError, err.Error())
		return
	}
	topic, err := p.topicOf(r, &h)
	if err != nil {
		p.fail(r, err)
		return
	}
	if h.QueueID < 0 {
		h.QueueID = randomQueue(topic.WriteQueueNums)
	}
	if h.Batch {
		p.putBatch(r, &h, topic)
		return
	}
	m, err := p.messageOf(r, &h, topic)
	if err != nil {
		p.fail(r, err)
		return
	}
	id := &placed{
		producers: p, r: r, topic: topic.TopicName, queueID: h.QueueID, half: m.Topic == messages.TopicTransactionHalf,
	}
	p.b.Store.PutAsync(m, waits(h.Properties), p.deadline(r.At), id.done)
}

// messageOf is the message as it is handed to the store: in the topic where it belongs, with the broker's own properties.
func (p *Producers) messageOf(r *gateway.Request, h *remoting.SendMessageHeader, topic metadata.TopicConfig) (*messages.Message, error) {
	m := p.envelope(r, h, topic)
	if strings.HasPrefix(h.Topic, messages.RetryTopicPrefix) {
		if err := p.retried(r, h, m); err != nil {
			return nil, err
		}
	}
	if transaction.IsHalf(m.Properties) {
		if p.b.Policy().RejectHalf || p.b.Transactions == nil {
			return nil, refuse(remoting.ResponseNoPermission, "the broker[%s] sending transaction message is forbidden", p.b.Address)
		}
		return m, p.halve(r, h, m)
	}
	return m, nil
}

// envelope is what one message and a batch have in common.
func (p *Producers) envelope(r *gateway.Request, h *remoting.SendMessageHeader, topic metadata.TopicConfig) *messages.Message {
	m := &messages.Message{
		Topic: topic.TopicName, QueueID: h.QueueID, Flag: h.Flag, SysFlag: h.SysFlag, ReconsumeTimes: h.ReconsumeTimes,
		BornTimestampMs: h.BornTimestampMs, BornHost: r.Conn.Remote(), StoreHost: p.b.StoreHost, Body: r.Body,
		Properties: p.stored(h.Properties),
	}
	if topic.TopicFilterType == metadata.FilterMultiTag {
		m.SysFlag |= messages.SysFlagMultiTags
	}
	return m
}

// stored are the properties as they are stored: without WAIT, and with the cluster's name, which a consumer needs to reply
// to a request (spec/remoting.md §8.2, §12.3).
func (p *Producers) stored(wire string) messages.Properties {
	return messages.Properties(wire).Without(messages.PropertyWait).With(messages.PropertyCluster, p.b.ClusterName)
}

// waits tells whether the sender wants to wait for flush and replicas.
func waits(properties string) bool {
	wait, _ := messages.Properties(properties).Get(messages.PropertyWait)
	return !strings.EqualFold(wait, "false")
}

// placed takes the store's answer back to the producer.
type placed struct {
	producers *Producers
	r         *gateway.Request
	topic     string // of the topic table
	queueID   int32
	batch     *messages.Message // nil: one message
	half      bool              // of a transaction

	pushed  bool  // a reply: what is answered is whether it was pushed
	pushErr error // why it was not
}

// done runs on an actor's goroutine.
func (d *placed) done(result messages.PutResult, err error) {
	p := d.producers
	p.b.Stats.PutTook(time.Since(d.r.At), result.Status)
	code, remark := putCode(result.Status, err)
	if d.pushed {
		code, remark = remoting.ResponseSuccess, ""
		if d.pushErr != nil {
			code, remark = codeOf(d.pushErr)
		}
	} else if !result.Status.Stored() {
		p.failWith(d.r, code, remark)
		return
	}
	if d.half {
		p.b.Transactions.Prepared(result.QueueOffset)
	}
	if result.Status.Stored() {
		p.b.Stats.Put(d.topic, int(result.Count), int(result.Bytes))
	}
	h := remoting.SendMessageAnswer{
		QueueID: d.queueID, QueueOffset: int64(result.QueueOffset), MsgRegion: p.b.Region, TraceOn: !p.b.Policy().TraceOff,
	}
	switch {
	case !result.Status.Stored():
		h.MsgID, h.QueueOffset = "0", 0
	case d.batch == nil:
		h.MsgID = messages.OffsetMessageID(p.b.StoreHost, result.PhysicalOffset)
	default:
		h.MsgID = batchIDs(d.batch, p.b.StoreHost, result.PhysicalOffset)
	}
	c := d.r.Command.Answer(code, remark)
	c.ExtFields = remoting.ToExt(&h)
	d.r.Answer(c)
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
