package topics

import (
	"maps"
	"slices"
	"strings"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
)

const (
	readWrite         = metadata.PermRead | metadata.PermWrite
	template          = readWrite | metadata.PermInherit
	systemTopicPrefix = "rmq_sys_"
	replyTopicSuffix  = "_REPLY_TOPIC"
	benchmarkQueues   = 1024
	clusterQueues     = 16
	scheduleQueues    = 18
)

// builtIn returns the topics that are there from the start (spec/remoting.md §15.1).
func builtIn(cfg *Config) []metadata.TopicConfig {
	list := []metadata.TopicConfig{
		topicOf(messages.TopicSelfTest, 1, readWrite),
		topicOf(messages.TopicBenchmark, benchmarkQueues, readWrite),
		topicOf(cfg.ClusterName, clusterQueues, inheritable(cfg.ClusterTopic)),
		topicOf(cfg.BrokerName, 1, inheritable(cfg.BrokerTopic)),
		topicOf(messages.TopicOffsetMovedEvent, 1, readWrite),
		topicOf(messages.TopicSchedule, scheduleQueues, readWrite),
		topicOf(cfg.ClusterName+replyTopicSuffix, 1, readWrite),
	}
	if cfg.AutoCreate {
		list = append(list, topicOf(messages.TopicAutoCreateKey, cfg.DefaultQueues, template))
	}
	if cfg.TraceTopic != "" {
		list = append(list, topicOf(cfg.TraceTopic, 1, readWrite))
	}
	return list
}

func inheritable(yes bool) int {
	if yes {
		return template
	}
	return readWrite
}

// topicOf makes a configuration. The name is copied: that of a request may be a slice of a whole frame.
func topicOf(name string, queues, perm int) metadata.TopicConfig {
	return metadata.TopicConfig{
		TopicName: strings.Clone(name), ReadQueueNums: queues, WriteQueueNums: queues, Perm: perm,
		TopicFilterType: metadata.FilterSingleTag,
	}
}

// systemNames are the topics that tools may not touch, whether they are there or not.
func systemNames(cfg *Config) map[string]struct{} {
	names := map[string]struct{}{
		messages.TopicTransactionHalf: {}, messages.TopicTransactionOp: {}, messages.TopicTransCheckMaxTime: {},
		messages.TopicTrace: {}, messages.TopicAutoCreateKey: {},
	}
	for _, topic := range builtIn(cfg) {
		names[topic.TopicName] = struct{}{}
	}
	return names
}

// complete puts the built-in topics that are missing into the draft. What decides on the making of topics follows the
// options of this start, not the file: the template's queues, and which topics are templates. (The original leaves a template
// in the file usable after autoCreateTopicEnable has been switched off, until the first send.)
func complete(d draft, cfg *Config) {
	for _, want := range builtIn(cfg) {
		have, there := d.Get(want.TopicName)
		switch {
		case !there:
			d.set(want)
		case want.TopicName == messages.TopicAutoCreateKey:
			have.Perm, have.ReadQueueNums, have.WriteQueueNums = want.Perm, want.ReadQueueNums, want.WriteQueueNums
			d.set(have)
		case want.TopicName == cfg.ClusterName || want.TopicName == cfg.BrokerName:
			have.Perm = want.Perm
			d.set(have)
		}
	}
	if have, there := d.Get(messages.TopicAutoCreateKey); there && !cfg.AutoCreate {
		have.Perm &^= metadata.PermInherit
		d.set(have)
	}
}

// IsSystem tells whether a topic is the broker's own: tools may neither change nor delete it (spec/remoting.md §15.1).
func (k *Keeper) IsSystem(topic string) bool { return k.actor.isSystem(topic) }

func (a *keeperActor) isSystem(topic string) bool {
	_, is := a.system[topic]
	return is || strings.HasPrefix(topic, systemTopicPrefix)
}

// SystemTopics returns the names of the broker's own topics, sorted.
func (k *Keeper) SystemTopics() []string { return slices.Sorted(maps.Keys(k.actor.system)) }
