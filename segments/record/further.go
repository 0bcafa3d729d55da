package record

import (
	"encoding/binary"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/actormq/actormq/messages"
)

// FurtherQueue is a queue that a record belongs to beside its own.
func FurtherQueue(name string, queueID int32) messages.QueueKey {
	if strings.HasPrefix(name, messages.LMQTopicPrefix) {
		queueID = 0
	}
	return messages.QueueKey{Topic: name, QueueID: queueID}
}

// MultiQueues yields the further queues that a record names in INNER_MULTI_DISPATCH, with its queue offset in each
// (spec/store.md §6.4). Lists of different lengths name none.
func MultiQueues(r *Record) iter.Seq2[messages.QueueKey, messages.QueueOffset] {
	return func(yield func(messages.QueueKey, messages.QueueOffset) bool) {
		properties := messages.ViewProperties(r.Properties)
		names, _ := properties.Get(messages.PropertyMultiDispatch)
		offsets, _ := properties.Get(messages.PropertyMultiQueueOffset)
		if names == "" || strings.Count(names, ",") != strings.Count(offsets, ",") {
			return
		}
		for names != "" {
			var name, offset string
			name, names, _ = strings.Cut(names, ",")
			offset, offsets, _ = strings.Cut(offsets, ",")
			at, err := strconv.ParseInt(offset, 10, 64)
			if err != nil || name == "" || at < 0 {
				continue
			}
			if !yield(FurtherQueue(strings.Clone(name), r.QueueID), messages.QueueOffset(at)) {
				return
			}
		}
	}
}

// AppendProperty adds a property to an encoded record, all of b, that has so many bytes of properties: they come last in a record. The record is unchanged when they get too long, ErrPropertiesTooLong.
func AppendProperty(b []byte, propertiesBytes int, name, value string) ([]byte, error) {
	lengthAt := len(b) - propertiesBytes - 2
	separator := ""
	if propertiesBytes > 0 && b[len(b)-1] != '\x02' {
		separator = "\x02"
	}
	n := propertiesBytes + len(separator) + len(name) + 1 + len(value)
	if n > messages.MaxPropertiesBytes {
		return b, fmt.Errorf("%w: %d bytes with %s, at most %d", ErrPropertiesTooLong, n, name, messages.MaxPropertiesBytes)
	}
	b = append(b, separator...)
	b = append(b, name...)
	b = append(b, '\x01')
	b = append(b, value...)
	binary.BigEndian.PutUint16(b[lengthAt:], uint16(n))
	binary.BigEndian.PutUint32(b[totalSizeAt:], uint32(len(b)))
	return b, nil
}
