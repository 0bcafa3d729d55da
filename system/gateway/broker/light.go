package broker

import (
	"strings"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
)

// TopicForPull is the configuration of a topic that is pulled from. Light topics have none of their own: there are too many.
func (b *Broker) TopicForPull(name string) (metadata.TopicConfig, bool) {
	if b.Policy().LightTopics && strings.HasPrefix(name, messages.LMQTopicPrefix) {
		return metadata.TopicConfig{
			TopicName: strings.Clone(name), ReadQueueNums: 1, WriteQueueNums: 1, Perm: metadata.PermRead | metadata.PermWrite,
		}, true
	}
	return b.Topics.Lookup(name)
}
