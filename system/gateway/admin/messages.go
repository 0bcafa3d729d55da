package admin

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system/gateway/broker"
)

const (
	// maxQueried bounds what a tool may ask for by key.
	maxQueried = 256
	// maxQueriedBytes bounds the records of one answer: it has to fit into a frame.
	maxQueriedBytes = 12 << 20
	// maxUnits bounds the units of one QUERY_CONSUME_QUEUE.
	maxUnits = 1024
)

// rawOf is a stored message as its record.
func rawOf(dst []byte, m *messages.StoredMessage) ([]byte, error) {
	from := len(dst)
	dst, err := record.Append(dst, &m.Message)
	if err == nil {
		record.SetPlace(dst[from:], m.QueueOffset, m.PhysicalOffset, m.StoreTimestampMs)
	}
	return dst, err
}

// view answers 33.
func (t *Tools) view(r *gateway.Request) {
	var h remoting.ViewMessageHeader
	if !broker.Header(r, &h) {
		return
	}
	m, err := t.b.Store.MessageAt(messages.PhysicalOffset(h.Offset))
	a := r.Command.Answer(remoting.ResponseSuccess, "")
	if err == nil {
		a.Body, err = rawOf(nil, &m)
	}
	if err != nil {
		r.Fail(remoting.ResponseSystemError, "can not find message by the offset, "+strconv.FormatInt(h.Offset, 10)+": "+err.Error())
		return
	}
	r.Answer(a)
}

// skewMs is how far the clock of a client may be off: the window of a query by unique key begins at the client's time of birth.
const skewMs = 10_000

// query answers 12.
func (t *Tools) query(r *gateway.Request) {
	var h remoting.QueryMessageHeader
	if !broker.Header(r, &h) {
		return
	}
	most, begin, end := int(h.MaxNum), h.BeginTimestampMs, h.EndTimestampMs
	if h.UniqueKey {
		most = t.b.Policy().DefaultQueryMax
		begin = max(begin, skewMs) - skewMs
		end += min(skewMs, math.MaxInt64-max(end, 0))
	}
	found, err := t.b.Store.Query(context.Background(), messages.QueryMessage{
		Topic: h.Topic, Key: h.Key, MaxMessages: min(max(most, 1), maxQueried), BeginMs: begin, EndMs: end,
	})
	if err != nil {
		broker.Fail(r, err)
		return
	}
	a := r.Command.Answer(remoting.ResponseSuccess, "")
	for i := range found {
		if len(a.Body)+int(found[i].StoreSize) > maxQueriedBytes && i > 0 {
			break
		}
		if a.Body, err = rawOf(a.Body, &found[i]); err != nil {
			broker.Fail(r, err)
			return
		}
	}
	if len(found) == 0 {
		a = r.Command.Answer(remoting.ResponseQueryNotFound, "can not find message, maybe time range not correct")
	}
	var indexed remoting.QueryMessageAnswer // zero when nothing is found, as in the original
	if len(found) > 0 {
		_, end := t.b.Store.LogRange()
		indexed.IndexLastUpdateTimestampMs, indexed.IndexLastUpdatePhyOffset = time.Now().UnixMilli(), int64(end)
	}
	a.ExtFields = remoting.ToExt(&indexed)
	r.Answer(a)
}

// queryQueue answers 321: units of a consume queue, and a group's subscription. What becomes of a unit is not said: the
// original says it only of units with an extension.
func (t *Tools) queryQueue(r *gateway.Request) {
	var h remoting.QueryConsumeQueueHeader
	if !broker.Header(r, &h) {
		return
	}
	topic, ok := t.b.Topics.Lookup(h.Topic)
	if !ok || h.QueueID < 0 || int(h.QueueID) >= max(topic.ReadQueueNums, topic.WriteQueueNums) {
		r.Fail(remoting.ResponseSystemError, strconv.Itoa(int(h.QueueID))+"@"+h.Topic+" is not exist!")
		return
	}
	q := messages.QueueKey{Topic: topic.TopicName, QueueID: h.QueueID}
	answer := remoting.ConsumeQueueData{
		MaxQueueIndex: int64(t.b.Store.MaxOffset(q)), MinQueueIndex: int64(t.b.Store.MinOffset(q)),
		QueueData: []remoting.ConsumeQueueUnit{},
	}
	if group := t.b.Clients.Consumers(h.ConsumerGroup); group != nil && group.Subscriptions[topic.TopicName] != nil {
		wire := remoting.SubscriptionData(group.Subscriptions[topic.TopicName].Subscription)
		answer.SubscriptionData, answer.FilterData = &wire, "null"
	} else if h.ConsumerGroup != "" {
		answer.FilterData = h.ConsumerGroup + "@" + topic.TopicName + " is not online!"
	}
	var err error
	if answer.QueueData, err = t.units(q, messages.QueueOffset(h.Index), int(h.Count)); err != nil {
		broker.Fail(r, err)
		return
	}
	a := r.Command.Answer(remoting.ResponseSuccess, unsaid)
	if err := a.EncodeBody(&answer); err != nil {
		broker.Fail(r, err)
		return
	}
	r.Answer(a)
}

// units reads count units of a queue from an offset on. They are read from the log: what a unit holds, its record says.
func (t *Tools) units(
	q messages.QueueKey, at messages.QueueOffset, count int,
) ([]remoting.ConsumeQueueUnit, error) {
	units := []remoting.ConsumeQueueUnit{}
	for count = min(count, maxUnits); len(units) < count; {
		found, err := t.b.Store.Get(context.Background(), messages.GetMessage{
			Queue: q, Offset: at, MaxMessages: count - len(units),
		})
		if err != nil {
			return units, err
		}
		n := len(found.Records)
		at = found.NextOffset
		err = vfs.Guard("read messages", func() error {
			for _, raw := range found.Records {
				u, err := t.unit(raw)
				if err != nil {
					return err
				}
				units = append(units, u)
			}
			return nil
		})
		found.Release()
		if err != nil || n == 0 {
			return units, err
		}
	}
	return units, nil
}

func (t *Tools) unit(raw []byte) (remoting.ConsumeQueueUnit, error) {
	rec, _, err := record.Parse(raw, false)
	if err != nil {
		return remoting.ConsumeQueueUnit{}, err
	}
	return remoting.ConsumeQueueUnit{
		PhysicOffset: int64(rec.PhysicalOffset), PhysicSize: rec.Size, TagsCode: rec.TagsCode(t.b.Delays.Millis),
	}, nil
}
