package fastjson

import (
	"math/bits"
	"unsafe"
)

// Eight bytes at a time: a word with each byte's lowest bit, and one with its highest.
const (
	wordBytes = 8
	lowBits   = 0x0101010101010101
	highBits  = 0x8080808080808080
)

// zeros marks the zero bytes of a word by their highest bit; bytes above the lowest zero may be marked too.
func zeros(w uint64) uint64 { return (w - lowBits) &^ w & highBits }

// word reads eight bytes; the compiler makes one load of it.
func word(s string) uint64 {
	_ = s[wordBytes-1]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// Special is where the first quote or backslash at or behind a place stands, the length of s if there is none. The place may lie
// behind the end.
func Special(s string, at int) int {
	for ; at+wordBytes <= len(s); at += wordBytes {
		w := word(s[at:])
		if found := zeros(w^'"'*lowBits) | zeros(w^'\\'*lowBits); found != 0 {
			return at + bits.TrailingZeros64(found)/8
		}
	}
	for ; at < len(s); at++ {
		if s[at] == '"' || s[at] == '\\' {
			return at
		}
	}
	return len(s)
}

// unplain is where the first byte that does not stand for itself in a string is, at or behind a place.
func unplain(s string, at int) int {
	for ; at+wordBytes <= len(s); at += wordBytes {
		w := word(s[at:])
		control := (w - ' '*lowBits) &^ w & highBits // below a space; what else it marks lies behind one
		if found := zeros(w^'"'*lowBits) | zeros(w^'\\'*lowBits) | control | w&highBits; found != 0 {
			return at + bits.TrailingZeros64(found)/8
		}
	}
	for at < len(s) && plain[s[at]] {
		at++
	}
	return at
}

// Alike tells whether two texts of JSON differ only where free is 0xFF, and there only in bytes that are neither quote nor backslash and
// are ASCII in both: strings that begin and end there do so in both. Texts that are not as long as free are not alike.
func Alike(a, b string, free []byte) bool {
	if len(a) != len(b) || len(a) != len(free) || len(a) < wordBytes {
		return false
	}
	mask := unsafe.String(unsafe.SliceData(free), len(free))
	last := len(a) - wordBytes
	for i := 0; ; i = min(i+wordBytes, last) {
		x, y := word(a[i:]), word(b[i:])
		if diff := x ^ y; diff != 0 && (diff&^word(mask[i:]) != 0 || (special(x)|special(y))&^exactZeros(diff)&highBits != 0) {
			return false
		}
		if i == last {
			return true
		}
	}
}

// special marks quotes, backslashes and what is not ASCII.
func special(w uint64) uint64 {
	return exactZeros(w^'"'*lowBits) | exactZeros(w^'\\'*lowBits) | w&highBits
}

// exactZeros marks the zero bytes of a word by their highest bit, and no others.
func exactZeros(w uint64) uint64 {
	const low7 = ^uint64(highBits)
	return ^((w&low7 + low7) | w | low7)
}
