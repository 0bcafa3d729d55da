package remoting

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// The ROCKETMQ binary header (spec/remoting.md §1.4):
//
//	code i16 | language u8 | version i16 | opaque i32 | flag i32 | remark len i32, remark |
//	ext len i32 | { key len i16, key, value len i32, value } …
const (
	binaryLanguageAt = 2
	binaryVersionAt  = 3
	binaryOpaqueAt   = 5
	binaryFlagAt     = 9
	binaryRemarkAt   = 13
	binaryMinBytes   = 21
)

func (c *Command) decodeBinary(header string, fields *extBuilder) error {
	if len(header) < binaryMinBytes {
		return fmt.Errorf("%w: %d bytes, a binary header has at least %d", ErrBadHeader, len(header), binaryMinBytes)
	}
	fixed := []byte(header[:binaryRemarkAt])
	c.Code = int(int16(binary.BigEndian.Uint16(fixed)))
	c.Language = Language(fixed[binaryLanguageAt])
	c.Version = int(int16(binary.BigEndian.Uint16(fixed[binaryVersionAt:])))
	c.Opaque = int32(binary.BigEndian.Uint32(fixed[binaryOpaqueAt:]))
	c.Flag = int32(binary.BigEndian.Uint32(fixed[binaryFlagAt:]))
	rest := binaryReader{text: header[binaryRemarkAt:]}
	c.Remark = rest.string(4)
	entries := binaryReader{text: rest.chunk(4)}
	if rest.bad {
		return fmt.Errorf("%w: remark or ext length beyond a header of %d bytes", ErrBadHeader, len(header))
	}
	fields.begin()
	for entries.text != "" {
		name, value := entries.string(2), entries.string(4)
		if entries.bad {
			return fmt.Errorf("%w: length of ext field %d beyond the fields", ErrBadHeader, len(fields.ext))
		}
		if err := fields.add(name, value); err != nil {
			return err
		}
	}
	if c.ExtFields = fields.ext; len(fields.ext) == 0 {
		c.ExtFields = nil
	}
	return nil
}

// binaryReader takes length-prefixed strings off the front of its text. They share its memory.
type binaryReader struct {
	text string
	bad  bool
}

// string is chunk for text: what is not UTF-8 becomes U+FFFD.
func (b *binaryReader) string(width int) string { return strings.ToValidUTF8(b.chunk(width), "\uFFFD") }

// chunk reads a big-endian length of width bytes and that many bytes. Lengths are signed; a negative one, like
// one beyond the end, makes the reader bad.
func (b *binaryReader) chunk(width int) string {
	if b.bad || len(b.text) < width {
		b.bad = true
		return ""
	}
	n := uint64(0)
	for _, c := range []byte(b.text[:width]) {
		n = n<<8 | uint64(c)
	}
	b.text = b.text[width:]
	negative := n>>(8*width-1) != 0
	if negative || n > uint64(len(b.text)) {
		b.bad = true
		return ""
	}
	chunk := b.text[:n]
	b.text = b.text[n:]
	return chunk
}

func (c *Command) appendBinary(dst []byte, h Header) ([]byte, error) {
	if int(int16(c.Code)) != c.Code || int(int16(c.Version)) != c.Version {
		return dst, fmt.Errorf("%w: code %d or version %d does not fit into 16 bits", ErrBadHeader, c.Code, c.Version)
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(c.Code))
	dst = append(dst, byte(c.Language))
	dst = binary.BigEndian.AppendUint16(dst, uint16(c.Version))
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.Opaque))
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.Flag))
	dst = appendChunk32(dst, c.Remark)
	lengthAt := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for _, field := range c.ExtFields {
		if len(field.Name) > math.MaxInt16 {
			return dst, fmt.Errorf("%w: ext field name of %d bytes", ErrBadHeader, len(field.Name))
		}
	}
	dst = c.appendFields(dst, h)
	binary.BigEndian.PutUint32(dst[lengthAt:], uint32(len(dst)-lengthAt-4))
	return dst, nil
}

func appendChunk32(dst []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(text))), text...)
}
