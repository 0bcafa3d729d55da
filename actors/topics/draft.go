package topics

import (
	"fmt"
	"strings"

	"github.com/actormq/actormq/actors/keeper"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
)

// maxQueues bounds the queues of a topic.
const maxQueues = 1 << 16

// draft is a change in the making.
type draft struct {
	*keeper.Draft[metadata.TopicConfig]
}

func (d draft) set(topic metadata.TopicConfig) { d.Set(topic.TopicName, topic) }

// update applies UpdateTopic.
func (d draft) update(m *messages.UpdateTopic) error {
	if err := messages.CheckTopicName(m.Topic); err != nil {
		return err
	}
	topic, _ := d.Get(m.Topic) // order, and members that this version does not know, stay
	topic.TopicName, topic.TopicSysFlag, topic.Perm = strings.Clone(m.Topic), m.SysFlag, m.Perm
	topic.ReadQueueNums, topic.WriteQueueNums = m.ReadQueues, m.WriteQueues
	topic.TopicFilterType = strings.Clone(m.FilterType)
	if m.FilterType == "" {
		topic.TopicFilterType = metadata.FilterSingleTag
	}
	if err := check(&topic); err != nil {
		return err
	}
	d.set(topic)
	return nil
}

// check bounds the numbers of a configuration that comes from outside.
func check(t *metadata.TopicConfig) error {
	switch {
	case t.ReadQueueNums < 0 || t.ReadQueueNums > maxQueues:
		return fmt.Errorf("%w: topic %s: readQueueNums %d, limits 0 and %d",
			messages.ErrTopicConfig, t.TopicName, t.ReadQueueNums, maxQueues)
	case t.WriteQueueNums < 0 || t.WriteQueueNums > maxQueues:
		return fmt.Errorf("%w: topic %s: writeQueueNums %d, limits 0 and %d",
			messages.ErrTopicConfig, t.TopicName, t.WriteQueueNums, maxQueues)
	case t.Perm < 0 || t.Perm > 15:
		return fmt.Errorf("%w: topic %s: perm %d, limits 0 and 15", messages.ErrTopicConfig, t.TopicName, t.Perm)
	case t.TopicFilterType != metadata.FilterSingleTag && t.TopicFilterType != metadata.FilterMultiTag:
		return fmt.Errorf("%w: topic %s: topicFilterType %.50q is neither %s nor %s", messages.ErrTopicConfig,
			t.TopicName, t.TopicFilterType, metadata.FilterSingleTag, metadata.FilterMultiTag)
	}
	return nil
}

// ensure applies EnsureTopic.
func (d draft) ensure(m *messages.EnsureTopic) error {
	if _, there := d.Get(m.Topic); there {
		return nil
	}
	if err := messages.CheckTopicName(m.Topic); err != nil {
		return err
	}
	topic := topicOf(m.Topic, m.Queues, m.Perm)
	topic.TopicSysFlag = m.SysFlag
	if err := check(&topic); err != nil {
		return err
	}
	d.set(topic)
	return nil
}

// ensureForSend applies EnsureTopicForSend (spec/remoting.md §8.3).
func (d draft) ensureForSend(m *messages.EnsureTopicForSend) error {
	if _, there := d.Get(m.Topic); there {
		return nil
	}
	if err := messages.CheckTopicName(m.Topic); err != nil {
		return err
	}
	retry := strings.HasPrefix(m.Topic, messages.RetryTopicPrefix)
	topic, ok := d.inherit(m)
	switch {
	case ok:
	case retry:
		topic = topicOf(m.Topic, 1, readWrite)
	default:
		return fmt.Errorf("%w: %s, and %.200q is no template for it", messages.ErrTopicNotExist, m.Topic, m.DefaultTopic)
	}
	if m.Unit {
		topic.TopicSysFlag = messages.TopicSysFlagUnit
		if retry {
			topic.TopicSysFlag = messages.TopicSysFlagUnitSub
		}
	}
	d.set(topic)
	return nil
}

// inherit makes a topic after the template that the producer names; ok is false when that is none.
func (d draft) inherit(m *messages.EnsureTopicForSend) (topic metadata.TopicConfig, ok bool) {
	from, there := d.Get(m.DefaultTopic)
	if !there || from.Perm&metadata.PermInherit == 0 {
		return topic, false
	}
	queues := max(min(m.DefaultQueues, from.WriteQueueNums), 0)
	topic = topicOf(m.Topic, queues, from.Perm&^metadata.PermInherit)
	topic.TopicFilterType = from.TopicFilterType
	return topic, true
}

// order applies OrderTopics.
func (d draft) order(m *messages.OrderTopics) {
	ordered := make(map[string]struct{}, len(m.Topics))
	for _, topic := range m.Topics {
		ordered[topic] = struct{}{}
	}
	var changed []metadata.TopicConfig
	for _, topic := range d.All() {
		if _, want := ordered[topic.TopicName]; want != topic.Order {
			topic.Order = want
			changed = append(changed, topic)
		}
	}
	for _, topic := range changed {
		d.set(topic)
	}
}
