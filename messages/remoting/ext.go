package remoting

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"

	"github.com/actormq/actormq/messages/fastjson"
)

// Pair is one ext field. Every value is a string on the wire (spec/remoting.md §0).
type Pair struct{ Name, Value string }

// Ext are the ext fields of a command in the order of the wire. No name occurs twice: decoders keep the last value.
type Ext []Pair

// Get returns the value of the field. Names are case-sensitive.
func (e Ext) Get(name string) (string, bool) {
	if i := e.index(name); i >= 0 {
		return e[i].Value, true
	}
	return "", false
}

// Set returns the fields with that value, replaced or appended; e itself may be changed.
func (e Ext) Set(name, value string) Ext {
	if i := e.index(name); i >= 0 {
		e[i].Value = value
		return e
	}
	return append(e, Pair{name, value})
}

func (e Ext) index(name string) int {
	for i := range e {
		if e[i].Name == name {
			return i
		}
	}
	return -1
}

// usualFields is what the longest ordinary request has: 14 of a send and two of a signature.
const usualFields = 16

// extBuilder collects the fields of one header and keeps names unique.
type extBuilder struct {
	ext   Ext
	names uint64    // a filter of the names so far: a clear bit means the name is new
	left  int       // fields that may still come, repeated ones included
	text  []byte    // of strings that had escapes
	parts *rawParts // told of the parts of a JSON header, when it is set
}

// begin drops the fields so far: of two members "extFields" the last one counts.
func (b *extBuilder) begin() {
	b.ext, b.names = b.ext[:0], 0
	if b.parts != nil {
		b.parts.fields = b.parts.fields[:0]
	}
}

func (b *extBuilder) add(name, value string) error {
	if b.left--; b.left < 0 {
		return fmt.Errorf("%w: too many ext fields", ErrBadHeader)
	}
	bit := uint64(1)
	if n := len(name); n > 0 {
		bit <<= (name[0] + 5*name[n-1] + 11*byte(n)) & 63
	}
	if b.names&bit != 0 {
		b.ext = b.ext.Set(name, value)
		return nil
	}
	if b.ext == nil {
		b.ext = make(Ext, 0, usualFields)
	}
	b.names |= bit
	b.ext = append(b.ext, Pair{name, value})
	return nil
}

// Header is the typed header of a code. Fields calls one method of f per ext field; it serves both directions.
type Header interface{ Fields(f *Fields) }

// FromExt fills the header from ext fields. Unknown fields are ignored. The error is a [*FieldError] that names the
// first required field that is missing or the first number that cannot be read; the header is then filled in part.
func FromExt(ext Ext, h Header) error {
	f := Fields{ext: ext}
	h.Fields(&f)
	return f.err
}

// ToExt returns the ext fields of the header, never nil.
func ToExt(h Header) Ext {
	f := Fields{ext: Ext{}, encoding: true}
	h.Fields(&f)
	return f.ext
}

// appendFields writes ext fields as the command's codec does, in the place of c.ExtFields those of h unless it is nil. They go
// straight into the frame: an answer costs no list of them.
func (c *Command) appendFields(dst []byte, h Header) []byte {
	if sent, ok := h.(*SendMessageAnswer); ok && !c.Binary {
		return sent.appendJSON(dst)
	}
	f := fieldsPool.Get().(*Fields)
	f.encoding, f.wire, f.binary, f.first = true, dst, c.Binary, true // dst has the prefix, so it is not nil
	if f.typed = h != nil; f.typed {
		h.Fields(f)
	} else {
		for i := range c.ExtFields {
			f.put(c.ExtFields[i].Name, c.ExtFields[i].Value)
		}
	}
	dst = f.wire
	f.recycle()
	return dst
}

// fieldsPool: what is handed to a method of an interface is allocated.
var fieldsPool = sync.Pool{New: func() any { return new(Fields) }}

func (f *Fields) recycle() {
	*f = Fields{}
	fieldsPool.Put(f)
}

// Fields reads ext fields into a header's variables, or writes the variables as ext fields. Required numbers that are
// empty count as missing, because the binary codec cannot tell (spec/remoting.md §1.4). Booleans are true for "true" in
// any case, else false (§1.9).
type Fields struct {
	ext      Ext
	next     int // where to look first: requests are mostly in the order of the struct
	encoding bool
	err      error

	// Encoding into a frame, not into ext:
	wire   []byte // nil: into ext
	binary bool   // the codec
	first  bool   // nothing is written yet
	typed  bool   // names are those of a header of ours: they need no escapes
	digits [20]byte
}

// Text is a required string; it may be empty.
func (f *Fields) Text(name string, p *string) {
	if f.encoding {
		f.put(name, *p)
		return
	}
	value, ok := f.find(name)
	if !ok {
		f.fail(name, "", ErrFieldMissing)
	}
	*p = value
}

// OptionalText is a string that is empty when absent and absent when empty.
func (f *Fields) OptionalText(name string, p *string) {
	if !f.encoding {
		*p, _ = f.find(name)
	} else if *p != "" {
		f.put(name, *p)
	}
}

// Int32 is a required number of 32 bits.
func (f *Fields) Int32(name string, p *int32) {
	if f.encoding {
		f.putNumber(name, int64(*p))
		return
	}
	*p = int32(f.number(name, 32))
}

// OptionalInt32 has the value absent when it is not sent, and the reverse.
func (f *Fields) OptionalInt32(name string, p *int32, absent int32) {
	switch {
	case !f.encoding && f.has(name):
		*p = int32(f.number(name, 32))
	case !f.encoding:
		*p = absent
	case *p != absent:
		f.putNumber(name, int64(*p))
	}
}

// Int64 is a required number of 64 bits.
func (f *Fields) Int64(name string, p *int64) {
	if f.encoding {
		f.putNumber(name, *p)
		return
	}
	*p = f.number(name, 64)
}

// OptionalInt64 has the value absent when it is not sent, and the reverse.
func (f *Fields) OptionalInt64(name string, p *int64, absent int64) {
	switch {
	case !f.encoding && f.has(name):
		*p = f.number(name, 64)
	case !f.encoding:
		*p = absent
	case *p != absent:
		f.putNumber(name, *p)
	}
}

// Bool is a required boolean.
func (f *Fields) Bool(name string, p *bool) {
	if !f.encoding && !f.has(name) {
		f.fail(name, "", ErrFieldMissing)
	}
	f.OptionalBool(name, p)
}

// OptionalBool is a boolean that is false when absent; it is always sent.
func (f *Fields) OptionalBool(name string, p *bool) {
	if f.encoding {
		f.put(name, strconv.FormatBool(*p))
		return
	}
	value, _ := f.find(name)
	*p = isTrue(value)
}

func (f *Fields) putNumber(name string, n int64) {
	if f.wire == nil {
		f.put(name, strconv.FormatInt(n, 10))
		return
	}
	f.name(name)
	digits := strconv.AppendInt(f.digits[:0], n, 10)
	if f.binary {
		f.wire = append(binary.BigEndian.AppendUint32(f.wire, uint32(len(digits))), digits...)
		return
	}
	f.wire = append(append(append(f.wire, '"'), digits...), '"')
}

func (f *Fields) put(name, value string) {
	if f.wire != nil {
		f.write(name, value)
		return
	}
	if len(f.ext) == cap(f.ext) {
		f.ext = append(make(Ext, 0, max(4, 2*len(f.ext))), f.ext...)
	}
	f.ext = append(f.ext, Pair{name, value})
}

// write appends a field to the frame.
func (f *Fields) write(name, value string) {
	f.name(name)
	if f.binary {
		f.wire = appendChunk32(f.wire, value)
		return
	}
	f.wire = fastjson.AppendString(f.wire, value)
}

// name appends what comes before a value.
func (f *Fields) name(name string) {
	if f.binary {
		f.wire = append(binary.BigEndian.AppendUint16(f.wire, uint16(len(name))), name...)
		return
	}
	if !f.first {
		f.wire = append(f.wire, ',')
	}
	f.first = false
	if f.typed {
		f.wire = append(append(append(f.wire, '"'), name...), '"', ':')
		return
	}
	f.wire = append(fastjson.AppendString(f.wire, name), ':')
}

func (f *Fields) find(name string) (string, bool) {
	for i := f.next; i < len(f.ext); i++ {
		if same(f.ext[i].Name, name) {
			f.next = i + 1
			return f.ext[i].Value, true
		}
	}
	for i := 0; i < f.next; i++ {
		if same(f.ext[i].Name, name) {
			f.next = i + 1
			return f.ext[i].Value, true
		}
	}
	return "", false
}

// same compares names: those of a send are one letter long.
func same(a, b string) bool {
	if len(a) == 1 && len(b) == 1 {
		return a[0] == b[0]
	}
	return a == b
}

// has tells whether the field is there and not empty. It leaves the field as the next one to look at.
func (f *Fields) has(name string) bool {
	value, ok := f.find(name)
	if ok {
		f.next--
	}
	return ok && value != ""
}

func (f *Fields) number(name string, bits int) int64 {
	value, _ := f.find(name)
	if value == "" {
		f.fail(name, "", ErrFieldMissing)
		return 0
	}
	n, ok := parseInt(value, bits)
	if !ok {
		f.fail(name, value, ErrFieldInvalid)
		return 0
	}
	return n
}

// parseInt is strconv.ParseInt in base 10, quicker for what headers mostly hold: up to 18 digits.
func parseInt(text string, bits int) (int64, bool) {
	const surelyFits = 18
	n := int64(0)
	if len(text) <= surelyFits && text != "" {
		i := 0
		for ; i < len(text) && text[i]-'0' <= 9; i++ {
			n = 10*n + int64(text[i]-'0')
		}
		if i == len(text) {
			return n, n>>(bits-1) == 0
		}
	}
	n, err := strconv.ParseInt(text, 10, bits)
	return n, err == nil
}

func (f *Fields) fail(name, value string, cause error) {
	if f.err == nil {
		f.err = &FieldError{Name: name, Value: value, Cause: cause}
	}
}
