package produce

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system/gateway/broker"
)

// topicOf is the topic of a send, made if it has to be: checks 2 to 6 of spec/remoting.md §8.2. That a topic may not be
// written is only checked on request, as the original does not: clients look at the route.
func (p *Producers) topicOf(r *gateway.Request, h *remoting.SendMessageHeader) (metadata.TopicConfig, error) {
	topic, known := p.b.Topics.Lookup(h.Topic)
	if err := p.b.Admit(r.At, topic.Order); err != nil {
		return topic, err
	}
	if err := checkName(h); err != nil {
		return topic, err
	}
	if messages.IsReservedTopic(h.Topic) {
		return topic, broker.Refuse(remoting.ResponseNoPermission, "Sending message to topic[%s] is forbidden.", h.Topic)
	}
	if !known {
		var err error
		if topic, err = p.create(r, h); err != nil {
			return topic, err
		}
	}
	if p.b.Policy().CheckWrites && topic.Perm&metadata.PermWrite == 0 {
		return topic, broker.Refuse(remoting.ResponseNoPermission, "the topic[%s] sending message is forbidden", topic.TopicName)
	}
	return topic, checkQueue(r, h, topic)
}

// checkName refuses names that no topic has; of a batch, one that is too long is an illegal message, and so is a retry topic: what is
// sent there is looked at one by one (spec/remoting.md §10.4).
func checkName(h *remoting.SendMessageHeader) error {
	err := messages.CheckTopicName(h.Topic)
	if err != nil && h.Batch && len(h.Topic) > messages.MaxTopicBytes {
		return broker.Refuse(remoting.ResponseMessageIllegal, "message topic length too long %d", len(h.Topic))
	}
	if err == nil && h.Batch && strings.HasPrefix(h.Topic, messages.RetryTopicPrefix) {
		return broker.Refuse(remoting.ResponseMessageIllegal, "batch request does not support retry group %s", h.Topic)
	}
	return err
}

func checkQueue(r *gateway.Request, h *remoting.SendMessageHeader, topic metadata.TopicConfig) error {
	if most := max(topic.WriteQueueNums, topic.ReadQueueNums); int(h.QueueID) >= most {
		return broker.Refuse(remoting.ResponseSystemError, "request queueId[%d] is illegal, topic %s has %d queues, producer %s",
			h.QueueID, topic.TopicName, most, r.Conn.RemoteAddr())
	}
	if h.QueueID < 0 && topic.WriteQueueNums <= 0 {
		return broker.Refuse(remoting.ResponseSystemError, "topic %s has no queue to write to", topic.TopicName)
	}
	return nil
}

// create makes the topic of a send after the template that the producer names (spec/remoting.md §8.3).
func (p *Producers) create(r *gateway.Request, h *remoting.SendMessageHeader) (metadata.TopicConfig, error) {
	r.Pause()
	ctx, cancel := p.b.Context()
	defer cancel()
	topic, err := p.b.Topics.EnsureForSend(
		ctx, strings.Clone(h.Topic), strings.Clone(h.DefaultTopic), int(h.DefaultTopicQueueNums), h.UnitMode)
	if errors.Is(err, messages.ErrTopicNotExist) {
		err = broker.Refuse(remoting.ResponseTopicNotExist, "topic[%s] not exist, apply first please!%s", h.Topic, broker.SeeFAQ)
	}
	return topic, err
}

// randomQueue picks one of n queues.
func randomQueue(n int) int32 { return rand.Int32N(int32(max(n, 1))) }

// messagesIn counts the messages of a batch by their lengths (spec/store.md §2.10); what is wrong with one is found later.
func messagesIn(batch []byte) (n int) {
	const least = 4 // the length itself
	for len(batch) >= least {
		size := binary.BigEndian.Uint32(batch)
		if size < least || int64(size) > int64(len(batch)) {
			break
		}
		n++
		batch = batch[size:]
	}
	return max(n, 1)
}
