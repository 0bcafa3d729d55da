package remoting

import (
	"unsafe"

	"github.com/actormq/actormq/messages/fastjson"
)

// shape is a JSON header that was read, and where those of the same peer differ from it: a client's requests of one code have the
// same text, up to the opaque and some values. A header that differs in nothing else is not scanned again. What is free to differ are
// the contents of ext fields and the digits of the opaque; quotes, backslashes and bytes beyond ASCII have to stand where they stood, so
// that the header is the same structure of the same lengths.
type shape struct {
	text   []byte // the header; empty: none is known
	free   []byte // as long: 0xFF where others may differ
	cmd    Command
	opaque span
	fields []fieldSpan

	length int  // of the last header that did not fit
	misses uint // headers since one did fit
}

// span is a part of a header.
type span struct{ from, to int }

func (s span) of(text string) string { return text[s.from:s.to] }

type fieldSpan struct {
	name, value span
	escaped     bool // the value has to be unquoted
}

const (
	longestShape = 1024 // bytes of a header that is kept for a connection
	relearn      = 64   // headers that do not fit after which another one is learned at the latest
)

// read decodes a header that fits into the command, as decodeJSON would. False: it does not fit, and nothing has been done.
func (s *shape) read(c *Command, header string, b *extBuilder) bool {
	if len(s.fields) == 0 || len(s.fields) > b.left || !fastjson.Alike(header, viewString(s.text), s.free) {
		return false
	}
	opaque, ok := parseInt(s.opaque.of(header), 32)
	if !ok {
		return false
	}
	known := viewString(s.text)
	if cap(b.ext) < len(s.fields) {
		b.ext = make(Ext, 0, usualFields)
	}
	ext, text := b.ext[:len(s.fields)], b.text
	for i := range s.fields {
		f := &s.fields[i]
		value := f.value.of(header)
		if f.escaped {
			from := len(text)
			// Where the buffer has to move, the strings before stay where they are.
			unquoted, err := fastjson.AppendUnquoted(text, value)
			if err != nil {
				return false
			}
			text = unquoted
			value = viewString(text[from:])
		}
		ext[i] = Pair{Name: f.name.of(known), Value: value}
	}
	b.ext, b.text = ext, text
	body := c.Body
	*c = s.cmd
	c.Opaque, c.ExtFields, c.Body = int32(opaque), ext, body
	s.misses = 0
	return true
}

// due tells whether a header that does not fit is worth to be learned: the one before was as long, and learning was not in vain each time.
func (s *shape) due(header string) bool {
	same := s.length == len(header)
	s.length = len(header)
	s.misses++
	again := s.misses&(s.misses-1) == 0 || s.misses%relearn == 0
	return same && again && len(header) <= longestShape
}

// learn keeps a header that has just been decoded into c; parts has the raw text of its opaque, and of its fields.
func (s *shape) learn(c *Command, header string, parts *rawParts) {
	s.fields = s.fields[:0]
	n := len(c.ExtFields)
	if c.Remark != "" || n == 0 || n > usualFields || n != len(parts.fields) {
		return
	}
	s.text = append(s.text[:0], header...)
	s.free = append(s.free[:0], make([]byte, len(header))...)
	var ok bool
	if s.opaque, ok = partOf(header, parts.opaque); !ok {
		return
	}
	for _, raw := range parts.fields {
		name, inside := partOf(header, raw.name)
		value, too := partOf(header, raw.value)
		if !inside || !too {
			s.fields = s.fields[:0]
			return
		}
		s.fields = append(s.fields, fieldSpan{name: name, value: value, escaped: raw.escaped})
		if raw.quoted {
			s.release(value)
		}
	}
	s.release(s.opaque)
	s.cmd = *c
	s.cmd.ExtFields, s.cmd.Body = nil, nil
}

func (s *shape) release(part span) {
	for i := part.from; i < part.to; i++ {
		s.free[i] = 0xFF
	}
}

// partOf finds a string that is a part of a text, by its address.
func partOf(text, part string) (span, bool) {
	if part == "" {
		return span{}, true
	}
	from := int(uintptr(unsafe.Pointer(unsafe.StringData(part))) - uintptr(unsafe.Pointer(unsafe.StringData(text))))
	return span{from, from + len(part)}, from >= 0 && from+len(part) <= len(text)
}

// rawParts are the parts of a header as they stand there.
type rawParts struct {
	opaque string
	fields []rawField
}

type rawField struct {
	name, value     string
	quoted, escaped bool
}
