package metadata

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

// TopicTable is the content of topics.json.
type TopicTable struct {
	DataVersion DataVersion            `json:"dataVersion"`
	Topics      map[string]TopicConfig `json:"topicConfigTable"`
	Unknown     Unknown                `json:"-"`
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
