package index

import (
	"errors"
	"slices"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
)

// secondMs: the time of an entry is known to the second only.
const secondMs = 1000

// question is what a query looks for.
type question struct {
	hash           int32
	max            int
	beginMs, endMs int64
	found          []messages.PhysicalOffset
	tell           func(messages.PhysicalOffset) // Params.Found
}

// Query returns the places of the records that have the key, newest first, at most max, and stored between beginMs and
// endMs, both included. Times are kept in whole seconds, so a record up to a second outside may come along, and none inside
// is missed. Records whose "topic#key" only has the same hash come along too: the caller compares key and time. A file
// that cannot be read is left out and named in the error; what the others hold is returned with it. Safe for any goroutine.
func (s *Set) Query(topic, key string, max int, beginMs, endMs int64) ([]messages.PhysicalOffset, error) {
	return s.AppendQuery(nil, topic, key, max, beginMs, endMs)
}

// AppendQuery is Query that appends to found, which is empty.
func (s *Set) AppendQuery(
	found []messages.PhysicalOffset, topic, key string, max int, beginMs, endMs int64,
) ([]messages.PhysicalOffset, error) {
	text := make([]byte, 0, 64)
	text = append(append(append(text, topic...), '#'), key...)
	q := question{hash: hashOf(text), max: max, beginMs: beginMs, endMs: endMs, found: found, tell: s.params.Found}
	files := s.list()
	s.fetchSlots(files, q.hash)
	var errs []error
	for _, f := range slices.Backward(files) {
		if len(q.found) >= max {
			break
		}
		if !f.hold() {
			continue
		}
		older, err := f.answer(&q)
		if err = errors.Join(err, f.release()); err != nil {
			errs = append(errs, err)
		}
		if !older {
			break
		}
	}
	return q.found, errors.Join(errs...)
}

// fetched is in how many files the slots of a query are fetched before it looks into the first of them.
const fetched = 4

// fetchSlots fetches the slots that a query begins with, of the newest files.
func (s *Set) fetchSlots(files []*file, hash int32) {
	at := s.params.slotOffset(s.params.slotOf(hash))
	for _, f := range files[max(len(files)-fetched, 0):] {
		segments.Fetch(f.data[at : at+slotBytes])
	}
}

// answer collects from one file and tells whether older files may hold more.
func (f *file) answer(q *question) (older bool, err error) {
	if f.count.Load() <= 1 {
		return true, nil
	}
	begin, end := f.beginMs.Load(), f.endMs.Load()
	if begin <= q.endMs && max(begin, end)+secondMs > q.beginMs {
		err = vfs.Guard(f.path, func() error {
			f.collect(q, begin)
			return nil
		})
	}
	return begin >= q.beginMs, err
}

// collect follows the chain of the slot from the newest entry. Numbers fall along it, so it ends whatever a damaged file
// says.
func (f *file) collect(q *question, beginMs int64) {
	n := loadSlot(f.data, f.params.slotOffset(f.params.slotOf(q.hash)))
	if n >= f.count.Load() {
		return // left by a power cut
	}
	for n > 0 && len(q.found) < q.max {
		e := decodeEntry(f.data[f.params.entryOffset(n):])
		at := e.timeMs(n, beginMs)
		if e.seconds < 0 || at+secondMs <= q.beginMs {
			return
		}
		if e.hash == q.hash && e.physical >= 0 && at <= q.endMs {
			q.add(messages.PhysicalOffset(e.physical))
		}
		if e.before >= n {
			return
		}
		n = e.before
	}
}

// add takes a record once, also when it was indexed twice at the border of two runs.
func (q *question) add(at messages.PhysicalOffset) {
	if n := len(q.found); n == 0 || q.found[n-1] != at {
		q.found = append(q.found, at)
		if q.tell != nil {
			q.tell(at)
		}
	}
}
