package consume

import (
	"fmt"
	"strings"

	"github.com/actormq/actormq/actors/clients"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system/gateway/broker"
)

// Remarks of the original about subscriptions.
const (
	remarkNoSQL   = "The broker does not support consumer to filter message by SQL92"
	remarkNoGroup = "the consumer's group info not exist" + broker.SeeFAQ
	remarkNoTopic = "the consumer's subscription not exist" + broker.SeeFAQ
)

// filter decides which messages a pull wants.
type filter struct {
	tags       messages.TagFilter // nil: all
	properties propertyFilter     // nil: all
}

// propertyFilter decides on a message's properties. It is safe for concurrent use.
type propertyFilter interface {
	Match(messages.Properties) bool
}

// filterOf is the pull's own filter, or that of its group's subscription: the last step of spec/remoting.md §9.2.
func (p *pulling) filterOf() (filter, error) {
	var f filter
	var sub *messages.Subscription
	var err error
	if p.h.SysFlag&remoting.PullFlagSubscription != 0 {
		sub, err = p.ownFilter(&f)
	} else {
		sub, err = p.groupFilter(&f)
	}
	switch policy := p.c.b.Policy(); {
	case err != nil:
	case !sub.ByTag() && !policy.FilterByProperty:
		err = broker.Refuse(remoting.ResponseSystemError, remarkNoSQL)
	case policy.FilterRetries && strings.HasPrefix(p.h.Topic, messages.RetryTopicPrefix):
		f.properties = retryFilter{clients: p.c.b.Clients, group: strings.TrimPrefix(p.h.Topic, messages.RetryTopicPrefix)}
	}
	return f, err
}

// ownFilter reads the subscription in the request.
func (p *pulling) ownFilter(f *filter) (*messages.Subscription, error) {
	own := messages.Subscription{ExpressionType: p.h.ExpressionType, SubString: p.h.Subscription, Topic: p.h.Topic}
	if !own.ByTag() {
		compiled, err := broker.CompileFilter(own.ExpressionType, own.SubString)
		if err != nil {
			return nil, broker.Refuse(remoting.ResponseSubscriptionParseFailed, "parse the consumer's subscription failed: %v", err)
		}
		f.properties = compiled
		return &own, nil
	}
	own, err := messages.TagSubscription(p.h.Topic, p.h.Subscription)
	if err != nil {
		return nil, broker.Refuse(remoting.ResponseSubscriptionParseFailed, "parse the consumer's subscription failed")
	}
	f.tags = own.TagFilter()
	return &own, nil
}

// groupFilter takes the subscription that the group's heartbeats have registered.
func (p *pulling) groupFilter(f *filter) (*messages.Subscription, error) {
	group := p.c.b.Clients.Consumers(p.h.ConsumerGroup)
	if group == nil {
		return nil, broker.Refuse(remoting.ResponseSubscriptionNotExist, remarkNoGroup)
	}
	if !p.group.ConsumeBroadcastEnable && group.MessageModel == messages.Broadcasting {
		return nil, broker.Refuse(remoting.ResponseNoPermission,
			"the consumer group[%s] can not consume by broadcast way", p.h.ConsumerGroup)
	}
	sub := group.Subscriptions[p.h.Topic]
	if sub == nil {
		return nil, broker.Refuse(remoting.ResponseSubscriptionNotExist, remarkNoTopic)
	}
	if sub.SubVersion < p.h.SubVersion {
		return nil, broker.Refuse(remoting.ResponseSubscriptionNotLatest, "the consumer's subscription not latest")
	}
	f.tags = sub.Tags
	if sub.ByTag() {
		return &sub.Subscription, nil
	}
	compiled, ok := sub.Compiled.(propertyFilter)
	if !ok || sub.CompileErr != nil {
		return nil, broker.Refuse(remoting.ResponseFilterDataNotExist,
			"The broker's consumer filter data is not exist!Your expression may be wrong!")
	}
	f.properties = compiled
	return &sub.Subscription, nil
}

// retryFilter looks at a retried message as at those of the topic that it was consumed from first.
type retryFilter struct {
	clients *clients.Keeper
	group   string
}

// Match implements propertyFilter. A message whose first topic has no expression is wanted.
func (f retryFilter) Match(p messages.Properties) bool {
	group := f.clients.Consumers(f.group)
	topic, retried := p.Get(messages.PropertyRetryTopic)
	if group == nil || !retried || group.Subscriptions[topic] == nil {
		return true
	}
	compiled, ok := group.Subscriptions[topic].Compiled.(propertyFilter)
	return !ok || compiled.Match(p)
}

// sift takes the records out of a result that the property filter does not want. It touches the records, so a failing disk
// is an error here.
func (f *filter) sift(found *messages.GetResult) error {
	if f.properties == nil {
		return nil
	}
	kept, bytes := found.Records[:0], 0
	err := vfs.Guard("filter messages", func() error {
		for _, raw := range found.Records {
			r, _, err := record.Parse(raw, false)
			if err != nil {
				return err
			}
			if f.properties.Match(messages.ViewProperties(r.Properties)) {
				kept = append(kept, raw)
				bytes += len(raw)
			}
		}
		return nil
	})
	if err != nil {
		found.Release()
		return fmt.Errorf("filter messages: %w", err)
	}
	clear(found.Records[len(kept):])
	found.Records, found.Bytes = kept, bytes
	if len(kept) == 0 {
		found.Status = messages.NoMatchedMessage
	}
	return nil
}
