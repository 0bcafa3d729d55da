package reput

import (
	"bytes"
	"encoding/binary"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
)

// Fields that every record has at the same place (spec/store.md §2.1).
const (
	magicAt          = 4
	physicalOffsetAt = 28
)

// chainRecords is how many records behind one another are enough to believe the first, when no known end comes before.
const chainRecords = 16

// magicPrefix is what the magic numbers of all versions begin with.
var magicPrefix = []byte{0xDA, 0xA3, 0x20}

// findRecord returns how far behind the damage at the start of b the next record or blank stands that is believed, or
// len(b) when there is none. b reaches to the readable end of the segment, at is the physical offset of its first byte,
// end that of the segment's end.
func findRecord(b []byte, at, end messages.PhysicalOffset) int {
	if n := int(record.TotalSize(b)); n >= record.MinBytes && n <= len(b) {
		if n == len(b) || believed(b[n:], at+messages.PhysicalOffset(n), end) {
			return n
		}
	}
	for n := nextCandidate(b, 1, at); n < len(b); n = nextCandidate(b, n+1, at) {
		if believed(b[n:], at+messages.PhysicalOffset(n), end) {
			return n
		}
	}
	return len(b)
}

// nextCandidate returns the first place at or behind from where a record that names its own place may begin, len(b) when
// there is none.
func nextCandidate(b []byte, from int, at messages.PhysicalOffset) int {
	for from+record.MinBytes <= len(b) {
		i := bytes.Index(b[from+magicAt:], magicPrefix)
		if i < 0 {
			break
		}
		from += i
		if field := from + physicalOffsetAt; field+8 <= len(b) &&
			binary.BigEndian.Uint64(b[field:]) == uint64(at)+uint64(from) {
			return from
		}
		from++
	}
	return len(b)
}

// believed tells whether a chain of records begins at b and runs to a known end, or far enough; see the package.
func believed(b []byte, at, end messages.PhysicalOffset) bool {
	var c chain
	for c.len < chainRecords && len(b) > 0 {
		r, kind, err := record.Parse(b, true)
		if err == nil && kind == record.KindBlank {
			return messages.PhysicalOffset(r.Size) == end-at
		}
		if err != nil || r.PhysicalOffset != at || !c.add(&r) {
			return false
		}
		b = b[r.Size:]
		at += messages.PhysicalOffset(r.Size)
	}
	return c.len > 0
}

// chain remembers the queues of the records in it.
type chain struct {
	len   int
	links [chainRecords]link
}

type link struct {
	topic []byte
	queue int32
	next  messages.QueueOffset
}

// add tells whether a record continues its queue in the chain.
func (c *chain) add(r *record.Record) bool {
	c.len++
	if !messages.TakesQueueOffset(r.SysFlag) {
		return true
	}
	for i := range c.links {
		l := &c.links[i]
		switch {
		case l.topic == nil:
			*l = link{topic: r.Topic, queue: r.QueueID, next: r.QueueOffset + 1}
			return r.QueueOffset >= 0
		case l.queue == r.QueueID && bytes.Equal(l.topic, r.Topic):
			l.next++
			return r.QueueOffset == l.next-1
		}
	}
	return true
}
