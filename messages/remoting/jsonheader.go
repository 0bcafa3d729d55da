package remoting

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/actormq/actormq/messages/fastjson"
)

// decodeJSON reads the JSON header (spec/remoting.md §1.3) in one pass without reflection. Unknown members are
// skipped; numbers may be strings; ext field values may be anything and are kept as their text, null ones are absent.
// Strings without escapes are parts of the header; what others become is in the builder's memory.
func (c *Command) decodeJSON(header string, fields *extBuilder) error {
	if !utf8.ValidString(header) {
		header = strings.ToValidUTF8(header, "\uFFFD")
	}
	s := scanner{text: header, unquoted: fields.text, parts: fields.parts}
	err := s.members(func(name string) error { return c.member(&s, name, fields) })
	fields.text = s.unquoted
	if err != nil {
		return err
	}
	if s.next(); s.pos != len(s.text) {
		return s.unexpected("after the header")
	}
	return nil
}

func (c *Command) member(s *scanner, name string, fields *extBuilder) (err error) {
	var n int32
	switch name {
	case "code":
		n, err = s.number(name)
		c.Code = int(n)
	case "flag":
		c.Flag, err = s.number(name)
	case "opaque":
		from := s.pos
		c.Opaque, err = s.number(name)
		if s.parts != nil {
			s.parts.opaque = s.text[from:s.pos]
		}
	case "version":
		n, err = s.number(name)
		c.Version = int(n)
	case "language":
		c.Language, err = s.language()
	case "remark":
		c.Remark, _, err = s.value()
	case "extFields":
		c.ExtFields, err = s.extFields(fields)
	default:
		_, _, err = s.value()
	}
	return err
}

// scanner walks the text of a JSON header.
type scanner struct {
	text     string
	pos      int
	unquoted []byte // the strings that had escapes, back to back
	raw      string // the last string as it stands in the text
	parts    *rawParts
}

func (s *scanner) unexpected(where string) error {
	if s.pos >= len(s.text) {
		return fmt.Errorf("%w: unexpected end %s", ErrBadHeader, where)
	}
	return fmt.Errorf("%w: byte %d: unexpected %q %s", ErrBadHeader, s.pos, s.text[s.pos], where)
}

// next skips space and returns the byte at the position, 0 at the end; a 0 byte is no token either.
func (s *scanner) next() byte {
	for s.pos < len(s.text) {
		switch c := s.text[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// members reads an object. It calls member with each name; member reads the value.
func (s *scanner) members(member func(name string) error) error {
	if s.next() != '{' {
		return s.unexpected("instead of an object")
	}
	s.pos++
	if s.next() == '}' {
		s.pos++
		return nil
	}
	for {
		if s.next() != '"' {
			return s.unexpected("instead of a name")
		}
		name, err := s.string()
		if err != nil {
			return err
		}
		if s.next() != ':' {
			return s.unexpected("instead of a colon")
		}
		s.pos++
		if err := member(name); err != nil {
			return err
		}
		switch s.next() {
		case ',':
			s.pos++
		case '}':
			s.pos++
			return nil
		default:
			return s.unexpected("in object")
		}
	}
}

// string reads a string, its opening quote being at the position.
func (s *scanner) string() (string, error) {
	content, escaped, err := s.quoted()
	if err != nil {
		return "", err
	}
	s.raw = content
	if !escaped {
		return content, nil
	}
	// Where the buffer has to move, the strings before stay where they are.
	text, err := fastjson.AppendUnquoted(slices.Grow(s.unquoted, len(content)), content)
	if err != nil {
		return "", fmt.Errorf("%w: string before byte %d: %w", ErrBadHeader, s.pos, err)
	}
	before := len(s.unquoted)
	s.unquoted = text
	return viewString(text[before:]), nil
}

// quoted goes behind a string, and returns what is between its quotes.
func (s *scanner) quoted() (content string, escaped bool, err error) {
	from := s.pos + 1
	at := fastjson.Special(s.text, from)
	for at < len(s.text) && s.text[at] == '\\' {
		escaped = true
		at = fastjson.Special(s.text, at+2)
	}
	if at >= len(s.text) {
		return "", false, fmt.Errorf("%w: string at byte %d has no end", ErrBadHeader, s.pos)
	}
	s.pos = at + 1
	return s.text[from:at], escaped, nil
}

func (s *scanner) skipString() error {
	_, _, err := s.quoted()
	return err
}

// value reads any value and returns its text; objects and arrays are not looked into.
func (s *scanner) value() (text string, null bool, err error) {
	switch s.next() {
	case '"':
		text, err = s.string()
		return text, false, err
	case '{', '[':
		from := s.pos
		err = s.skipNested()
		return s.text[from:s.pos], false, err
	}
	text, err = s.word()
	if text == "null" {
		return "", true, err
	}
	return text, false, err
}

// word reads a number or literal.
func (s *scanner) word() (string, error) {
	from := s.pos
	for s.pos < len(s.text) && isWordByte(s.text[s.pos]) {
		s.pos++
	}
	word := s.text[from:s.pos]
	if word == "null" || word == "true" || word == "false" || isNumberText(word) {
		return word, nil
	}
	s.pos = from
	return "", s.unexpected("instead of a value")
}

func isWordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '+' || c == '.'
}

func isNumberText(word string) bool {
	for _, c := range []byte(word) {
		if (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E' {
			return false
		}
	}
	return word != ""
}

// skipNested passes an object or array by counting brackets.
func (s *scanner) skipNested() error {
	for depth := 0; s.pos < len(s.text); {
		switch s.text[s.pos] {
		case '"':
			if err := s.skipString(); err != nil {
				return err
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		s.pos++
		if depth == 0 {
			return nil
		}
	}
	return s.unexpected("in a nested value")
}

func (s *scanner) number(name string) (int32, error) {
	text, null, err := s.value()
	if err != nil || null || text == "" {
		return 0, err
	}
	n, ok := parseInt(text, 32)
	if !ok {
		return 0, fmt.Errorf("%w: %s %.40q is no 32-bit number", ErrBadHeader, name, text)
	}
	return int32(n), nil
}

// language reads a name, or the byte of the binary codec.
func (s *scanner) language() (Language, error) {
	text, null, err := s.value()
	if err != nil || null {
		return LanguageUnknown, err
	}
	if known := LanguageOf(text); known != LanguageUnknown {
		return known, nil
	}
	if n, err := strconv.ParseUint(text, 10, 8); err == nil {
		return Language(n), nil
	}
	return LanguageUnknown, nil
}

func (s *scanner) extFields(fields *extBuilder) (Ext, error) {
	if s.next() == 'n' {
		_, _, err := s.value()
		return nil, err
	}
	fields.begin()
	err := s.members(func(name string) error {
		quoted := s.next() == '"'
		value, null, err := s.value()
		if err != nil || null {
			return err
		}
		if s.parts != nil {
			s.note(name, value, quoted)
		}
		return fields.add(name, value)
	})
	if fields.ext == nil {
		fields.ext = Ext{}
	}
	return fields.ext, err
}

// note keeps how a field that has just been read stands in the text.
func (s *scanner) note(name, value string, quoted bool) {
	raw := rawField{name: name, value: value, quoted: quoted}
	if quoted {
		raw.value, raw.escaped = s.raw, strings.IndexByte(s.raw, '\\') >= 0
	}
	s.parts.fields = append(s.parts.fields, raw)
}

// appendJSON writes the header as the original does: compact, names in alphabetical order, absent members left out.
func (c *Command) appendJSON(dst []byte, h Header) []byte {
	dst = append(dst, `{"code":`...)
	dst = strconv.AppendInt(dst, int64(c.Code), 10)
	if c.ExtFields != nil || h != nil {
		dst = append(dst, `,"extFields":{`...)
		dst = append(c.appendFields(dst, h), '}')
	}
	dst = append(dst, `,"flag":`...)
	dst = strconv.AppendInt(dst, int64(c.Flag), 10)
	if int(c.Language) < len(languageNames) {
		dst = append(dst, `,"language":"`...)
		dst = append(append(dst, languageNames[c.Language]...), '"')
	}
	dst = append(dst, `,"opaque":`...)
	dst = strconv.AppendInt(dst, int64(c.Opaque), 10)
	if c.Remark != "" {
		dst = fastjson.AppendString(append(dst, `,"remark":`...), c.Remark)
	}
	dst = append(dst, `,"serializeTypeCurrentRPC":"JSON","version":`...)
	return append(strconv.AppendInt(dst, int64(c.Version), 10), '}')
}
