package messages

import "unicode/utf8"

// JavaHash returns Java's String.hashCode of s: over UTF-16 units, wrapping (spec/store.md §0). Bytes that are not UTF-8
// count as U+FFFD, as often as Java's decoder would write it. It does not allocate.
func JavaHash(s string) int32 {
	h, rest := uint32(0), s
	for len(rest) >= 8 { // eight at a time: one multiplication after the other is what takes the time
		c := rest[:8]
		if c[0]|c[1]|c[2]|c[3]|c[4]|c[5]|c[6]|c[7] >= utf8.RuneSelf {
			break
		}
		h = h*pow8 + uint32(c[0])*pow7 + uint32(c[1])*pow6 + uint32(c[2])*pow5 + uint32(c[3])*pow4 +
			uint32(c[4])*pow3 + uint32(c[5])*pow2 + uint32(c[6])*31 + uint32(c[7])
		rest = rest[8:]
	}
	for i := 0; i < len(rest); i++ {
		if rest[i] >= utf8.RuneSelf {
			return javaHashUnicode(int32(h), rest[i:])
		}
		h = 31*h + uint32(rest[i])
	}
	return int32(h)
}

// The powers of 31, in 32 bits.
const (
	pow2 uint32 = 961
	pow3 uint32 = 29791
	pow4 uint32 = 923521
	pow5 uint32 = 28629151
	pow6 uint32 = 887503681
	pow7 uint32 = 1742810335
	pow8 uint32 = 2487512833
)

// JavaHashBytes is [JavaHash] of the string that the bytes hold in UTF-8. It does not allocate.
func JavaHashBytes(b []byte) int32 { return JavaHash(viewString(b)) }

// javaHashUnicode continues a hash over text that is no longer ASCII.
func javaHashUnicode(h int32, s string) int32 {
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			size = malformedBytes(s)
		}
		if r > 0xFFFF {
			r -= 0x10000
			h = 31*h + (0xD800 + r>>10)
			r = 0xDC00 + r&0x3FF
		}
		h = 31*h + r
		s = s[size:]
	}
	return h
}

// malformedBytes returns how many bytes at the start of s, which is not valid UTF-8 there, Java's decoder replaces by
// one U+FFFD: the longest start of a character, or a whole encoded surrogate.
func malformedBytes(s string) int {
	want := 1
	switch first := s[0]; {
	case first >= 0xE0 && first < 0xF0:
		want = 3
	case first >= 0xF0 && first < 0xF5:
		want = 4
	}
	if want == 1 || len(s) == 1 || !secondFits(s[0], s[1]) {
		return 1
	}
	n := 2
	for n < want && n < len(s) && s[n]&0xC0 == 0x80 {
		n++
	}
	return n
}

// secondFits tells whether Java's decoder takes second as the continuation of first. Surrogates pass: they are found
// out only when the character is whole.
func secondFits(first, second byte) bool {
	switch {
	case second&0xC0 != 0x80:
		return false
	case first == 0xE0:
		return second >= 0xA0
	case first == 0xF0:
		return second >= 0x90
	case first == 0xF4:
		return second < 0x90
	}
	return true
}
