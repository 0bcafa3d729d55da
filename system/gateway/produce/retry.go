package produce

import (
	"strconv"
	"strings"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system/gateway/broker"
)

// firstRetryLevel is the delay level of a first retry when the consumer names none: 10 s with the default levels.
const firstRetryLevel = 3

// retried applies spec/remoting.md §10.4: a message that a client sends to a retry topic itself goes to the dead letters once
// it has been tried often enough.
func (p *Producers) retried(r *gateway.Request, h *remoting.SendMessageHeader, m *messages.Message) error {
	group := strings.TrimPrefix(h.Topic, messages.RetryTopicPrefix)
	config, err := p.group(r, group)
	if err != nil {
		return err
	}
	most := maxRetries(r, h.MaxReconsumeTimes, config)
	if int(h.ReconsumeTimes) < most {
		return nil
	}
	return p.bury(r, group, m)
}

// maxRetries is how often a message is tried again: what the request says, if it comes from a client that means it, else
// what the group's configuration says.
func maxRetries(r *gateway.Request, asked int32, config metadata.SubscriptionGroupConfig) int {
	if r.Version >= remoting.VersionMaxReconsumeTimes && asked != remoting.AbsentTimes {
		return int(asked)
	}
	return config.RetryMaxTimes
}

// bury makes a message a dead letter of a group. It goes there at once, whatever delay its last retry had (the original
// lets it wait once more).
func (p *Producers) bury(r *gateway.Request, group string, m *messages.Message) error {
	r.Pause()
	ctx, cancel := p.b.Context()
	defer cancel()
	topic, err := p.b.Topics.EnsureDLQ(ctx, group)
	if err != nil {
		return err
	}
	m.Topic, m.QueueID = topic.TopicName, 0
	m.Properties = m.Properties.With(messages.PropertyDelay, "0")
	for _, name := range []string{ // what was added goes where there is no room for it: the message itself is kept
		messages.PropertyWait, messages.PropertyOriginMessageID, messages.PropertyRetryTopic, messages.PropertyDelay,
	} {
		if len(m.Properties) > messages.MaxPropertiesBytes {
			m.Properties = m.Properties.Without(name)
		}
	}
	return nil
}

// group is the configuration of a consumer group, made if that is allowed.
func (p *Producers) group(r *gateway.Request, group string) (metadata.SubscriptionGroupConfig, error) {
	if config, ok := p.b.Groups.Lookup(group); ok {
		return config, nil
	}
	r.Pause()
	ctx, cancel := p.b.Context()
	defer cancel()
	config, err := p.b.Groups.Ensure(ctx, strings.Clone(group))
	if err != nil {
		code, remark := broker.GroupCode(err)
		return config, broker.Refuse(code, "subscription group not exist, %s: %s", group, remark)
	}
	return config, nil
}

// sendBack answers 36 (spec/remoting.md §10.1). The Go client takes an error code for success and loses the message, so what
// may pass with time closes the connection instead; it is answered only once the copy is stored.
func (p *Producers) sendBack(r *gateway.Request) {
	var h remoting.SendBackHeader
	if err := remoting.FromExt(r.ExtFields, &h); err != nil {
		r.Fail(remoting.ResponseSystemError, err.Error())
		return
	}
	m, err := p.copyBack(r, &h)
	if err != nil {
		p.failBack(r, err)
		return
	}
	if m == nil {
		r.OK(nil) // the group wants no retries
		return
	}
	p.b.Store.PutAsync(m, true, p.deadline(r.At), func(result messages.PutResult, err error) {
		if result.Status.Stored() {
			if topic, ok := m.Properties.Get(messages.PropertyRetryTopic); ok {
				p.b.Stats.SentBack(h.Group, topic)
			}
			r.OK(nil)
			return
		}
		code, remark := putCode(result.Status, err)
		if code != remoting.ResponseMessageIllegal {
			code = remoting.ResponseSystemError
		}
		p.failBack(r, broker.Refuse(code, "%s: %s", result.Status, remark))
	})
}

// failBack answers with an error; to a client that would take it for success the answer is the end of the connection.
func (p *Producers) failBack(r *gateway.Request, err error) {
	code, remark := broker.Code(err)
	if r.Language == remoting.LanguageGo {
		r.Abandon(broker.Refuse(code, "a message can't be sent back: %s", remark))
		return
	}
	r.Fail(code, remark)
}

// copyBack is the copy of a consumed message for its next try, or for the dead letters; nil when the group keeps none.
func (p *Producers) copyBack(r *gateway.Request, h *remoting.SendBackHeader) (*messages.Message, error) {
	config, err := p.group(r, h.Group)
	if err != nil {
		return nil, err
	}
	if !p.b.Policy().Writeable() {
		return nil, broker.Refuse(remoting.ResponseNoPermission, "the broker[%s] sending message is forbidden", p.b.IP())
	}
	if config.RetryQueueNums <= 0 {
		return nil, nil
	}
	topic, err := p.retryTopic(h, config)
	if err != nil {
		return nil, err
	}
	stored, err := p.b.Store.MessageAt(messages.PhysicalOffset(h.Offset))
	if err != nil {
		return nil, broker.Refuse(remoting.ResponseSystemError, "look message by offset failed, %d: %v", h.Offset, err)
	}
	m := again(&stored)
	m.Topic, m.QueueID, m.StoreHost = topic.TopicName, randomQueue(topic.WriteQueueNums), stored.StoreHost
	if h.DelayLevel < 0 || int(stored.ReconsumeTimes) >= maxRetries(r, h.MaxReconsumeTimes, config) {
		return m, p.bury(r, h.Group, m)
	}
	level := int(h.DelayLevel)
	if level == 0 {
		level = firstRetryLevel + int(stored.ReconsumeTimes)
	}
	m.Properties = m.Properties.With(messages.PropertyDelay, strconv.Itoa(level))
	later, err := p.b.Delays.Postponed(m)
	if err == nil && len(later.Properties) > messages.MaxPropertiesBytes {
		p.b.Noise.Warn().Str("group", h.Group).Int64("offset", h.Offset).
			Msg("the properties of a message leave no room for what a retry adds: it becomes a dead letter")
		return m, p.bury(r, h.Group, m)
	}
	return m, err
}

// again copies a stored message for one more try, with where it comes from in its properties.
func again(stored *messages.StoredMessage) *messages.Message {
	m := stored.Message
	m.ReconsumeTimes++
	m.PreparedTransactionOffset = 0
	if _, ok := m.Properties.Get(messages.PropertyRetryTopic); !ok {
		m.Properties = m.Properties.With(messages.PropertyRetryTopic, stored.Topic)
	}
	if _, ok := m.Properties.Get(messages.PropertyOriginMessageID); !ok {
		m.Properties = m.Properties.With(messages.PropertyOriginMessageID, stored.OffsetMessageID())
	}
	m.Properties = m.Properties.With(messages.PropertyWait, "false")
	return &m
}

// retryTopic is the topic of a group's retries, made if it has to be.
func (p *Producers) retryTopic(h *remoting.SendBackHeader, config metadata.SubscriptionGroupConfig) (metadata.TopicConfig, error) {
	ctx, cancel := p.b.Context()
	defer cancel()
	topic, err := p.b.Topics.EnsureRetry(ctx, h.Group, config.RetryQueueNums, h.UnitMode)
	switch {
	case err != nil:
		return topic, err
	case topic.Perm&metadata.PermWrite == 0:
		return topic, broker.Refuse(remoting.ResponseNoPermission, "the topic[%s] sending message is forbidden", topic.TopicName)
	}
	return topic, nil
}
