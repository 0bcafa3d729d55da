package ext

import (
	"encoding/binary"
	"math"
)

// The format.
const (
	fixedBytes = 20                // of a unit without a bitmap
	endBytes   = 4                 // what stays free behind every unit of a file
	endMark    = -1                // in the place of a size: on in the next file
	maxAddress = math.MinInt32 - 1 // an address is at or below it
)

// Unit is what an address stands for. No bitmaps are written; those that are there are read over.
type Unit struct {
	TagsCode         int64
	StoreTimestampMs int64
}

// IsAddress tells whether what stands in the place of a tags code is an address.
func IsAddress(code int64) bool { return code <= maxAddress }

func addressOf(off int64) int64    { return off + math.MinInt64 }
func offsetOf(address int64) int64 { return address - math.MinInt64 }
func fitsAddress(off int64) bool   { return off >= 0 && off <= offsetOf(maxAddress) }
func appendMark(dst []byte) []byte { return binary.BigEndian.AppendUint16(dst, math.MaxUint16) }
func appendUnit(dst []byte, u Unit) []byte {
	dst = binary.BigEndian.AppendUint16(dst, fixedBytes)
	dst = binary.BigEndian.AppendUint64(dst, uint64(u.TagsCode))
	dst = binary.BigEndian.AppendUint64(dst, uint64(u.StoreTimestampMs))
	return binary.BigEndian.AppendUint16(dst, 0)
}

// sizeAt is the size of the unit at the start of b; false when there is none.
func sizeAt(b []byte) (int64, bool) {
	if len(b) < fixedBytes {
		return 0, false
	}
	size := int64(int16(binary.BigEndian.Uint16(b)))
	bitmap := int64(int16(binary.BigEndian.Uint16(b[fixedBytes-2:])))
	return size, size >= fixedBytes && bitmap >= 0 && size == fixedBytes+bitmap
}

func decode(b []byte) Unit {
	return Unit{
		TagsCode: int64(binary.BigEndian.Uint64(b[2:])), StoreTimestampMs: int64(binary.BigEndian.Uint64(b[10:])),
	}
}
