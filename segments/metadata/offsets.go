package metadata

import "strings"

// OffsetTable is the content of consumerOffset.json: how far each group has consumed (spec/store.md §13.2).
type OffsetTable struct {
	LMQOffsets map[string]int64           `json:"lmqOffsetTable,omitempty"` // of light queues, by topic@group
	Offsets    map[string]map[int32]int64 `json:"offsetTable"`              // by topic@group, then queue: the next offset
	Unknown    Unknown                    `json:"-"`
}

// DelayOffsets is the content of delayOffset.json: how far each delay level has been delivered.
type DelayOffsets struct {
	Offsets map[int]int64 `json:"offsetTable"` // by level, from 1: the next offset of its queue
	Unknown Unknown       `json:"-"`
}

// OffsetKey is the key of a topic and a group in an OffsetTable.
func OffsetKey(topic, group string) string { return topic + "@" + group }

// SplitOffsetKey returns topic and group of a key; a key without the separator is none.
func SplitOffsetKey(key string) (topic, group string, ok bool) { return strings.Cut(key, "@") }

type (
	plainOffsetTable  OffsetTable
	plainDelayOffsets DelayOffsets
)

// MarshalJSON writes the known members and the kept ones.
func (t OffsetTable) MarshalJSON() ([]byte, error) {
	if t.Offsets == nil {
		t.Offsets = map[string]map[int32]int64{}
	}
	return encodeKeeping(plainOffsetTable(t), t.Unknown)
}

// UnmarshalJSON reads the known members and keeps the others.
func (t *OffsetTable) UnmarshalJSON(data []byte) error {
	return decodeKeeping(data, (*plainOffsetTable)(t), &t.Unknown)
}

// MarshalJSON writes the known members and the kept ones.
func (d DelayOffsets) MarshalJSON() ([]byte, error) {
	if d.Offsets == nil {
		d.Offsets = map[int]int64{}
	}
	return encodeKeeping(plainDelayOffsets(d), d.Unknown)
}

// UnmarshalJSON reads the known members and keeps the others.
func (d *DelayOffsets) UnmarshalJSON(data []byte) error {
	return decodeKeeping(data, (*plainDelayOffsets)(d), &d.Unknown)
}
