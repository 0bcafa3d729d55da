package delay

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
)

// Why a record of the schedule topic is left out.
var (
	// ErrDestination: the record does not say where it belongs, or names a topic that it must not go to.
	ErrDestination = errors.New("no destination for a delayed message")
	// ErrRecord: there is no sound record where the unit of a schedule queue says.
	ErrRecord = errors.New("no record for a delayed message")
)

// find returns a copy of the record that a unit names. ErrRecord: there is none, nor will there be one; another error, a
// fault of the disk, may pass.
func find(log *commitlog.Log, u consumequeue.Unit) (messages.StoredMessage, error) {
	var m messages.StoredMessage
	slice, err := log.Read(u.PhysicalOffset, int(u.Size))
	if err != nil {
		return m, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	defer slice.Release()
	err = vfs.Guard("read the commit log", func() error {
		r, kind, err := record.Parse(slice.Bytes, true)
		switch {
		case err != nil:
			return fmt.Errorf("%s at %d: %w: %w", slice.Path(), slice.Offset(), ErrRecord, err)
		case kind != record.KindMessage || r.PhysicalOffset != u.PhysicalOffset || string(r.Topic) != messages.TopicSchedule:
			return fmt.Errorf("%s at %d: %w: another one stands there", slice.Path(), slice.Offset(), ErrRecord)
		}
		m = r.Stored()
		return nil
	})
	return m, err
}

// restore turns a record of the schedule topic into the message that is delivered (spec/store.md §10.5): its own topic and
// queue, everything else as it was. The properties stay as they are stored, DELAY and REAL_TOPIC included. A half message is
// not delivered: its delay was none of its transaction's.
func restore(m *messages.StoredMessage) (*messages.Message, error) {
	topic, _ := m.Properties.Get(messages.PropertyRealTopic)
	if topic == "" || topic == messages.TopicTransactionHalf || topic == messages.TopicSchedule {
		return nil, fmt.Errorf("%w: %s is %q", ErrDestination, messages.PropertyRealTopic, topic)
	}
	text, _ := m.Properties.Get(messages.PropertyRealQueueID)
	queue, err := strconv.ParseInt(text, 10, 32)
	if err != nil || queue < 0 {
		return nil, fmt.Errorf("%w: %s is %q", ErrDestination, messages.PropertyRealQueueID, text)
	}
	out := m.Message
	out.Topic, out.QueueID, out.PreparedTransactionOffset = topic, int32(queue), 0
	return &out, nil
}
