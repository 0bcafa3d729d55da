package consumequeue

import (
	"encoding/binary"
	"math"

	"github.com/actormq/actormq/messages"
)

// UnitBytes is the length of a unit in a file; part of the format.
const UnitBytes = 20

// fillerSize marks a filler unit together with a zero physical offset.
const fillerSize = math.MaxInt32

// Unit names one record of the log (spec/store.md §6.3).
type Unit struct {
	PhysicalOffset messages.PhysicalOffset // of the record's first byte
	Size           int32                   // bytes of the record
	TagsCode       int64                   // hash of the tags; in the delay topic the delivery time in ms
}

// filler stands before the first unit of a queue that does not begin at the start of a file.
var filler = Unit{Size: fillerSize}

// End is the physical offset behind the record.
func (u Unit) End() messages.PhysicalOffset {
	return u.PhysicalOffset + messages.PhysicalOffset(u.Size)
}

// Valid tells whether the unit can name a record: it is neither zeros nor a filler, and its numbers make sense.
func (u Unit) Valid() bool {
	return uint64(u.PhysicalOffset) <= math.MaxInt64-math.MaxInt32 && u.Size > 0 && !u.isFiller()
}

func (u Unit) isFiller() bool { return u.PhysicalOffset == 0 && u.Size == fillerSize }

// AppendTo appends the 20 bytes of the unit to dst.
func (u Unit) AppendTo(dst []byte) []byte {
	var b [UnitBytes]byte
	putUnit(b[:], u)
	return append(dst, b[:]...)
}

// DecodeUnit reads a unit; b holds UnitBytes bytes at least. Whether it makes sense is said by Valid.
func DecodeUnit(b []byte) Unit { return decodeUnit((*[UnitBytes]byte)(b)) }

func decodeUnit(b *[UnitBytes]byte) Unit {
	return Unit{
		PhysicalOffset: messages.PhysicalOffset(binary.BigEndian.Uint64(b[:])),
		Size:           int32(binary.BigEndian.Uint32(b[8:])),
		TagsCode:       int64(binary.BigEndian.Uint64(b[12:])),
	}
}

func putUnit(b []byte, u Unit) {
	_ = b[UnitBytes-1]
	binary.BigEndian.PutUint64(b, uint64(u.PhysicalOffset))
	binary.BigEndian.PutUint32(b[8:], uint32(u.Size))
	binary.BigEndian.PutUint64(b[12:], uint64(u.TagsCode))
}
