package fastjson

import "fmt"

// Limits of one text.
const (
	// MaxBytes is the longest input; a remoting frame is not longer either (spec/remoting.md §1.1). The strict form may
	// be twice as long.
	MaxBytes = 16 << 20
	// MaxDepth is the deepest nesting of objects and arrays.
	MaxDepth = 100
	// maxKeyDepth bounds object keys inside object keys: every level doubles the backslashes.
	maxKeyDepth = 2
)

// Relax turns the dialect of spec/remoting.md §2 into strict JSON: unquoted numeric and identifier keys become
// strings, an object used as a key becomes its own text encoded as a string, single quotes become double quotes,
// raw control characters and the escapes \' \v \F \0-\7 \xHH become standard ones. Strict JSON is returned as it is, without
// a copy; otherwise the answer is a new slice. The answer is valid JSON or there is an [*Error].
func Relax(in []byte) ([]byte, error) {
	if len(in) > MaxBytes {
		return nil, &Error{Offset: MaxBytes, Cause: ErrTooLarge, Detail: fmt.Sprintf("%d bytes, limit %d", len(in), MaxBytes)}
	}
	r := relaxer{in: in}
	r.space()
	if err := r.value(0); err != nil {
		return nil, err
	}
	r.space()
	if r.pos != len(in) {
		return nil, r.unexpected("after the value")
	}
	if r.copied == 0 && len(r.out) == 0 {
		return in, nil
	}
	return append(r.out, in[r.copied:]...), nil
}

// relaxer walks the input once. in[:copied] has gone to out, changed where needed; the rest is still as it was, so
// strict input never touches out.
type relaxer struct {
	in       []byte
	pos      int
	out      []byte
	copied   int
	keyDepth int
}

// splice replaces in[from:to] in the output. Calls come in ascending order.
func (r *relaxer) splice(from, to int, text string) error {
	if r.out == nil {
		r.out = make([]byte, 0, len(r.in)+len(r.in)/8+16)
	}
	r.out = append(append(r.out, r.in[r.copied:from]...), text...)
	r.copied = to
	if len(r.out) > 2*MaxBytes {
		return r.fail(ErrTooLarge, "strict form over %d bytes", 2*MaxBytes)
	}
	return nil
}

func (r *relaxer) fail(cause error, format string, args ...any) error {
	return &Error{Offset: r.pos, Cause: cause, Detail: fmt.Sprintf(format, args...)}
}

func (r *relaxer) unexpected(where string) error {
	if r.pos >= len(r.in) {
		return r.fail(ErrSyntax, "unexpected end %s", where)
	}
	return r.fail(ErrSyntax, "unexpected %q %s", r.in[r.pos], where)
}

// peek returns the byte at the position, 0 at the end; a 0 byte is no token either.
func (r *relaxer) peek() byte {
	if r.pos < len(r.in) {
		return r.in[r.pos]
	}
	return 0
}

func (r *relaxer) space() {
	for r.pos < len(r.in) {
		switch r.in[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return
		}
	}
}

func (r *relaxer) value(depth int) error {
	if depth > MaxDepth {
		return r.fail(ErrTooDeep, "limit %d", MaxDepth)
	}
	switch c := r.peek(); {
	case c == '{':
		return r.object(depth)
	case c == '[':
		return r.array(depth)
	case c == '"' || c == '\'':
		return r.text(c)
	case c == '-' || isDigit(c):
		return r.number()
	default:
		return r.literal()
	}
}

func (r *relaxer) object(depth int) error {
	r.pos++
	r.space()
	if r.peek() == '}' {
		r.pos++
		return nil
	}
	for {
		if err := r.member(depth); err != nil {
			return err
		}
		switch r.peek() {
		case ',':
			r.pos++
			r.space()
		case '}':
			r.pos++
			return nil
		default:
			return r.unexpected("in object")
		}
	}
}

// member reads key, colon and value with the space around them.
func (r *relaxer) member(depth int) error {
	if err := r.key(depth); err != nil {
		return err
	}
	r.space()
	if r.peek() != ':' {
		return r.unexpected("instead of a colon")
	}
	r.pos++
	r.space()
	if err := r.value(depth + 1); err != nil {
		return err
	}
	r.space()
	return nil
}

func (r *relaxer) array(depth int) error {
	r.pos++
	r.space()
	if r.peek() == ']' {
		r.pos++
		return nil
	}
	for {
		if err := r.value(depth + 1); err != nil {
			return err
		}
		r.space()
		switch r.peek() {
		case ',':
			r.pos++
			r.space()
		case ']':
			r.pos++
			return nil
		default:
			return r.unexpected("in array")
		}
	}
}

func (r *relaxer) key(depth int) error {
	from := r.pos
	switch c := r.peek(); {
	case c == '"' || c == '\'':
		return r.text(c)
	case c == '{':
		return r.objectKey(depth)
	case c == '-' || isDigit(c):
		if err := r.number(); err != nil {
			return err
		}
	case isIdentifierStart(c):
		for isIdentifierStart(r.peek()) || isDigit(r.peek()) {
			r.pos++
		}
	default:
		return r.unexpected("instead of a key")
	}
	return r.splice(from, r.pos, `"`+string(r.in[from:r.pos])+`"`)
}

// objectKey reads an object in the place of a key and writes its strict text as a string.
func (r *relaxer) objectKey(depth int) error {
	if r.keyDepth == maxKeyDepth {
		return r.fail(ErrTooDeep, "object keys inside object keys, limit %d", maxKeyDepth)
	}
	from, out, copied := r.pos, r.out, r.copied
	r.out, r.copied = nil, from
	r.keyDepth++
	if err := r.value(depth + 1); err != nil {
		return err
	}
	r.keyDepth--
	inner := append(r.out, r.in[r.copied:r.pos]...)
	r.out, r.copied = out, copied
	return r.splice(from, r.pos, string(appendQuoted(make([]byte, 0, len(inner)+len(inner)/2+2), inner)))
}

// appendQuoted writes strict JSON text as a JSON string. Outside of strings that text may hold tabs and newlines.
func appendQuoted(dst, text []byte) []byte {
	dst = append(dst, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20:
			dst = append(dst, controlEscape(c)...)
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// number reads a strict JSON number; what follows is checked by the caller's next token.
func (r *relaxer) number() error {
	if r.peek() == '-' {
		r.pos++
	}
	if r.peek() == '0' {
		r.pos++
	} else if !r.digits() {
		return r.unexpected("in number")
	}
	if r.peek() == '.' {
		r.pos++
		if !r.digits() {
			return r.unexpected("in number")
		}
	}
	if r.peek() != 'e' && r.peek() != 'E' {
		return nil
	}
	r.pos++
	if r.peek() == '+' || r.peek() == '-' {
		r.pos++
	}
	if !r.digits() {
		return r.unexpected("in number")
	}
	return nil
}

func (r *relaxer) digits() bool {
	from := r.pos
	for isDigit(r.peek()) {
		r.pos++
	}
	return r.pos > from
}

func (r *relaxer) literal() error {
	for _, word := range [...]string{"null", "true", "false"} {
		if end := r.pos + len(word); end <= len(r.in) && string(r.in[r.pos:end]) == word {
			r.pos = end
			return nil
		}
	}
	return r.unexpected("instead of a value")
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isIdentifierStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$'
}
