package admin

import (
	"maps"
	"slices"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
)

// lags tells how far groups are behind, in each topic in which they have committed an offset.
func (c *collector) lags() {
	table := c.cfg.Node.Broker().Offsets.Table().Offsets
	pairs := slices.Sorted(maps.Keys(table))
	for _, pair := range pairs[:min(len(pairs), maxLags)] {
		if topic, group, ok := metadata.SplitOffsetKey(pair); ok {
			c.count(groupLag, c.lag(topic, table[pair]), group, topic)
		}
	}
	c.count(groupLeftOut, int64(max(len(pairs)-maxLags, 0)))
}

// lag is what a group has not committed of a topic: queues in which it has no offset count as a whole, as tools count them.
func (c *collector) lag(name string, offsets map[int32]int64) int64 {
	b := c.cfg.Node.Broker()
	topic, ok := b.Topics.Lookup(name)
	if !ok {
		return 0 // it has been deleted
	}
	total := int64(0)
	for id := range int32(topic.ReadQueueNums) {
		end := b.Store.MaxOffset(messages.QueueKey{Topic: name, QueueID: id})
		total += max(int64(end)-max(offsets[id], 0), 0)
	}
	return total
}
