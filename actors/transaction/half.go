package transaction

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
)

// The two queues of transactions, and the tag of an op message.
var (
	halfQueue = messages.QueueKey{Topic: messages.TopicTransactionHalf}
	opQueue   = messages.QueueKey{Topic: messages.TopicTransactionOp}
)

const opTag = "d"

// Halve turns a message into the half message of a transaction (spec/store.md §11.1). A delay is dropped: the store would take the
// half message for a delayed one, and lose it.
func Halve(m *messages.Message) {
	m.Properties = m.Properties.Without(messages.PropertyDelay).With(messages.PropertyRealTopic, m.Topic).
		With(messages.PropertyRealQueueID, strconv.Itoa(int(m.QueueID))).InMapOrder(messages.MapBuckets)
	m.SysFlag &^= messages.SysFlagTransactionMask
	m.Topic, m.QueueID = messages.TopicTransactionHalf, 0
}

// real is where a half message wants to go.
func real(m *messages.StoredMessage) (messages.QueueKey, error) {
	topic, _ := m.Properties.Get(messages.PropertyRealTopic)
	text, _ := m.Properties.Get(messages.PropertyRealQueueID)
	queue, err := strconv.ParseInt(text, 10, 32)
	if err != nil || queue < 0 || topic == "" {
		return messages.QueueKey{}, fmt.Errorf("half message at %d wants to go to topic %q, queue %q: %w",
			m.PhysicalOffset, topic, text, messages.ErrNoHalf)
	}
	return messages.QueueKey{Topic: topic, QueueID: int32(queue)}, nil
}

// restored is the message of a committed transaction (spec/store.md §11.2).
func restored(half *messages.StoredMessage) (*messages.Message, error) {
	to, err := real(half)
	if err != nil {
		return nil, err
	}
	m := half.Message
	m.Topic, m.QueueID = to.Topic, to.QueueID
	m.SysFlag = m.SysFlag&^messages.SysFlagTransactionMask | messages.SysFlagTransactionCommit
	m.PreparedTransactionOffset = half.PhysicalOffset
	m.Properties = m.Properties.InMapOrder(messages.MapBuckets)
	return &m, nil
}

// op says that the transaction of a half message has ended (spec/store.md §11.3).
func op(at messages.QueueOffset, host netip.AddrPort, now time.Time) *messages.Message {
	return &messages.Message{
		Topic: messages.TopicTransactionOp, Body: strconv.AppendInt(nil, int64(at), 10),
		BornTimestampMs: now.UnixMilli(), BornHost: host, StoreHost: host,
		Properties: messages.Properties("").With(messages.PropertyWait, "true").With(messages.PropertyTags, opTag),
	}
}

// endedBy are the half messages that an op message names: one, or several with commas as RocketMQ 5 writes them.
func endedBy(r *record.Record, fn func(messages.QueueOffset)) {
	if tags, _ := messages.ViewProperties(r.Properties).Get(messages.PropertyTags); tags != opTag {
		return
	}
	for text := range strings.SplitSeq(string(r.Body), ",") {
		if at, err := strconv.ParseInt(text, 10, 64); err == nil && at >= 0 {
			fn(messages.QueueOffset(at))
		}
	}
}

// moved is a copy of a half message for another queue of the store's own, with how often it has been checked.
func moved(half *messages.StoredMessage, topic string, checks int) *messages.Message {
	m := half.Message
	m.Topic, m.QueueID = topic, 0
	if checks > 0 {
		m.Properties = m.Properties.With(messages.PropertyTransactionChecks, strconv.Itoa(checks))
	}
	m.Properties = m.Properties.InMapOrder(messages.MapBuckets)
	return &m
}

// renewed is a copy of a half message at the end of its queue: it names the first one of its kind.
func renewed(half *messages.StoredMessage, checks int) *messages.Message {
	m := moved(half, messages.TopicTransactionHalf, checks)
	if _, ok := m.Properties.Get(messages.PropertyPreparedQueueOffset); !ok {
		m.Properties = m.Properties.With(messages.PropertyPreparedQueueOffset, strconv.FormatInt(int64(half.QueueOffset), 10)).
			InMapOrder(messages.MapBuckets)
	}
	return m
}

// Resumed is a given-up half message, as it is put back into the half queue to be checked anew
// (RESUME_CHECK_HALF_MESSAGE, spec/remoting.md §17.6).
func Resumed(m *messages.StoredMessage) (*messages.Message, error) {
	if _, err := real(m); err != nil || m.Topic != messages.TopicTransCheckMaxTime {
		return nil, fmt.Errorf("the message at %d is no half message that was given up: %w", m.PhysicalOffset, messages.ErrNoHalf)
	}
	back := m.Message
	back.Topic, back.QueueID = messages.TopicTransactionHalf, 0
	back.Properties = back.Properties.Without(messages.PropertyPreparedQueueOffset).
		With(messages.PropertyTransactionChecks, "0").InMapOrder(messages.MapBuckets)
	return &back, nil
}

// question is what a producer is asked about a half message.
func question(half *messages.StoredMessage, times int) (messages.CheckTransaction, error) {
	to, err := real(half)
	if err != nil {
		return messages.CheckTransaction{}, err
	}
	group, _ := half.Properties.Get(messages.PropertyProducerGroup)
	c := messages.CheckTransaction{
		Half:    messages.Half{Group: group, QueueOffset: half.QueueOffset, PhysicalOffset: half.PhysicalOffset},
		Message: *half, Times: times,
	}
	c.Message.Topic, c.Message.QueueID = to.Topic, to.QueueID
	c.Message.Properties = half.Properties.With(messages.PropertyTransactionChecks, strconv.Itoa(times)).InMapOrder(messages.MapBuckets)
	return c, nil
}

// verify compares a half message with the request that wants to end it, in the original's order.
func verify(half *messages.StoredMessage, m *messages.EndTransaction) error {
	group, _ := half.Properties.Get(messages.PropertyProducerGroup)
	switch {
	case half.Topic != messages.TopicTransactionHalf || half.PhysicalOffset != m.PhysicalOffset:
		return fmt.Errorf("offset %d: %w", m.PhysicalOffset, messages.ErrNoHalf)
	case group != m.Group:
		return fmt.Errorf("offset %d: %w", m.PhysicalOffset, messages.ErrTransactionGroup)
	case half.QueueOffset != m.QueueOffset:
		return fmt.Errorf("offset %d, queue offset %d: %w", m.PhysicalOffset, m.QueueOffset, messages.ErrTransactionOffset)
	}
	return nil
}
