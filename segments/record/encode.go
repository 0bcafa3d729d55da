package record

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/actormq/actormq/messages"
)

// Append encodes the message behind dst. The three holes (queue offset, physical offset, store timestamp) are zero until
// [SetPlace] fills them. The host bits of the system flag follow the hosts; a zero host is written as 0.0.0.0:0, an IPv6
// zone is lost. With enough capacity in dst nothing is allocated. On an error, one of [Size], dst comes back unchanged.
func Append(dst []byte, m *messages.Message) ([]byte, error) {
	size, err := Size(m)
	if err != nil {
		return dst, err
	}
	d := draft{
		envelope: m,
		sysFlag:  hostBits(m),
		flag:     m.Flag,
		prepared: m.PreparedTransactionOffset,
		body:     m.Body,
		outer:    m.Properties,
	}
	out, rec := extend(dst, size)
	d.write(rec)
	return out, nil
}

// SetPlace fills the three holes of a whole encoded record at the start of rec. It trusts the record and checks nothing
// but the bounds of the slice; it does not allocate.
func SetPlace(rec []byte, q messages.QueueOffset, p messages.PhysicalOffset, storeTimestampMs int64) {
	binary.BigEndian.PutUint64(rec[queueOffsetAt:], uint64(q))
	binary.BigEndian.PutUint64(rec[physicalOffsetAt:], uint64(p))
	at := StoreTimestampOffset(int32(binary.BigEndian.Uint32(rec[sysFlagAt:])))
	binary.BigEndian.PutUint64(rec[at:], uint64(storeTimestampMs))
}

// PlaceOf returns the physical offset that a record says that it stands at; -1 if b is too short to hold it.
func PlaceOf(b []byte) messages.PhysicalOffset {
	if len(b) < PlaceBytes {
		return -1
	}
	return messages.PhysicalOffset(binary.BigEndian.Uint64(b[physicalOffsetAt:]))
}

// TotalSize returns the TOTALSIZE field of the record (or blank) at the start of b, as it stands there; 0 if b is too
// short to hold it.
func TotalSize(b []byte) int32 {
	if len(b) < 4 {
		return 0
	}
	return int32(binary.BigEndian.Uint32(b))
}

// draft is one record about to be written: what a batch takes from its envelope, and what each member has of its own.
// All lengths have been checked.
type draft struct {
	envelope *messages.Message // topic, queue, hosts, born time, reconsume times
	sysFlag  int32             // with the host bits
	flag     int32
	prepared messages.PhysicalOffset
	body     []byte
	inner    []byte              // a batch member's own properties
	outer    messages.Properties // behind them those of the envelope
}

// propertiesBytes returns the length of both property strings joined (spec/store.md §2.10).
func (d *draft) propertiesBytes() int {
	n := len(d.inner) + len(d.outer)
	if d.needsSeparator() {
		n++
	}
	if d.endsInZero() && n < messages.MaxPropertiesBytes {
		n++
	}
	return n
}

// endsInZero tells whether the properties end in a zero byte. A separator is put behind it, which readers skip, so that
// zeros at the end of a record say that its last sectors never reached the disk (Record.torn).
func (d *draft) endsInZero() bool {
	if n := len(d.outer); n > 0 {
		return d.outer[n-1] == 0
	}
	n := len(d.inner)
	return n > 0 && d.inner[n-1] == 0
}

func (d *draft) needsSeparator() bool {
	return len(d.inner) > 0 && len(d.outer) > 0 && d.inner[len(d.inner)-1] != separator
}

// separator stands between two properties (spec/store.md §2.5).
const separator = '\x02'

// write encodes the record into rec, which has exactly its size and may hold old bytes: each byte is written.
func (d *draft) write(rec []byte) { d.writeOwn(rec, d.writeHead(rec)) }

// writeHead writes what is the same for all records of one envelope, and returns where it ends: at the body's length. Between, it leaves
// room for what is a record's own.
func (d *draft) writeHead(rec []byte) (end int) {
	be, m := binary.BigEndian, d.envelope
	be.PutUint32(rec[magicAt:], Magic)
	be.PutUint32(rec[queueIDAt:], uint32(m.QueueID))
	be.PutUint64(rec[queueOffsetAt:], 0)
	be.PutUint64(rec[physicalOffsetAt:], 0)
	be.PutUint32(rec[sysFlagAt:], uint32(d.sysFlag))
	be.PutUint64(rec[bornTimestampAt:], uint64(m.BornTimestampMs))
	rest := putHost(rec[bornHostAt:], m.BornHost)
	be.PutUint64(rest, 0) // the store timestamp
	rest = putHost(rest[8:], m.StoreHost)
	be.PutUint32(rest, uint32(m.ReconsumeTimes))
	be.PutUint64(rest[4:], uint64(d.prepared))
	return len(rec) - len(rest) + 12
}

// writeOwn writes the rest of a record whose head, up to its body's length, is there.
func (d *draft) writeOwn(rec []byte, head int) {
	be, topic := binary.BigEndian, d.envelope.Topic
	be.PutUint32(rec[totalSizeAt:], uint32(len(rec)))
	be.PutUint32(rec[bodyCRCAt:], CRC(d.body))
	be.PutUint32(rec[flagAt:], uint32(d.flag))
	be.PutUint32(rec[head:], uint32(len(d.body)))
	rest := rec[head+4:]
	rest = rest[copy(rest, d.body):]
	rest[0] = byte(len(topic))
	rest = rest[1+copy(rest[1:], topic):]
	be.PutUint16(rest, uint16(d.propertiesBytes()))
	rest = rest[2+copy(rest[2:], d.inner):]
	if d.needsSeparator() {
		rest[0] = separator
		rest = rest[1:]
	}
	if rest = rest[copy(rest, d.outer):]; len(rest) > 0 {
		rest[0] = separator
	}
}

// putHost writes address and port and returns what follows them.
func putHost(b []byte, host netip.AddrPort) []byte {
	addr, n := host.Addr(), 4
	switch {
	case isV6(host):
		ip := addr.As16()
		n = copy(b, ip[:])
	case addr.IsValid():
		ip := addr.As4()
		copy(b, ip[:])
	default:
		clear(b[:n])
	}
	binary.BigEndian.PutUint32(b[n:], uint32(host.Port()))
	return b[n+4:]
}

// extend makes dst longer by n bytes and returns it together with the new part.
func extend(dst []byte, n int) (out, added []byte) {
	end := len(dst) + n
	out = slices.Grow(dst, n)[:end]
	return out, out[len(dst):end:end]
}
