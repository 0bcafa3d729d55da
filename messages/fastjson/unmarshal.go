package fastjson

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Unmarshal reads one value of the dialect into what v points to: structs (json tags, exact names), maps with string,
// integer or struct keys, slices, pointers, strings, integers, floats and booleans. Numbers and booleans may be given
// as strings and the reverse (spec/remoting.md §2.2); integers keep all 64 bits and are never cut off. Unknown members
// are skipped, missing ones and null leave the field as it was, the last of several equal members counts. The decoded
// value may take about 16 times the bytes of the text. Strings do not point into the input. Errors are [*Error]; v may
// then be filled in part.
func Unmarshal(in []byte, v any) error {
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return &Error{Cause: ErrType, Detail: fmt.Sprintf("%T is no pointer to a value", v)}
	}
	strict, err := Relax(in)
	if err != nil {
		return err
	}
	budget := 16*len(in) + 64<<10
	d := decoder{in: strict, budget: &budget}
	return d.value(target.Elem())
}

// decoder walks strict JSON, so it checks no syntax.
type decoder struct {
	in     []byte
	pos    int
	budget *int // bytes that slices and maps may still take
}

func (d *decoder) fail(cause error, format string, args ...any) error {
	return &Error{Offset: d.pos, Cause: cause, Detail: fmt.Sprintf(format, args...)}
}

// next skips space and returns the byte at the position.
func (d *decoder) next() byte {
	for {
		switch c := d.in[d.pos]; c {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return c
		}
	}
}

func (d *decoder) value(v reflect.Value) error {
	c := d.next()
	if c == 'n' {
		d.pos += len("null")
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return d.value(v.Elem())
	case reflect.Struct:
		return d.object(c, v, d.member)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		return d.object(c, v, d.entry)
	case reflect.Slice:
		return d.slice(c, v)
	}
	return d.scalar(c, v)
}

// object calls each with the text of every key; each reads the value.
func (d *decoder) object(c byte, v reflect.Value, each func(reflect.Value, string) error) error {
	if c != '{' {
		return d.fail(ErrType, "%.40q into %s", d.in[d.pos:], v.Type())
	}
	d.pos++
	for d.next() != '}' {
		name := d.text()
		d.next()
		d.pos++ // the colon
		if err := each(v, name); err != nil {
			return err
		}
		if d.next() == ',' {
			d.pos++
		}
	}
	d.pos++
	return nil
}

func (d *decoder) member(v reflect.Value, name string) error {
	s := schemaOf(v.Type())
	i, known := s.byName[name]
	if !known {
		d.skip()
		return nil
	}
	err := d.value(v.Field(s.members[i].index))
	if e := (*Error)(nil); errors.As(err, &e) {
		e.Field = strings.TrimSuffix(name+"."+e.Field, ".")
	}
	return err
}

func (d *decoder) entry(v reflect.Value, name string) error {
	t := v.Type()
	if err := d.spend(t.Key().Size() + t.Elem().Size()); err != nil {
		return err
	}
	key, elem := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
	if err := d.key(name, key); err != nil {
		return err
	}
	if err := d.value(elem); err != nil {
		return err
	}
	v.SetMapIndex(key, elem)
	return nil
}

func (d *decoder) key(name string, key reflect.Value) error {
	if key.Kind() != reflect.Struct {
		return d.parse(name, key)
	}
	strict, err := Relax([]byte(name))
	if err != nil {
		return d.fail(ErrType, "key %.40q into %s: %v", name, key.Type(), err)
	}
	inner := decoder{in: strict, budget: d.budget}
	if err := inner.value(key); err != nil {
		return d.fail(ErrType, "key %.40q into %s: %v", name, key.Type(), err)
	}
	return nil
}

func (d *decoder) slice(c byte, v reflect.Value) error {
	if c != '[' {
		return d.fail(ErrType, "%.40q into %s", d.in[d.pos:], v.Type())
	}
	d.pos++
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	zero := reflect.Zero(v.Type().Elem())
	for d.next() != ']' {
		if err := d.spend(zero.Type().Size()); err != nil {
			return err
		}
		v.Set(reflect.Append(v, zero))
		if err := d.value(v.Index(v.Len() - 1)); err != nil {
			return err
		}
		if d.next() == ',' {
			d.pos++
		}
	}
	d.pos++
	return nil
}

func (d *decoder) spend(size uintptr) error {
	*d.budget -= int(size)
	if *d.budget < 0 {
		return d.fail(ErrTooLarge, "decoded value takes more than 16 times the text")
	}
	return nil
}

func (d *decoder) scalar(c byte, v reflect.Value) error {
	switch c {
	case '{', '[':
		return d.fail(ErrType, "%.40q into %s", d.in[d.pos:], v.Type())
	case '"':
		return d.parse(d.text(), v)
	}
	from := d.pos
	d.skip()
	return d.parse(string(d.in[from:d.pos]), v)
}

// parse converts the text of a scalar or key. As in the original, empty text and the word null are zero.
func (d *decoder) parse(text string, v reflect.Value) error {
	if v.Kind() == reflect.String {
		v.SetString(text)
		return nil
	}
	if text == "" || text == "null" {
		v.SetZero()
		return nil
	}
	bad := true
	switch kind := v.Kind(); {
	case kind == reflect.Bool:
		on := strings.EqualFold(text, "true") || text == "1"
		v.SetBool(on)
		bad = !on && !strings.EqualFold(text, "false") && text != "0"
	case v.CanInt():
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		v.SetInt(n)
		bad = err != nil
	case v.CanUint():
		n, err := strconv.ParseUint(text, 10, v.Type().Bits())
		v.SetUint(n)
		bad = err != nil
	case v.CanFloat():
		n, err := strconv.ParseFloat(text, v.Type().Bits())
		v.SetFloat(n)
		bad = err != nil
	}
	if bad {
		return d.fail(ErrType, "%.40q into %s", text, v.Type())
	}
	return nil
}

// text reads a string. Relax has checked the escapes.
func (d *decoder) text() string {
	from := d.pos + 1
	d.skipText()
	text, _ := Unquote(string(d.in[from : d.pos-1]))
	return text
}

func (d *decoder) skipText() {
	for d.pos++; d.in[d.pos] != '"'; d.pos++ {
		if d.in[d.pos] == '\\' {
			d.pos++
		}
	}
	d.pos++
}

// skip passes one value.
func (d *decoder) skip() {
	for depth := 0; ; {
		switch c := d.next(); c {
		case '"':
			d.skipText()
		case '{', '[':
			depth++
			d.pos++
		case '}', ']':
			depth--
			d.pos++
		case ',', ':':
			d.pos++
			continue
		default:
			d.skipWord()
		}
		if depth == 0 {
			return
		}
	}
}

// skipWord passes a number or literal.
func (d *decoder) skipWord() {
	for d.pos < len(d.in) && strings.IndexByte(",:]} \t\r\n", d.in[d.pos]) < 0 {
		d.pos++
	}
}
