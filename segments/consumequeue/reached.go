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
	q.io.Lock()
	defer q.io.Unlock()
	entries, err := vfs.ListIfThere(q.table.disk, q.path())
	if err != nil {
		return 0, q.fail("look for the end", err)
	}
	reached := q.tail.Load().max.Load()
	for _, e := range slices.Backward(entries) {
		start, ok := q.startOfEntry(e)
		if !ok || start < 0 {
			continue
		}
		units, err := q.lastUsed(e)
		if err != nil {
			return 0, q.fail("look for the end of "+e.Name, err)
		}
		if units > 0 {
			return messages.QueueOffset(max(reached, start+units)), nil
		}
	}
	return messages.QueueOffset(reached), nil
}

// lastUsed is how many units of a file lie in front of the zeros and fillers at its end.
func (q *Queue) lastUsed(e vfs.Entry) (int64, error) {
	f, err := q.table.disk.Open(path.Join(q.path(), e.Name), false)
	if err != nil {
		return 0, err
	}
	r := &unitReader{file: f, units: e.Size / UnitBytes, buf: readBuffers.Get().(*[readUnits * UnitBytes]byte)}
	defer r.close()
	for i := r.units - 1; i >= 0; i-- {
		u, err := r.at(i)
		if err != nil {
			return 0, fmt.Errorf("unit %d: %w", i, err)
		}
		if u != (Unit{}) && u != filler {
			return i + 1, nil
		}
	}
	return 0, nil
}
