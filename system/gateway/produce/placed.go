package produce

import (
	"time"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway/broker"
)

// placed takes the store's answer back to the producer. It is told once, and serves another send then.
type placed struct {
	producers *Producers
	r         *gateway.Request
	topic     string // of the topic table
	queueID   int32
	half      bool    // of a transaction
	batch     bool    // the answer names each message
	sizes     []int32 // of the records of a batch
	ids       []byte  // what the answer calls the messages

	pushed  bool  // a reply: what is answered is whether it was pushed
	pushErr error // why it was not

	answer remoting.SendMessageAnswer
	tell   func(messages.PutResult, error) // done, bound once
}

func (p *Producers) placed(r *gateway.Request, topic string, queueID int32) *placed {
	d, ok := p.pool.Get().(*placed)
	if !ok {
		d = &placed{producers: p}
		d.tell = d.done
	}
	d.r, d.topic, d.queueID = r, topic, queueID
	return d
}

// The memory for a batch that is kept for the next one.
const (
	mostSizes   = 1024
	mostIDBytes = mostSizes * longestID
)

func (d *placed) recycle() {
	sizes := d.sizes[:0]
	if cap(sizes) > mostSizes {
		sizes = nil
	}
	ids := d.ids[:0]
	if cap(ids) > mostIDBytes {
		ids = nil
	}
	*d = placed{producers: d.producers, tell: d.tell, sizes: sizes, ids: ids}
	d.producers.pool.Put(d)
}

// done runs on an actor's goroutine.
func (d *placed) done(result messages.PutResult, err error) {
	defer d.recycle()
	p := d.producers
	p.b.Stats.PutTook(time.Since(d.r.At), result.Status)
	code, remark := putCode(result.Status, err)
	if d.pushed {
		code, remark = remoting.ResponseSuccess, ""
		if d.pushErr != nil {
			code, remark = broker.Code(d.pushErr)
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
		if t := p.b.Tracer; t != nil {
			t.Stored(result, d.sizes, d.r.At)
		}
	}
	if d.r.IsOneWay() {
		d.r.Reply(code, remark, nil)
		return
	}
	if result.Alone {
		d.r.Prompt()
	}
	d.answer = remoting.SendMessageAnswer{
		QueueID: d.queueID, QueueOffset: int64(result.QueueOffset), MsgRegion: p.b.Region, TraceOn: !p.b.Policy().TraceOff,
	}
	switch {
	case !result.Status.Stored():
		d.answer.MsgID, d.answer.QueueOffset = "0", 0
	case d.batch:
		d.ids = appendBatchIDs(d.ids, d.sizes, p.b.StoreHost, result.PhysicalOffset)
	default:
		d.ids = messages.AppendOffsetMessageID(d.ids, p.b.StoreHost, result.PhysicalOffset)
	}
	if result.Status.Stored() {
		d.answer.MsgID = string(messages.ViewProperties(d.ids)) // not copied: it is in the frame when Reply returns
	}
	d.r.Reply(code, remark, &d.answer)
}
