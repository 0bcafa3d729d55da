package messages

import "net/netip"

// PhysicalOffset is a byte position in the concatenated commit log.
type PhysicalOffset int64

// QueueOffset is the ordinal of a message inside one (topic, queue).
type QueueOffset int64

// QueueKey names one queue of a topic.
type QueueKey struct {
	Topic   string
	QueueID int32
}

// Message is what a caller hands in to be stored (spec/store.md §2.1). Body and Properties are stored as they are:
// compressing a body and setting SysFlagCompressed is the caller's business.
type Message struct {
	Topic          string
	QueueID        int32
	Flag           int32 // the application's own flag, opaque
	SysFlag        int32 // see the SysFlag constants; the host bits are set by the encoder
	ReconsumeTimes int32

	BornTimestampMs int64          // the client's clock
	BornHost        netip.AddrPort // zero value: 0.0.0.0:0
	StoreHost       netip.AddrPort // zero value: the store's own address

	// PreparedTransactionOffset is that of the half message of a committed one; of one that a timer has delivered where it waited, plus 1;
	// of a dead letter that was sent again, below 0, that of the letter, plus 1; else 0.
	PreparedTransactionOffset PhysicalOffset

	Body       []byte
	Properties Properties
}

// Queue returns the queue that the message names.
func (m *Message) Queue() QueueKey { return QueueKey{Topic: m.Topic, QueueID: m.QueueID} }

// StoredMessage is a decoded record of the commit log.
type StoredMessage struct {
	Message
	StoreSize        int32 // bytes of the whole record
	BodyCRC          uint32
	QueueOffset      QueueOffset
	PhysicalOffset   PhysicalOffset
	StoreTimestampMs int64
}

// OffsetMessageID returns the id that names the record by store host and place (spec/store.md §2.7).
func (m *StoredMessage) OffsetMessageID() string {
	return OffsetMessageID(m.StoreHost, m.PhysicalOffset)
}
