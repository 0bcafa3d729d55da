package record

import (
	"net/netip"

	"github.com/actormq/actormq/messages"
)

// Record is a record taken apart. Body, Topic and Properties are slices into the input of [Parse], valid as long as it
// is; all else is copied. An empty one of them may be nil or not.
type Record struct {
	Size           int32 // TOTALSIZE; for a blank as it stands there, not to be trusted
	Version        int8  // 1, or 2 for a record with a 16-bit topic length
	BodyCRC        uint32
	QueueID        int32
	Flag           int32
	SysFlag        int32 // as stored, host bits included
	ReconsumeTimes int32

	QueueOffset      messages.QueueOffset
	PhysicalOffset   messages.PhysicalOffset // as stored; whether it is the record's place is for the caller to compare
	BornTimestampMs  int64
	StoreTimestampMs int64

	BornHost  netip.AddrPort // a stored port beyond 65535 reads as 0; an IPv4 address mapped into IPv6 reads as IPv4
	StoreHost netip.AddrPort // likewise

	PreparedTransactionOffset messages.PhysicalOffset

	Body       []byte
	Topic      []byte
	Properties []byte // wire form, see [messages.ViewProperties]
}

// Stored returns the record as a message that owns its bytes.
func (r *Record) Stored() messages.StoredMessage {
	return messages.StoredMessage{
		Message: messages.Message{
			Topic:                     string(r.Topic),
			QueueID:                   r.QueueID,
			Flag:                      r.Flag,
			SysFlag:                   r.SysFlag,
			ReconsumeTimes:            r.ReconsumeTimes,
			BornTimestampMs:           r.BornTimestampMs,
			BornHost:                  r.BornHost,
			StoreHost:                 r.StoreHost,
			PreparedTransactionOffset: r.PreparedTransactionOffset,
			Body:                      append([]byte(nil), r.Body...),
			Properties:                messages.Properties(r.Properties),
		},
		StoreSize:        r.Size,
		BodyCRC:          r.BodyCRC,
		QueueOffset:      r.QueueOffset,
		PhysicalOffset:   r.PhysicalOffset,
		StoreTimestampMs: r.StoreTimestampMs,
	}
}
