package record

import (
	"encoding/binary"

	"github.com/actormq/actormq/messages"
)

// A record that stands in the place of one that was lost has LostFlag as its FLAG and the property messages.PropertyLost; its
// body is zeros. RocketMQ takes it for a message and so keeps what follows.
const (
	LostFlag       int32 = 0x4C4F5354 // "LOST"
	lostProperties       = messages.Properties(messages.PropertyLost + "\x011")
)

// LostTopic is the topic of what stands in the place of records of which nothing is known. Its records have the type of a
// rolled back transaction, so that they go to no queue and no index.
const LostTopic = "rmq_sys_lost"

// LostBytes is the least size of a record that stands in the place of a lost one of a topic.
func LostBytes(topic string) int { return MinBytes + len(topic) + len(lostProperties) }

// Further names the further queues of a lost message and its queue offsets in them, as lists with commas (spec/store.md §6.4).
type Further struct{ Names, Offsets string }

// Bytes is how many bytes they add to LostBytes.
func (f Further) Bytes() int { return len(f.properties()) - len(lostProperties) }

func (f Further) properties() messages.Properties {
	if f.Names == "" {
		return lostProperties
	}
	return lostProperties.With(messages.PropertyMultiDispatch, f.Names).With(messages.PropertyMultiQueueOffset, f.Offsets)
}

// AppendLost appends a record of a given size, at least LostBytes and what further queues add, for a lost message of a queue.
func AppendLost(dst []byte, key messages.QueueKey, further Further, size int, bornMs int64) ([]byte, error) {
	m := messages.Message{
		Topic: key.Topic, QueueID: key.QueueID, Flag: LostFlag, Properties: further.properties(), BornTimestampMs: bornMs,
		Body: make([]byte, max(0, size-LostBytes(key.Topic)-further.Bytes())),
	}
	if key.Topic == LostTopic {
		m.SysFlag = messages.SysFlagTransactionRollback
	}
	return Append(dst, &m)
}

// IsLost tells whether the whole record b stands in the place of a lost one. For any other record it looks at one field and
// does not allocate.
func IsLost(b []byte) bool {
	return len(b) >= MinBytes && int32(binary.BigEndian.Uint32(b[flagAt:])) == LostFlag && standsForLost(b)
}

func standsForLost(b []byte) bool {
	r, kind, err := Parse(b, false)
	return err == nil && kind == KindMessage && r.Lost()
}

// Lost is IsLost of a parsed record.
func (r *Record) Lost() bool {
	if r.Flag != LostFlag {
		return false
	}
	_, lost := messages.ViewProperties(r.Properties).Get(messages.PropertyLost)
	return lost
}
