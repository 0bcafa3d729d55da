package record

import (
	"strconv"

	"github.com/actormq/actormq/messages"
)

// unknownDelayMs is what RocketMQ waits for a level without an entry.
const unknownDelayMs = 1000

// TagsCode returns the tag field of the record's consume-queue unit (spec/store.md §2.8): the Java hash of TAGS, 0
// without tags; for a delayed message the delivery time in ms. It does not allocate.
//
// delay returns for a level, which is at least 1, its milliseconds (negative: no such level) and the highest level; it
// is asked for records of the schedule topic only. With nil they too get the hash of their tag, as does one whose DELAY
// is no number: RocketMQ takes such a record for damaged.
func (r *Record) TagsCode(delay func(level int) (ms int64, highest int)) int64 {
	properties := messages.ViewProperties(r.Properties)
	if delay != nil && string(r.Topic) == messages.TopicSchedule {
		if level := delayLevel(properties); level > 0 {
			if ms, ok := delayOf(level, delay); ok {
				return r.StoreTimestampMs + ms
			}
		}
	}
	tags, _ := properties.Get(messages.PropertyTags)
	return int64(messages.JavaHash(tags)) // 0 without tags
}

// delayLevel returns the DELAY property, 0 if there is none or it is no number of 32 bits.
func delayLevel(properties messages.Properties) int {
	text, _ := properties.Get(messages.PropertyDelay)
	level, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0
	}
	return int(level)
}

// delayOf returns the delay of a level, lowered to the highest one. There is none when there are no levels at all.
func delayOf(level int, delay func(int) (int64, int)) (ms int64, ok bool) {
	ms, highest := delay(level)
	if highest < 1 {
		return 0, false
	}
	if level > highest {
		ms, _ = delay(highest)
	}
	if ms < 0 {
		ms = unknownDelayMs
	}
	return ms, true
}
