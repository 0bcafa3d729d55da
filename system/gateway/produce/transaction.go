package produce

import (
	"errors"
	"fmt"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/actors/transaction"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system/gateway/broker"
)

// halve turns a message into a half message. The client's WAIT is stored with it, as the original does (spec/store.md §11.1).
func (p *Producers) halve(r *gateway.Request, h *remoting.SendMessageHeader, m *messages.Message) error {
	for _, topic := range []string{messages.TopicTransactionHalf, messages.TopicTransactionOp, messages.TopicTransCheckMaxTime} {
		if _, ok := p.b.Topics.Lookup(topic); ok {
			continue
		}
		r.Pause()
		ctx, cancel := p.b.Context()
		_, err := p.b.Topics.EnsureInternal(ctx, topic)
		cancel()
		if err != nil {
			return err
		}
	}
	if wait, ok := messages.Properties(h.Properties).Get(messages.PropertyWait); ok {
		m.Properties = m.Properties.With(messages.PropertyWait, wait)
	}
	transaction.Halve(m)
	return nil
}

// endTransaction answers 37, always (spec/remoting.md §12.1).
func (p *Producers) endTransaction(r *gateway.Request) {
	var h remoting.EndTransactionHeader
	if !broker.Header(r, &h) {
		return
	}
	if p.b.Transactions == nil {
		r.Fail(remoting.ResponseSlaveNotAvailable, "a transaction can't be ended at a slave")
		return
	}
	if h.CommitOrRollback != messages.SysFlagTransactionCommit && h.CommitOrRollback != messages.SysFlagTransactionRollback {
		r.OK(nil) // the producer does not know yet: it is asked again
		return
	}
	p.b.Transactions.End(&messages.EndTransaction{
		Half: messages.Half{
			Group: h.ProducerGroup, QueueOffset: messages.QueueOffset(h.TranStateTableOffset),
			PhysicalOffset: messages.PhysicalOffset(h.CommitLogOffset),
		},
		Commit: h.CommitOrRollback == messages.SysFlagTransactionCommit, Deadline: p.deadline(r.At),
		Done: func(result messages.PutResult, err error) {
			if code, remark := endCode(result, err); code != remoting.ResponseSuccess {
				p.b.Noise.Warn().Str("group", h.ProducerGroup).Int64("half", h.TranStateTableOffset).Str("remark", remark).
					Msg("a transaction could not be ended")
				r.Fail(code, remark)
				return
			}
			r.OK(nil)
		},
	})
}

// endCode says the end of a transaction in the original's codes and words.
func endCode(result messages.PutResult, err error) (int, string) {
	switch {
	case err == nil:
		return remoting.ResponseSuccess, ""
	case errors.Is(err, messages.ErrNoHalf):
		return remoting.ResponseSystemError, "Find prepared transaction message failed"
	case errors.Is(err, messages.ErrTransactionGroup):
		return remoting.ResponseSystemError, "The producer group wrong"
	case errors.Is(err, messages.ErrTransactionOffset):
		return remoting.ResponseSystemError, "The transaction state table offset wrong"
	case result.Status.Stored():
		return broker.Code(err)
	}
	return putCode(result.Status, err)
}

// CheckBack asks an online producer of a half message's group what has become of it (spec/remoting.md §12.2); it tells whether one
// was asked.
func (p *Producers) CheckBack(c messages.CheckTransaction) bool {
	body, err := record.Append(nil, &c.Message.Message)
	if err != nil {
		p.b.Logger.Error().Err(err).Int64("half", int64(c.QueueOffset)).Msg("a half message can't be shown to its producer")
		return false
	}
	record.SetPlace(body, c.Message.QueueOffset, c.Message.PhysicalOffset, c.Message.StoreTimestampMs)
	key, _ := c.Message.Properties.Get(messages.PropertyUniqKey)
	for range p.b.Clients.Producers(c.Group) {
		client := p.b.Clients.NextProducer(c.Group)
		if client == nil {
			return false
		}
		conn, ok := client.Channel.(*gateway.Conn)
		if !ok {
			continue
		}
		ask := remoting.NewRequest(remoting.RequestCheckTransactionState, &remoting.CheckTransactionHeader{
			TranStateTableOffset: int64(c.QueueOffset), CommitLogOffset: int64(c.PhysicalOffset), MsgID: key, TransactionID: key,
			OffsetMsgID: c.Message.OffsetMessageID(),
		})
		ask.Body = body
		if conn.Push(ask) == nil {
			return true
		}
	}
	return false
}

// resume answers 323: a half message that was given up is checked anew (spec/remoting.md §17.6).
func (p *Producers) resume(r *gateway.Request) {
	var h remoting.ResumeHalfHeader
	if !broker.Header(r, &h) {
		return
	}
	m, err := p.givenUp(h.MsgID)
	if err != nil {
		r.Fail(remoting.ResponseSystemError, err.Error())
		return
	}
	p.b.Store.PutAsync(m, true, p.deadline(r.At), func(result messages.PutResult, err error) {
		if !result.Status.Stored() {
			r.Fail(remoting.ResponseSystemError, fmt.Sprint("Put message back to RMQ_SYS_TRANS_HALF_TOPIC failed. ", err))
			return
		}
		p.b.Transactions.Prepared(result.QueueOffset)
		r.OK(nil)
	})
}

func (p *Producers) givenUp(id string) (*messages.Message, error) {
	if p.b.Transactions == nil {
		return nil, errors.New("a slave has no transactions")
	}
	_, at, err := messages.ParseOffsetMessageID(id)
	if err != nil {
		return nil, err
	}
	m, err := p.b.Store.MessageAt(at)
	if err != nil {
		return nil, err
	}
	return transaction.Resumed(&m)
}
