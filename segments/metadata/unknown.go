package metadata

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
)

// Unknown holds the members of a JSON object that this version has no field for, by name, so that they are written
// again as they were (spec/store.md §15: later releases add some).
type Unknown map[string]json.RawMessage

// decodeKeeping reads an object into the struct that known points to, and its other members into unknown. The struct
// type has no methods of its own (it would come back here).
func decodeKeeping(data []byte, known any, unknown *Unknown) error {
	if err := json.Unmarshal(data, known); err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	for f := range reflect.TypeOf(known).Elem().Fields() {
		delete(all, memberName(f))
	}
	*unknown = nil
	if len(all) > 0 {
		*unknown = all
	}
	return nil
}

func memberName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// encodeKeeping writes a struct and the unknown members as one object with sorted members.
func encodeKeeping(known any, unknown Unknown) ([]byte, error) {
	data, err := json.Marshal(known)
	if err != nil || len(unknown) == 0 {
		return data, err
	}
	all := maps.Clone(unknown)
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}
