package record

import (
	"bytes"
	"encoding/binary"

	"github.com/actormq/actormq/messages"
)

// magicPrefix is what the magic numbers of all versions begin with.
var magicPrefix = []byte{0xDA, 0xA3, 0x20}

// Resync finds where the log goes on behind damage (spec/store.md §16, W3): b begins with the damage and ends at a known
// end, that is where a record is known to begin or the readable part of the segment stops; at is the physical offset of
// its first byte, segmentEnd that of the segment's end when b reaches it, or when only zeros follow b there, 0 otherwise. It
// returns how far behind the damage that is; not ok: nothing in b
// is believed.
//
// A record is believed when a chain of records begins with it that runs to a known end: each is whole, has its body's
// checksum, names its own place and, of its queue, the offset behind the one before. Known ends are the end of b, and zeros
// up to the end of b: a torn blank, the end of the log, or, when b ends with the segment, what follows a blank record that
// fills it exactly. A record that was forged inside a body is none: what follows it in the body, or the topic behind the body,
// breaks its chain. Where the
// damaged record's own length leads is tried first, and when it leads to zeros only, then the damage is the last there is:
// what lies inside is never searched.
func Resync(b []byte, at, segmentEnd messages.PhysicalOffset) (n int, ok bool) {
	if own := int(TotalSize(b)); own >= MinBytes && own < len(b) && bytes.HasPrefix(b[magicAt:], magicPrefix) {
		if allZero(b[own:]) {
			return 0, false
		}
		if _, ok := chain(b[own:], at+messages.PhysicalOffset(own), segmentEnd); ok {
			return own, true
		}
	}
	for n = nextCandidate(b, 1, at); n < len(b); {
		broken, ok := chain(b[n:], at+messages.PhysicalOffset(n), segmentEnd)
		if ok {
			return n, true
		}
		// Whatever in the chain is begun with, it breaks there again: no record is looked at twice.
		n = nextCandidate(b, n+max(broken, 1), at)
	}
	return 0, false
}

// nextCandidate returns the first place at or behind from where a record that names its own place, or a blank, may begin;
// len(b) when there is none.
func nextCandidate(b []byte, from int, at messages.PhysicalOffset) int {
	for from+MinBytes <= len(b) {
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

// link is a queue whose records occur in a chain.
type link struct {
	topic string
	queue int32
}

// chain tells whether records follow one another from the start of b to a known end; when they do not, broken is where.
func chain(b []byte, at, segmentEnd messages.PhysicalOffset) (broken int, ok bool) {
	next := map[link]messages.QueueOffset{}
	for n := 0; n < len(b); {
		r, kind, err := Parse(b[n:], true)
		here := at + messages.PhysicalOffset(n)
		switch {
		case err == nil && kind == KindBlank:
			return n, messages.PhysicalOffset(r.Size) == segmentEnd-here && allZero(b[n+BlankBytes:])
		case err != nil:
			return n, n > 0 && allZero(b[n:])
		case r.PhysicalOffset != here || !follows(next, &r):
			return n, false
		}
		n += int(r.Size)
	}
	return len(b), true
}

// follows tells whether a record continues its queue in the chain.
func follows(next map[link]messages.QueueOffset, r *Record) bool {
	if !messages.TakesQueueOffset(r.SysFlag) {
		return true
	}
	key := link{topic: string(r.Topic), queue: r.QueueID}
	want, seen := next[key]
	next[key] = r.QueueOffset + 1
	return r.QueueOffset >= 0 && (!seen || r.QueueOffset == want)
}

func allZero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }
