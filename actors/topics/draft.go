package topics

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
)

// maxQueues bounds the queues of a topic.
const maxQueues = 1 << 16

// state is what is published: it never changes.
type state struct {
	topics  *actors.Table[string, metadata.TopicConfig]
	version metadata.DataVersion
	unknown metadata.Unknown // members of the file that this version does not know
}

// file is the content of topics.json.
func (s *state) file() metadata.TopicTable {
	return metadata.TopicTable{DataVersion: s.version, Topics: maps.Collect(s.topics.All()), Unknown: s.unknown}
}

// draft is a change in the making. It belongs to the actor.
type draft struct {
	edit    *actors.TableEdit[string, metadata.TopicConfig]
	version metadata.DataVersion
	unknown metadata.Unknown
	changed map[string]struct{}
	removed map[string]struct{}
	dirty   bool
}

func newDraft(s *state) *draft {
	return &draft{
		edit: s.topics.Edit(), version: s.version, unknown: s.unknown,
		changed: map[string]struct{}{}, removed: map[string]struct{}{},
	}
}

func (d *draft) set(topic metadata.TopicConfig) {
	if have, there := d.edit.Get(topic.TopicName); there && reflect.DeepEqual(have, topic) {
		return
	}
	d.edit.Set(topic.TopicName, topic)
	d.changed[topic.TopicName] = struct{}{}
	d.advance()
}

func (d *draft) remove(topic string) {
	if !d.edit.Delete(topic) {
		return
	}
	delete(d.changed, topic)
	d.removed[topic] = struct{}{}
	d.advance()
}

func (d *draft) advance() {
	d.version.Advance(time.Now().UnixMilli())
	d.dirty = true
}

func (d *draft) state() *state {
	return &state{topics: d.edit.Table(), version: d.version, unknown: d.unknown}
}

func (d *draft) news() messages.TopicsChanged {
	return messages.TopicsChanged{
		Changed: slices.Sorted(maps.Keys(d.changed)), Removed: slices.Sorted(maps.Keys(d.removed)),
	}
}

// update applies UpdateTopic.
func (d *draft) update(m *messages.UpdateTopic) error {
	if err := messages.CheckTopicName(m.Topic); err != nil {
		return err
	}
	topic, _ := d.edit.Get(m.Topic) // order, and members that this version does not know, stay
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
func (d *draft) ensure(m *messages.EnsureTopic) error {
	if _, there := d.edit.Get(m.Topic); there {
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
func (d *draft) ensureForSend(m *messages.EnsureTopicForSend) error {
	if _, there := d.edit.Get(m.Topic); there {
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
func (d *draft) inherit(m *messages.EnsureTopicForSend) (topic metadata.TopicConfig, ok bool) {
	from, there := d.edit.Get(m.DefaultTopic)
	if !there || from.Perm&metadata.PermInherit == 0 {
		return topic, false
	}
	queues := max(min(m.DefaultQueues, from.WriteQueueNums), 0)
	topic = topicOf(m.Topic, queues, from.Perm&^metadata.PermInherit)
	topic.TopicFilterType = from.TopicFilterType
	return topic, true
}

// order applies OrderTopics.
func (d *draft) order(m *messages.OrderTopics) {
	ordered := make(map[string]struct{}, len(m.Topics))
	for _, topic := range m.Topics {
		ordered[topic] = struct{}{}
	}
	var changed []metadata.TopicConfig
	for _, topic := range d.edit.All() {
		if _, want := ordered[topic.TopicName]; want != topic.Order {
			topic.Order = want
			changed = append(changed, topic)
		}
	}
	for _, topic := range changed {
		d.set(topic)
	}
}

// replace makes the draft the table of another broker and takes over its version.
func (d *draft) replace(t *metadata.TopicTable) {
	var gone []string
	for name := range d.edit.All() {
		if _, stays := t.Topics[name]; !stays {
			gone = append(gone, name)
		}
	}
	for _, name := range gone {
		d.remove(name)
	}
	for _, topic := range t.Topics {
		d.set(topic)
	}
	d.version, d.unknown, d.dirty = t.DataVersion, t.Unknown, true
}
