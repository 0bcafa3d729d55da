package fastjson

import (
	"reflect"
	"strings"
	"sync"
)

// schema is what a struct type looks like as a JSON object.
type schema struct {
	members []member
	byName  map[string]int
}

type member struct {
	name      string
	index     int // of the field in the struct
	omitEmpty bool
}

var schemas sync.Map // reflect.Type → *schema

// schemaOf reads the json tags of a struct type once. Fields without an exported name and those tagged "-" do not take
// part; embedded structs are ordinary members.
func schemaOf(t reflect.Type) *schema {
	if known, ok := schemas.Load(t); ok {
		return known.(*schema)
	}
	s := &schema{byName: map[string]int{}}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		if name == "" {
			name = f.Name
		}
		s.byName[name] = len(s.members)
		s.members = append(s.members, member{name: name, index: i, omitEmpty: options == "omitempty"})
	}
	known, _ := schemas.LoadOrStore(t, s)
	return known.(*schema)
}
