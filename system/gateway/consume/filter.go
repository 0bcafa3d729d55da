package consume

import (
	"fmt"

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
	tags       messages.TagFilter    // nil: all
	properties broker.PropertyFilter // nil: all
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
	if err == nil && !sub.ByTag() && !p.c.b.FilterByProperty {
		err = refuse(remoting.ResponseSystemError, remarkNoSQL)
	}
	return f, err
}

// ownFilter reads the subscription in the request.
func (p *pulling) ownFilter(f *filter) (*messages.Subscription, error) {
	own := messages.Subscription{ExpressionType: p.h.ExpressionType, SubString: p.h.Subscription, Topic: p.h.Topic}
	if !own.ByTag() {
		if compile := p.c.b.Compile; compile != nil {
			compiled, err := compile(own.ExpressionType, own.SubString)
			if err != nil {
				return nil, refuse(remoting.ResponseSubscriptionParseFailed, "parse the consumer's subscription failed: %v", err)
			}
			f.properties = compiled
		}
		return &own, nil
	}
	own, err := messages.TagSubscription(p.h.Topic, p.h.Subscription)
	if err != nil {
		return nil, refuse(remoting.ResponseSubscriptionParseFailed, "parse the consumer's subscription failed")
	}
	f.tags = own.TagFilter()
	return &own, nil
}

// groupFilter takes the subscription that the group's heartbeats have registered.
func (p *pulling) groupFilter(f *filter) (*messages.Subscription, error) {
	group := p.c.b.Clients.Consumers(p.h.ConsumerGroup)
	if group == nil {
		return nil, refuse(remoting.ResponseSubscriptionNotExist, remarkNoGroup)
	}
	if !p.group.ConsumeBroadcastEnable && group.MessageModel == messages.Broadcasting {
		return nil, refuse(remoting.ResponseNoPermission, "the consumer group[%s] can not consume by broadcast way", p.h.ConsumerGroup)
	}
	sub := group.Subscriptions[p.h.Topic]
	if sub == nil {
		return nil, refuse(remoting.ResponseSubscriptionNotExist, remarkNoTopic)
	}
	if sub.SubVersion < p.h.SubVersion {
		return nil, refuse(remoting.ResponseSubscriptionNotLatest, "the consumer's subscription not latest")
	}
	f.tags = sub.Tags
	if sub.ByTag() {
		return &sub.Subscription, nil
	}
	compiled, ok := sub.Compiled.(broker.PropertyFilter)
	if !ok && p.c.b.FilterByProperty {
		return nil, refuse(remoting.ResponseFilterDataNotExist,
			"The broker's consumer filter data is not exist!Your expression may be wrong!")
	}
	f.properties = compiled
	return &sub.Subscription, nil
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
