package metadata

import "maps"

// DataVersion tells apart the states of a table; two are equal when all fields are. RocketMQ's slaves compare them.
type DataVersion struct {
	Counter      int64 `json:"counter"` // grows by one with each change
	StateVersion int64 `json:"stateVersion,omitempty"`
	TimestampMs  int64 `json:"timestamp"` // of the last change
}

// Advance marks a change at a wall-clock time in ms.
func (v *DataVersion) Advance(nowMs int64) {
	v.TimestampMs = nowMs
	v.Counter++
}

// Bits of a topic's perm.
const (
	PermInherit = 1
	PermWrite   = 2
	PermRead    = 4
)

// Values of a topic's topicFilterType.
const (
	FilterSingleTag = "SINGLE_TAG"
	FilterMultiTag  = "MULTI_TAG"
)

// TopicConfig is the configuration of one topic (spec/store.md §13.2).
type TopicConfig struct {
	Order           bool    `json:"order"`
	Perm            int     `json:"perm"`          // of PermRead, PermWrite, PermInherit
	ReadQueueNums   int     `json:"readQueueNums"` // queues that consumers see
	TopicFilterType string  `json:"topicFilterType"`
	TopicName       string  `json:"topicName"`
	TopicSysFlag    int     `json:"topicSysFlag"`
	WriteQueueNums  int     `json:"writeQueueNums"` // queues that producers see
	Unknown         Unknown `json:"-"`
}

// TopicTable is the content of topics.json, and of the answer to GET_ALL_TOPIC_CONFIG.
type TopicTable struct {
	DataVersion DataVersion            `json:"dataVersion"`
	Topics      map[string]TopicConfig `json:"topicConfigTable"`
	// Deleted tells with which version a topic was last deleted; it may have been made again since. RocketMQ knows and writes no such member.
	Deleted map[string]DataVersion `json:"deletedTopics,omitempty"`
	Unknown Unknown                `json:"-"`
}

// maxDeleted bounds TopicTable.Deleted: the newest are kept.
const maxDeleted = 1000

// NoteDeleted returns the deletions with one more.
func NoteDeleted(deleted map[string]DataVersion, topic string, now DataVersion) map[string]DataVersion {
	next := make(map[string]DataVersion, len(deleted)+1)
	maps.Copy(next, deleted)
	next[topic] = now
	if len(next) > maxDeleted {
		oldest := topic
		for name, v := range next {
			if o := next[oldest]; v.Counter < o.Counter || v.Counter == o.Counter && v.TimestampMs < o.TimestampMs {
				oldest = name
			}
		}
		delete(next, oldest)
	}
	return next
}

// DeletedSince is which of the deletions this table does not know: topics that were deleted after it was written.
func (t *TopicTable) DeletedSince(deleted map[string]DataVersion) map[string]struct{} {
	since := map[string]struct{}{}
	for name, v := range deleted {
		if known, is := t.Deleted[name]; !is || known != v {
			since[name] = struct{}{}
		}
	}
	return since
}

type (
	plainTopicConfig TopicConfig
	plainTopicTable  TopicTable
)

// MarshalJSON writes the known members and the kept ones.
func (c TopicConfig) MarshalJSON() ([]byte, error) {
	return encodeKeeping(plainTopicConfig(c), c.Unknown)
}

// UnmarshalJSON reads the known members and keeps the others.
func (c *TopicConfig) UnmarshalJSON(data []byte) error {
	return decodeKeeping(data, (*plainTopicConfig)(c), &c.Unknown)
}

// MarshalJSON writes the known members and the kept ones.
func (t TopicTable) MarshalJSON() ([]byte, error) {
	if t.Topics == nil {
		t.Topics = map[string]TopicConfig{}
	}
	return encodeKeeping(plainTopicTable(t), t.Unknown)
}

// UnmarshalJSON reads the known members and keeps the others.
func (t *TopicTable) UnmarshalJSON(data []byte) error {
	return decodeKeeping(data, (*plainTopicTable)(t), &t.Unknown)
}
