package admin

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system/gateway/broker"
)

// consumeStats answers 208: how far a group is in each queue of its topics.
func (t *Tools) consumeStats(r *gateway.Request) {
	var h remoting.ConsumeStatsHeader
	if !broker.Header(r, &h) {
		return
	}
	names := []string{h.Topic}
	if h.Topic == "" {
		names = t.topicsOf(h.ConsumerGroup)
	}
	answer := remoting.ConsumeStats{OffsetTable: map[remoting.MessageQueue]remoting.ConsumeOffset{}}
	for _, name := range names {
		topic, ok := t.b.Topics.Lookup(name)
		if !ok || !t.concerns(h.ConsumerGroup, name) {
			continue
		}
		t.progress(h.ConsumerGroup, topic, &answer)
	}
	r.OKBody(&answer)
}

// topicsOf are the topics that a group has offsets in, and its retry topic, which tools expect even before a consumer has
// stored an offset for it.
func (t *Tools) topicsOf(group string) []string {
	names := t.b.Offsets.Topics(group)
	if retry := messages.RetryTopicPrefix + group; !slices.Contains(names, retry) {
		names = append(names, retry)
	}
	return names
}

// concerns tells whether a topic is the group's business: while it is online, only what it subscribes to.
func (t *Tools) concerns(group, topic string) bool {
	online := t.b.Clients.Consumers(group)
	return online == nil || len(online.Subscriptions) == 0 || online.Subscriptions[topic] != nil
}

// progress adds one entry for each queue that the group reads.
func (t *Tools) progress(group string, topic metadata.TopicConfig, to *remoting.ConsumeStats) {
	for id := range int32(topic.ReadQueueNums) {
		q := messages.QueueKey{Topic: topic.TopicName, QueueID: id}
		at := max(t.b.Offsets.Lookup(group, q), 0)
		to.OffsetTable[t.queue(q)] = remoting.ConsumeOffset{
			BrokerOffset: int64(t.b.Store.MaxOffset(q)), ConsumerOffset: int64(at), LastTimestampMs: t.timeBefore(q, at),
		}
	}
	data, _ := t.b.Stats.View("GROUP_GET_NUMS", topic.TopicName+"@"+group, func(string, string) bool { return true })
	to.ConsumeTPS += data.StatsMinute.TPS
}

// brokerConsumeStats answers 317: the progress of all groups.
func (t *Tools) brokerConsumeStats(r *gateway.Request) {
	var h remoting.BrokerConsumeStatsHeader
	if !broker.Header(r, &h) {
		return
	}
	answer := remoting.BrokerConsumeStats{BrokerAddr: t.b.Address, ConsumeStatsList: []map[string][]remoting.ConsumeStats{}}
	for config := range t.b.Groups.All() {
		list := []remoting.ConsumeStats{}
		for _, name := range t.b.Offsets.Topics(config.GroupName) {
			topic, ok := t.b.Topics.Lookup(name)
			if !ok || topic.Order != h.IsOrder || !t.concerns(config.GroupName, name) {
				continue
			}
			one := remoting.ConsumeStats{OffsetTable: map[remoting.MessageQueue]remoting.ConsumeOffset{}}
			t.progress(config.GroupName, topic, &one)
			for _, o := range one.OffsetTable {
				answer.TotalDiff += o.BrokerOffset - o.ConsumerOffset
			}
			list = append(list, one)
		}
		answer.ConsumeStatsList = append(answer.ConsumeStatsList, map[string][]remoting.ConsumeStats{config.GroupName: list})
	}
	r.OKBody(&answer)
}

// timeSpan answers 303.
func (t *Tools) timeSpan(r *gateway.Request) {
	var h remoting.TopicGroupHeader
	if !broker.Header(r, &h) {
		return
	}
	topic, ok := t.topic(r, h.Topic)
	if !ok {
		return
	}
	answer := remoting.ConsumeTimeSpans{ConsumeTimeSpanSet: []remoting.ConsumeTimeSpan{}}
	for id := range int32(topic.WriteQueueNums) {
		q := messages.QueueKey{Topic: topic.TopicName, QueueID: id}
		answer.ConsumeTimeSpanSet = append(answer.ConsumeTimeSpanSet, t.span(h.Group, q, r.At))
	}
	r.OKBody(&answer)
}

func (t *Tools) span(group string, q messages.QueueKey, now time.Time) remoting.ConsumeTimeSpan {
	first, ok := t.b.Store.EarliestStoreTime(q)
	if !ok {
		first = -1
	}
	end, at := t.b.Store.MaxOffset(q), t.b.Offsets.Lookup(group, q)
	span := remoting.ConsumeTimeSpan{
		MessageQueue: t.queue(q), MinTimestampMs: first, MaxTimestampMs: t.timeBefore(q, end), ConsumeTimestampMs: first,
	}
	if end == 0 {
		span.MaxTimestampMs = -1
	}
	if at > 0 {
		span.ConsumeTimestampMs = t.timeBefore(q, at)
	}
	if next := max(at, 0); next < end {
		span.DelayMs = now.UnixMilli() - t.timeBefore(q, next+1)
	}
	span.MinTimestampStr, span.MaxTimestampStr = timeText(span.MinTimestampMs), timeText(span.MaxTimestampMs)
	span.ConsumeTimestampStr = timeText(span.ConsumeTimestampMs)
	return span
}

// timeText is "yyyy-MM-dd#HH:mm:ss:SSS" in local time.
func timeText(ms int64) string {
	text := time.UnixMilli(ms).Format("2006-01-02#15:04:05.000")
	dot := strings.LastIndexByte(text, '.')
	return text[:dot] + ":" + text[dot+1:]
}

// correction answers 308: the least offset of all groups for each queue of a topic, the greatest number where the compared
// group is behind it. Groups to leave out are left out, not deleted as by the original.
func (t *Tools) correction(r *gateway.Request) {
	var h remoting.CorrectionOffsetHeader
	if !broker.Header(r, &h) {
		return
	}
	skip := map[string]struct{}{}
	for group := range strings.SplitSeq(h.FilterGroups, ",") {
		skip[strings.TrimSpace(group)] = struct{}{}
	}
	least := map[int32]int64{}
	for _, group := range t.b.Offsets.Groups(h.Topic) {
		if _, out := skip[group]; out {
			continue
		}
		for id, at := range t.b.Offsets.Queues(group, h.Topic) {
			if old, seen := least[id]; !seen || int64(at) < old {
				least[id] = int64(at)
			}
		}
	}
	for id, at := range t.b.Offsets.Queues(h.CompareGroup, h.Topic) {
		if old, seen := least[id]; seen && old > int64(at) {
			least[id] = math.MaxInt64
		}
	}
	r.OKBody(&remoting.CorrectionOffsets{CorrectionOffsets: least})
}
