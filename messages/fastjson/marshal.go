package fastjson

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
)

// Marshal writes v as compact strict JSON without any space. Members stand in the order of the struct's fields, map
// entries in the order of their encoded keys; nil slices are [], nil maps {}; members tagged omitempty are left out when
// they are false, 0, nil or empty; floats have a decimal point ("0.0") and are null when they are no number. A map
// key that is a struct is its object encoded as a string, which Java peers read (spec/remoting.md §2.3).
func Marshal(v any) ([]byte, error) {
	e := encoder{}
	if err := e.value(reflect.ValueOf(v)); err != nil {
		return nil, err
	}
	return e.out, nil
}

// MarshalRawKeys is Marshal, but with integer and struct keys of maps written raw: {{"queueId":0}:5}, as the original
// does. Go clients read RESET_CONSUMER_CLIENT_OFFSET only in this form (spec/remoting.md §2.3). The answer is not
// valid JSON when there are such keys.
func MarshalRawKeys(v any) ([]byte, error) {
	e := encoder{rawKeys: true}
	if err := e.value(reflect.ValueOf(v)); err != nil {
		return nil, err
	}
	return e.out, nil
}

type encoder struct {
	out     []byte
	rawKeys bool
}

func (e *encoder) value(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			e.out = append(e.out, "null"...)
			return nil
		}
		return e.value(v.Elem())
	case reflect.Struct:
		return e.object(v)
	case reflect.Map:
		return e.mapping(v)
	case reflect.Slice:
		return e.slice(v)
	}
	return e.scalar(v)
}

func (e *encoder) scalar(v reflect.Value) error {
	switch {
	case v.Kind() == reflect.String:
		e.out = AppendString(e.out, v.String())
	case v.Kind() == reflect.Bool:
		e.out = strconv.AppendBool(e.out, v.Bool())
	case v.CanInt():
		e.out = strconv.AppendInt(e.out, v.Int(), 10)
	case v.CanUint():
		e.out = strconv.AppendUint(e.out, v.Uint(), 10)
	case v.CanFloat():
		e.float(v.Float())
	default:
		return &Error{Offset: len(e.out), Cause: ErrType, Detail: fmt.Sprintf("no json form for kind %s", v.Kind())}
	}
	return nil
}

func (e *encoder) float(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		e.out = append(e.out, "null"...)
		return
	}
	from := len(e.out)
	e.out = strconv.AppendFloat(e.out, f, 'g', -1, 64)
	if !bytes.ContainsAny(e.out[from:], ".e") {
		e.out = append(e.out, ".0"...)
	}
}

func (e *encoder) object(v reflect.Value) error {
	e.out = append(e.out, '{')
	first := true
	for _, m := range schemaOf(v.Type()).members {
		field := v.Field(m.index)
		if m.omitEmpty && isEmpty(field) {
			continue
		}
		if !first {
			e.out = append(e.out, ',')
		}
		first = false
		e.out = append(AppendString(e.out, m.name), ':')
		if err := e.value(field); err != nil {
			return err
		}
	}
	e.out = append(e.out, '}')
	return nil
}

func isEmpty(v reflect.Value) bool {
	if v.Kind() == reflect.Map || v.Kind() == reflect.Slice {
		return v.Len() == 0
	}
	return v.IsZero()
}

func (e *encoder) slice(v reflect.Value) error {
	e.out = append(e.out, '[')
	for i := range v.Len() {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		if err := e.value(v.Index(i)); err != nil {
			return err
		}
	}
	e.out = append(e.out, ']')
	return nil
}

func (e *encoder) mapping(v reflect.Value) error {
	type entry struct {
		key   []byte
		value reflect.Value
	}
	entries := make([]entry, 0, v.Len())
	for iter := v.MapRange(); iter.Next(); {
		key, err := e.key(iter.Key())
		if err != nil {
			return err
		}
		entries = append(entries, entry{key, iter.Value()})
	}
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	e.out = append(e.out, '{')
	for i, entry := range entries {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		e.out = append(append(e.out, entry.key...), ':')
		if err := e.value(entry.value); err != nil {
			return err
		}
	}
	e.out = append(e.out, '}')
	return nil
}

func (e *encoder) key(v reflect.Value) ([]byte, error) {
	inner := encoder{rawKeys: e.rawKeys}
	if err := inner.value(v); err != nil {
		return nil, err
	}
	if e.rawKeys || v.Kind() == reflect.String {
		return inner.out, nil
	}
	return AppendString(nil, string(inner.out)), nil
}
