package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system/gateway/broker"
)

// unsaid is the remark of successes for which the original sets no code.
const unsaid = "not set any response code"

// updateTopic answers 17.
func (t *Tools) updateTopic(r *gateway.Request) {
	var h remoting.CreateTopicHeader
	if !broker.Header(r, &h) {
		return
	}
	ctx, cancel := t.b.Context()
	defer cancel()
	err := t.b.Topics.Update(ctx, metadata.TopicConfig{
		TopicName: h.Topic, ReadQueueNums: int(h.ReadQueueNums), WriteQueueNums: int(h.WriteQueueNums), Perm: int(h.Perm),
		TopicFilterType: h.TopicFilterType, TopicSysFlag: int(h.TopicSysFlag),
	})
	if err != nil {
		failTopic(r, h.Topic, err)
		return
	}
	r.Answer(r.Command.Answer(remoting.ResponseSuccess, unsaid))
}

func failTopic(r *gateway.Request, topic string, err error) {
	if errors.Is(err, messages.ErrSystemTopic) {
		r.Fail(remoting.ResponseSystemError, fmt.Sprintf("The topic[%s] is conflict with system topic.", topic))
		return
	}
	broker.Fail(r, err)
}

// deleteTopic answers 215: the configuration, then the queues, and how far groups were in them; so one that is made again
// under the same name begins anew. A topic that is not there is no error.
func (t *Tools) deleteTopic(r *gateway.Request) {
	var h remoting.TopicHeader
	if !broker.Header(r, &h) {
		return
	}
	if err := messages.CheckTopicName(h.Topic); err != nil {
		broker.Fail(r, err)
		return
	}
	ctx, cancel := t.b.Context()
	defer cancel()
	if err := t.b.Topics.Delete(ctx, h.Topic); err != nil {
		failTopic(r, h.Topic, err)
		return
	}
	if err := t.clear(ctx, h.Topic); err != nil {
		broker.Fail(r, fmt.Errorf("topic %s is deleted, but not all that belongs to it: %w", h.Topic, err))
		return
	}
	r.OK(nil)
}

func (t *Tools) clear(ctx context.Context, topic string) error {
	t.b.Stats.Forget(topic)
	_, err := t.b.Offsets.Remove(ctx, "", topic)
	if d, ok := t.b.Store.(broker.TopicDeleter); ok {
		err = errors.Join(err, d.DeleteTopic(ctx, topic))
	}
	return err
}

// topic looks up the topic that a request is about; it refuses the request when there is none.
func (t *Tools) topic(r *gateway.Request, name string) (metadata.TopicConfig, bool) {
	topic, ok := t.b.Topics.Lookup(name)
	if !ok {
		r.Fail(remoting.ResponseTopicNotExist, "topic["+name+"] not exist")
	}
	return topic, ok
}

// topicStats answers 202: the range of each queue that is written to.
func (t *Tools) topicStats(r *gateway.Request) {
	var h remoting.TopicHeader
	if !broker.Header(r, &h) {
		return
	}
	topic, ok := t.topic(r, h.Topic)
	if !ok {
		return
	}
	answer := remoting.TopicStats{OffsetTable: map[remoting.MessageQueue]remoting.TopicOffset{}}
	for id := range int32(topic.WriteQueueNums) {
		q := messages.QueueKey{Topic: topic.TopicName, QueueID: id}
		o := remoting.TopicOffset{MinOffset: int64(t.b.Store.MinOffset(q)), MaxOffset: int64(t.b.Store.MaxOffset(q))}
		o.LastUpdateTimestampMs = t.timeBefore(q, messages.QueueOffset(o.MaxOffset))
		answer.OffsetTable[t.queue(q)] = o
	}
	r.OKBody(&answer)
}

// timeBefore is the store time (ms) of the message before an offset, 0 when there is none.
func (t *Tools) timeBefore(q messages.QueueKey, at messages.QueueOffset) int64 {
	if at <= 0 {
		return 0
	}
	ms, err := t.b.Store.StoreTime(q, at-1)
	if err != nil {
		return 0 // cleaned: tools show it as unknown
	}
	return ms
}

func (t *Tools) queue(q messages.QueueKey) remoting.MessageQueue {
	return remoting.MessageQueue{BrokerName: t.b.BrokerName, QueueID: q.QueueID, Topic: q.Topic}
}

// systemTopics answers 305.
func (t *Tools) systemTopics(r *gateway.Request) {
	r.OKBody(&remoting.TopicList{TopicList: t.b.Topics.SystemTopics()})
}

// allTopics answers 21.
func (t *Tools) allTopics(r *gateway.Request) {
	t.raw(r, t.b.Topics.JSON, remoting.Ext{})
}

// raw answers with a body that is JSON already.
func (t *Tools) raw(r *gateway.Request, body func() ([]byte, error), ext remoting.Ext) {
	text, err := body()
	if err != nil {
		broker.Fail(r, err)
		return
	}
	a := r.Command.Answer(remoting.ResponseSuccess, "")
	a.ExtFields, a.Body = ext, text
	r.Answer(a)
}

// consumersOf answers 300: the groups that are online or have been.
func (t *Tools) consumersOf(r *gateway.Request) {
	var h remoting.TopicHeader
	if !broker.Header(r, &h) {
		return
	}
	groups := append(t.b.Clients.Subscribers(h.Topic), t.b.Offsets.Groups(h.Topic)...)
	slices.Sort(groups)
	r.OKBody(&remoting.GroupList{GroupList: append([]string{}, slices.Compact(groups)...)})
}
