package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"

	"github.com/actormq/actormq/messages"
)

// Kind tells a message from the end of a segment.
type Kind int

// What [Parse] recognises. The zero value comes with an error.
const (
	KindMessage Kind = iota + 1
	KindBlank        // jump to the next segment, whatever the blank's size says
)

// Parse takes the record at the start of b apart; b reaches to the end of what is readable, and more than the record is
// welcome. On request the body's checksum is compared, not that of an empty body (spec/store.md §2.3), and topic and
// properties, which have none, must not have a sector of zeros. On success nothing is allocated.
//
// The error is an [*Error]: ErrUnallocated, ErrBadMagic, ErrNewerVersion, ErrBadSize, ErrTruncated, ErrBadLengths, ErrBadCRC
// or ErrTorn. With ErrBadLengths the record's Size is set and lies inside b; with the last two the record is complete.
func Parse(b []byte, checkCRC bool) (Record, Kind, error) {
	var r Record
	kind, err := r.Parse(b, checkCRC)
	return r, kind, err
}

// Parse is [Parse] into r.
func (r *Record) Parse(b []byte, checkCRC bool) (Kind, error) {
	*r = Record{}
	version, err := versionOf(b)
	if err != nil {
		return 0, err
	}
	if version == 0 {
		r.Size = TotalSize(b)
		return KindBlank, nil
	}
	r.Version = version
	if err = r.readSize(b); err != nil {
		*r = Record{}
		return 0, err
	}
	rec := b[:r.Size:r.Size]
	at, err := r.readHeader(rec)
	if err != nil {
		*r = Record{}
		return 0, err
	}
	if err = r.readBlocks(rec, at); err != nil {
		*r = Record{Version: version, Size: r.Size}
		return 0, err
	}
	if checkCRC && len(r.Body) > 0 {
		if crc := CRC(r.Body); crc != r.BodyCRC {
			return 0, newError(BadCRC, bodyCRCAt, "stored %08x, %d bytes of body have %08x", r.BodyCRC, len(r.Body), crc)
		}
	}
	if checkCRC {
		if at, torn := r.torn(rec); torn {
			return 0, newError(Torn, at, "a sector of zeros")
		}
	}
	return KindMessage, nil
}

// sectorBytes is what a disk writes as a whole; segments begin at multiples of it.
const sectorBytes = 512

// torn tells whether what lies of topic or properties in one sector is zero, and where: a power cut has kept the
// sectors before it and not this one. A put never ends properties in a zero, see draft.endsInZero.
func (r *Record) torn(rec []byte) (at int, torn bool) {
	end := len(rec) - len(r.Properties) - 2
	for _, part := range [2][2]int{{end - len(r.Topic), end}, {len(rec) - len(r.Properties), len(rec)}} {
		first := part[0] + int(-(int64(r.PhysicalOffset)+int64(part[0]))&(sectorBytes-1))
		for at := first; at < part[1]; at += sectorBytes {
			if isZero(rec[at:min(at+sectorBytes, part[1])]) {
				return at, true
			}
		}
	}
	return 0, false
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// DecodeAll returns copies of the records that stand one behind the other in b, as in the answer to a pull; bodies are
// compared with their checksums. A blank ends it with an error, as does anything else that is no record; what stood
// before comes with the error.
func DecodeAll(b []byte) ([]messages.StoredMessage, error) {
	var all []messages.StoredMessage
	for at := 0; at < len(b); {
		r, kind, err := Parse(b[at:], true)
		if err == nil && kind == KindBlank {
			err = newError(BadMagic, magicAt, "a blank record among messages")
		}
		if err != nil {
			return all, fmt.Errorf("record %d at byte %d of %d: %w", len(all), at, len(b), err)
		}
		all = append(all, r.Stored())
		at += int(r.Size)
	}
	return all, nil
}

// DecodeWhole is [DecodeAll] of an answer in which some records may be damaged: one whose bytes are not as they were stored, by its
// checksum (ErrBadCRC, ErrTorn), is left out, and damaged names each by its physical offset.
func DecodeWhole(b []byte) (whole []messages.StoredMessage, damaged, err error) {
	for at := 0; at < len(b); {
		r, kind, err := Parse(b[at:], true)
		switch {
		case err == nil && kind == KindBlank:
			err = newError(BadMagic, magicAt, "a blank record among messages")
		case err == nil:
			whole = append(whole, r.Stored())
		case errors.Is(err, ErrBadCRC) || errors.Is(err, ErrTorn):
			damaged, err = errors.Join(damaged, fmt.Errorf("the message at physical offset %d is damaged: %w", r.PhysicalOffset, err)), nil
		}
		if err != nil {
			return whole, damaged, fmt.Errorf("record at byte %d of %d: %w", at, len(b), err)
		}
		at += int(r.Size)
	}
	return whole, damaged, nil
}

// versionOf reads the magic: 1 or 2 for a message, 0 for a blank.
func versionOf(b []byte) (int8, error) {
	if len(b) < BlankBytes {
		return 0, newError(Truncated, 0, "%d bytes readable, a record begins with %d", len(b), BlankBytes)
	}
	switch magic := binary.BigEndian.Uint32(b[magicAt:]); {
	case magic == Magic:
		return 1, nil
	case magic == MagicV2:
		return 2, nil
	case magic == BlankMagic:
		return 0, nil
	case magic == 0 && TotalSize(b) == 0:
		return 0, &Error{Kind: Unallocated}
	case isNewer(magic):
		return 0, newError(NewerVersion, magicAt, "magic %08x, known are %08x and %08x", magic, Magic, MagicV2)
	default:
		return 0, newError(BadMagic, magicAt, "%08x", magic)
	}
}

// isNewer tells whether a magic continues the series: each version so far added four.
func isNewer(magic uint32) bool {
	return magic > MagicV2 && magic|0xFF == MagicV2|0xFF && (magic-Magic)%(MagicV2-Magic) == 0
}

// readSize reads TOTALSIZE and makes sure that a whole smallest record is readable.
func (r *Record) readSize(b []byte) error {
	r.Size = TotalSize(b)
	if least := MinBytes + r.topicLengthBytes() - 1; int(r.Size) < least {
		return newError(BadSize, totalSizeAt, "%d, at least %d", r.Size, least)
	}
	if int(r.Size) > len(b) {
		return newError(Truncated, totalSizeAt, "size %d, readable are %d", r.Size, len(b))
	}
	return nil
}

// readHeader reads what stands before the body's length and returns where that is. rec is the whole record, at least
// MinBytes long.
func (r *Record) readHeader(rec []byte) (int, error) {
	be := binary.BigEndian
	r.SysFlag = int32(be.Uint32(rec[sysFlagAt:]))
	storeTimestampAt := StoreTimestampOffset(r.SysFlag)
	storeHostAt := storeTimestampAt + 8
	reconsumeAt := storeHostAt + storeHostBytes(r.SysFlag)
	bodyLengthAt := reconsumeAt + 4 + 8
	if least := bodyLengthAt + 4 + r.topicLengthBytes() + 2; len(rec) < least {
		return 0, newError(BadSize, totalSizeAt, "%d, at least %d with system flag %#x", r.Size, least, uint32(r.SysFlag))
	}
	r.BodyCRC = be.Uint32(rec[bodyCRCAt:])
	r.QueueID = int32(be.Uint32(rec[queueIDAt:]))
	r.Flag = int32(be.Uint32(rec[flagAt:]))
	r.QueueOffset = messages.QueueOffset(be.Uint64(rec[queueOffsetAt:]))
	r.PhysicalOffset = messages.PhysicalOffset(be.Uint64(rec[physicalOffsetAt:]))
	r.BornTimestampMs = int64(be.Uint64(rec[bornTimestampAt:]))
	r.BornHost = readHost(rec[bornHostAt:storeTimestampAt])
	r.StoreTimestampMs = int64(be.Uint64(rec[storeTimestampAt:]))
	r.StoreHost = readHost(rec[storeHostAt:reconsumeAt])
	r.ReconsumeTimes = int32(be.Uint32(rec[reconsumeAt:]))
	r.PreparedTransactionOffset = messages.PhysicalOffset(be.Uint64(rec[reconsumeAt+4:]))
	return bodyLengthAt, nil
}

// readBlocks reads body, topic and properties, which must fill the record from at to its end.
func (r *Record) readBlocks(rec []byte, at int) error {
	be := binary.BigEndian
	behindBody := r.topicLengthBytes() + 2 // the two lengths that follow a body

	length := int(int32(be.Uint32(rec[at:])))
	if room := len(rec) - at - 4 - behindBody; length < 0 || length > room {
		return newError(BadLengths, at, "body length %d, room for %d", length, room)
	}
	at += 4
	r.Body = rec[at : at+length]
	at += length

	length = int(int8(rec[at]))
	if r.Version == 2 {
		length = int(int16(be.Uint16(rec[at:])))
	}
	if room := len(rec) - at - behindBody; length < 0 || length > room {
		return newError(BadLengths, at, "topic length %d, room for %d", length, room)
	}
	at += r.topicLengthBytes()
	r.Topic = rec[at : at+length]
	at += length

	length = int(int16(be.Uint16(rec[at:])))
	if room := len(rec) - at - 2; length != room {
		return newError(BadLengths, at, "properties length %d, the record's size leaves %d", length, room)
	}
	r.Properties = rec[at+2:]
	return nil
}

func (r *Record) topicLengthBytes() int {
	if r.Version == 2 {
		return 2
	}
	return 1
}

// readHost reads address and port from 8 or 20 bytes.
func readHost(b []byte) netip.AddrPort {
	port := binary.BigEndian.Uint32(b[len(b)-4:])
	if port > math.MaxUint16 {
		port = 0
	}
	if len(b) == hostV6Bytes {
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b)).Unmap(), uint16(port))
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b)), uint16(port))
}

// PlaceBytes is how much of a record StandsAt looks at, from its beginning.
const PlaceBytes = physicalOffsetAt + 8

// StandsAt tells, without taking the record apart, whether b is one whole record that says of itself that it stands at a
// physical offset: what a reader checks before it hands on bytes that a consume-queue unit names. It does not allocate.
func StandsAt(b []byte, at messages.PhysicalOffset) bool {
	if len(b) < MinBytes || int(TotalSize(b)) != len(b) {
		return false
	}
	magic := binary.BigEndian.Uint32(b[magicAt:])
	return (magic == Magic || magic == MagicV2) && binary.BigEndian.Uint64(b[physicalOffsetAt:]) == uint64(at)
}

// IsPlainAt tells whether b StandsAt a physical offset and can't be what IsLost, by three looks at its first PlaceBytes; it does not allocate.
func IsPlainAt(b []byte, at messages.PhysicalOffset) bool {
	if len(b) < MinBytes {
		return false
	}
	begin := binary.BigEndian.Uint64(b[totalSizeAt:]) // size and magic
	sized := uint64(uint32(len(b))) << 32
	return (begin == sized|uint64(Magic) || begin == sized|uint64(MagicV2)) && binary.BigEndian.Uint64(b[physicalOffsetAt:]) == uint64(at) &&
		binary.BigEndian.Uint32(b[flagAt:]) != uint32(LostFlag)
}

// StoreTimestamp is when the record at the beginning of b was stored (ms), by its head alone, if that is one of a record which says
// of itself that it stands at a physical offset and ends within b. It does not allocate.
func StoreTimestamp(b []byte, at messages.PhysicalOffset) (ms int64, ok bool) {
	if len(b) < MinBytes {
		return 0, false
	}
	size := int(TotalSize(b))
	if size < MinBytes || size > len(b) || !StandsAt(b[:size], at) {
		return 0, false
	}
	field := StoreTimestampOffset(int32(binary.BigEndian.Uint32(b[sysFlagAt:])))
	return int64(binary.BigEndian.Uint64(b[field:])), true
}
