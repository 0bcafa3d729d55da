package acl

import (
	"fmt"
	"strings"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
)

// need is a permission that a request must have.
type need struct {
	name  string
	group bool
	perm  perm
}

// topicNeed is about a topic; a retry topic is its group's, and whoever may consume with the group may send there.
func topicNeed(topic string, p perm) need {
	if group, retry := strings.CutPrefix(topic, messages.RetryTopicPrefix); retry {
		return need{name: group, group: true, perm: sub}
	}
	return need{name: topic, perm: p}
}

func groupNeed(group string) need {
	return need{name: strings.TrimPrefix(group, messages.RetryTopicPrefix), group: true, perm: sub}
}

// fields says in which ext fields a request names what it needs: the names of topic and group, and what it wants of the topic. One
// that is not here needs a signature only (spec/remoting.md §16.4).
var fields = map[int]struct {
	topic, group string
	perm         perm
}{
	remoting.RequestSendMessage:            {topic: "topic", perm: pub},
	remoting.RequestSendMessageV2:          {topic: "b", perm: pub},
	remoting.RequestSendBatchMessage:       {topic: "b", perm: pub},
	remoting.RequestSendReplyMessage:       {topic: "topic", perm: pub},
	remoting.RequestSendReplyMessageV2:     {topic: "b", perm: pub},
	remoting.RequestConsumerSendMsgBack:    {group: "group"},
	remoting.RequestPullMessage:            {topic: "topic", group: "consumerGroup", perm: sub},
	remoting.RequestQueryMessage:           {topic: "topic", perm: sub},
	remoting.RequestUnregisterClient:       {group: "consumerGroup"},
	remoting.RequestGetConsumerListByGroup: {group: "consumerGroup"},
	remoting.RequestUpdateConsumerOffset:   {topic: "topic", group: "consumerGroup", perm: sub},
}

// resources lists what a request needs.
func resources(c *remoting.Command) ([]need, error) {
	if c.Code == remoting.RequestHeartbeat {
		return heartbeat(c)
	}
	f, ok := fields[c.Code]
	if !ok {
		return nil, nil
	}
	var needs []need
	if f.topic != "" {
		topic, there := c.ExtFields.Get(f.topic)
		if !there {
			return nil, fmt.Errorf("the request names no topic")
		}
		needs = append(needs, topicNeed(topic, f.perm))
	}
	if f.group != "" {
		if group, _ := c.ExtFields.Get(f.group); group != "" { // a producer that unregisters has none
			needs = append(needs, groupNeed(group))
		}
	}
	return needs, nil
}

// heartbeat needs every group and every topic that it subscribes to.
func heartbeat(c *remoting.Command) ([]need, error) {
	var data remoting.HeartbeatData
	if err := c.DecodeBody(&data); err != nil {
		return nil, err
	}
	var needs []need
	for _, consumer := range data.ConsumerDataSet {
		needs = append(needs, groupNeed(consumer.GroupName))
		for _, s := range consumer.SubscriptionDataSet {
			needs = append(needs, topicNeed(s.Topic, sub))
		}
	}
	return needs, nil
}
