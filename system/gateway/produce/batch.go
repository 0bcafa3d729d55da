package produce

import (
	"net/netip"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/record"
)

// putBatch stores the messages of a batch, all or none.
func (p *Producers) putBatch(r *gateway.Request, h *remoting.SendMessageHeader, m *messages.Message, waits bool) {
	d := p.placed(r, m.Topic, h.QueueID)
	d.batch, d.sizes = true, record.AppendBatchSizes(d.sizes, m)
	p.b.Store.PutBatchAsync(m, waits, p.deadline(r.At), d.tell)
}

// longestID is an offset id of an IPv6 address, and a comma.
const longestID = 57

// appendBatchIDs appends the offset ids of a stored batch with commas, in order, by the sizes of its records.
func appendBatchIDs(ids []byte, sizes []int32, host netip.AddrPort, at messages.PhysicalOffset) []byte {
	for i, size := range sizes {
		if i > 0 {
			ids = append(ids, ',')
		}
		ids = messages.AppendOffsetMessageID(ids, host, at)
		at += messages.PhysicalOffset(size)
	}
	return ids
}
