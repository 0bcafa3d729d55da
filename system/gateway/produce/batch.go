package produce

import (
	"encoding/binary"
	"math"
	"net/netip"
	"strings"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/record"
)

// putBatch stores the messages of a batch, all or none. Its topic is taken as it stands: clients do not batch retries.
func (p *Producers) putBatch(r *gateway.Request, h *remoting.SendMessageHeader, topic metadata.TopicConfig) {
	m := p.envelope(r, h, topic)
	d := &placed{producers: p, r: r, topic: topic.TopicName, queueID: h.QueueID, batch: m}
	p.b.Store.PutBatchAsync(m, waits(h.Properties), p.deadline(r.At), d.done)
}

// batchIDs are the offset ids of a stored batch with commas, in order. The batch has passed the store's checks, so its
// lengths are right.
func batchIDs(envelope *messages.Message, host netip.AddrPort, first messages.PhysicalOffset) string {
	ids := strings.Builder{}
	one := *envelope
	for rest := envelope.Body; len(rest) > 0; {
		n := binary.BigEndian.Uint32(rest)
		one.Body, rest = rest[:n], rest[n:]
		size, _, err := record.BatchSize(&one, math.MaxInt32)
		if err != nil {
			break // can't be: all of them have just been stored
		}
		if ids.Len() > 0 {
			ids.WriteByte(',')
		}
		ids.WriteString(messages.OffsetMessageID(host, first))
		first += messages.PhysicalOffset(size)
	}
	return ids.String()
}
