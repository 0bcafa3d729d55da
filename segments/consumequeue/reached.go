package consumequeue

import (
	"fmt"
	"path"
	"slices"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
)

// Reached is the queue offset behind everything that stands in the files or in memory, however damaged: no message that the queue has had
// is at it or behind. It is Max for a queue that is sound. It looks for the last bytes from the back, so it belongs to recovery.
func (q *Queue) Reached() (messages.QueueOffset, error) {
	reached := q.Max()
	err := q.Standing(func(at messages.QueueOffset, _ Unit) bool {
		reached = max(reached, at+1)
		return false
	})
	return reached, err
}

// Standing gives fn what stands in the files, however damaged, from the back, until fn returns false. Zeros and fillers are left out. It belongs to
// recovery.
func (q *Queue) Standing(fn func(at messages.QueueOffset, u Unit) bool) error {
	q.io.Lock()
	defer q.io.Unlock()
	entries, err := vfs.ListIfThere(q.table.disk, q.path())
	if err != nil {
		return q.fail("look for the end", err)
	}
	for _, e := range slices.Backward(entries) {
		start, ok := q.startOfEntry(e)
		if !ok || start < 0 {
			continue
		}
		more, err := q.standingIn(e, start, fn)
		if err != nil {
			return q.fail("look for the end of "+e.Name, err)
		}
		if !more {
			break
		}
	}
	return nil
}

// standingIn is Standing for one file; more tells whether fn wants more.
func (q *Queue) standingIn(e vfs.Entry, start int64, fn func(messages.QueueOffset, Unit) bool) (more bool, err error) {
	f, err := q.table.disk.Open(path.Join(q.path(), e.Name), false)
	if err != nil {
		return false, err
	}
	r := &unitReader{file: f, units: e.Size / UnitBytes, buf: readBuffers.Get().(*[readUnits * UnitBytes]byte)}
	defer r.close()
	for i := r.units - 1; i >= 0; i-- {
		u, err := r.at(i)
		if err != nil {
			return false, fmt.Errorf("unit %d: %w", i, err)
		}
		if u != (Unit{}) && u != filler && !fn(messages.QueueOffset(start+i), u) {
			return false, nil
		}
	}
	return true, nil
}
