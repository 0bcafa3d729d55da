package consumequeue

import (
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue/ext"
)

// AppendExtended is Append for a queue with an extension: the unit's tags code and the record's store timestamp go there, and the unit
// has the address (spec/store.md §6.5). Without an extension, and when that takes nothing, it is Append.
func (q *Queue) AppendExtended(u Unit, at messages.QueueOffset, storeMs int64) (bool, error) {
	if q.ext != nil && at >= q.Max() && u.Valid() {
		if address, ok := q.ext.Append(ext.Unit{TagsCode: u.TagsCode, StoreTimestampMs: storeMs}); ok {
			u.TagsCode = address
		}
	}
	return q.Append(u, at)
}

// TagsCode is the tags code of a unit; false when it is not known: the unit has an address of which there is nothing, or that is
// not looked up.
func (q *Queue) TagsCode(u Unit) (int64, bool) {
	switch {
	case !ext.IsAddress(u.TagsCode):
		return u.TagsCode, true
	case q.ext == nil:
		return 0, false
	}
	return q.ext.TagsCode(u.TagsCode)
}

// cutExtension deletes what no unit from a queue offset on names in the extension; the mutex io is held.
func (q *Queue) cutExtension(from int64) error {
	if q.ext.Empty() { // no unit has an address that is worth looking for
		return nil
	}
	t := q.tail.Load()
	var part [64]Unit
	for at, end := from, t.max.Load(); at < end; {
		n, err := q.readPart(t, at, part[:min(int64(len(part)), end-at)])
		if n == 0 {
			return err
		}
		for _, u := range part[:n] {
			if ext.IsAddress(u.TagsCode) {
				return q.ext.DeleteBelow(u.TagsCode)
			}
		}
		at += int64(n)
	}
	return nil
}
