package storedump

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
)

// field is a member of an object; object keeps the order of its members.
type (
	field struct {
		name  string
		value any
	}
	object []field
	list   []any
)

// stream is a list whose elements are made while it is written; none tells that there will not be any.
type stream struct {
	none bool
	each func(yield func(any) error) error
}

// writer writes values with a fixed layout: the outermost object and what holds lists of objects gets a line for each
// member, everything else stands on one line. The first error stays.
type writer struct {
	w   *bufio.Writer
	err error
}

func newWriter(w io.Writer) *writer { return &writer{w: bufio.NewWriterSize(w, 1<<16)} }

func (w *writer) text(s string) {
	if w.err == nil {
		_, w.err = w.w.WriteString(s)
	}
}

func (w *writer) line(depth int) {
	w.text("\n")
	for range depth {
		w.text(" ")
	}
}

// expanded tells whether a value gets more than one line.
func expanded(v any) bool {
	switch v := v.(type) {
	case object:
		for _, f := range v {
			switch f.value.(type) {
			case list, stream:
				if expanded(f.value) {
					return true
				}
			}
		}
	case list:
		if len(v) > 0 {
			_, ok := v[0].(object)
			return ok
		}
	case stream:
		return !v.none
	}
	return false
}

func (w *writer) value(v any, depth int) {
	switch v := v.(type) {
	case nil:
		w.text("null")
	case bool:
		w.text(strconv.FormatBool(v))
	case int:
		w.text(strconv.Itoa(v))
	case int32:
		w.text(strconv.Itoa(int(v)))
	case int64:
		w.text(strconv.FormatInt(v, 10))
	case string:
		w.quoted(v)
	case object:
		w.object(v, depth)
	case list:
		w.elements(stream{none: !expanded(v), each: v.each}, depth)
	case stream:
		w.elements(v, depth)
	default:
		panic(fmt.Sprintf("BUG: a %T in a dump", v))
	}
}

func (l list) each(yield func(any) error) error {
	for _, v := range l {
		if err := yield(v); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) object(o object, depth int) {
	lines := depth == 0 || expanded(o)
	w.text("{")
	for i, f := range o {
		if i > 0 {
			w.text(",")
		}
		if lines {
			w.line(depth + 1)
		}
		w.quoted(f.name)
		w.text(":")
		w.value(f.value, depth+1)
	}
	if lines {
		w.line(depth)
	}
	w.text("}")
}

// elements writes a list; the elements of one that has objects get a line each.
func (w *writer) elements(s stream, depth int) {
	w.text("[")
	first := true
	err := s.each(func(v any) error {
		if !first {
			w.text(",")
		}
		first = false
		if !s.none {
			w.line(depth + 1)
		}
		w.value(v, depth+1)
		return w.err
	})
	if w.err == nil {
		w.err = err
	}
	if !s.none {
		w.line(depth)
	}
	w.text("]")
}

// quoted writes a string; bytes that are not UTF-8 come out as U+FFFD.
func (w *writer) quoted(s string) {
	w.text(`"`)
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			w.text(`\` + string(r))
		case r < 0x20 || r == 0x7f || r == 0x2028 || r == 0x2029:
			w.text(fmt.Sprintf(`\u%04x`, r))
		default:
			w.text(string(r))
		}
	}
	w.text(`"`)
}

func (w *writer) flush() error {
	if w.err == nil {
		w.err = w.w.Flush()
	}
	return w.err
}
