package consumequeue

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
)

// Truncate cuts the queue so that it ends at a queue offset between Min and Max, and clears everything behind it in the
// files, also what no unit of the queue is (so Truncate(Max()) makes sense after an unclean stop, and after damage).
// Durable after Sync, and so is all that remains, also what an earlier process had written without syncing it; therefore
// recovery calls it for every queue after an unclean stop. Readers get what was there before, or ErrChanged. Builder only.
//
// A file that is cut in the middle is shortened and extended again; a process that is killed just between leaves it short
// and full of units, which OpenTable mends.
func (q *Queue) Truncate(to messages.QueueOffset) error {
	q.io.Lock()
	defer q.io.Unlock()
	t := q.tail.Load()
	switch {
	case t.gone:
		return q.fail("truncate", ErrDestroyed)
	case int64(to) < t.min.Load():
		return q.fail(fmt.Sprintf("truncate to %d", to), ErrBelowMin)
	case int64(to) > t.max.Load():
		return q.fail(fmt.Sprintf("truncate to %d", to), ErrAboveMax)
	}
	end, err := q.endBefore(t, int64(to))
	if err != nil {
		return err
	}
	q.cur = nil
	q.tail.Store(t.cut(int64(to), end))
	if q.written.Load() > int64(to) {
		q.written.Store(int64(to))
	}
	if err := q.cutFiles(int64(to)); err != nil {
		q.damaged = q.fail("truncate", err) // stays until a Truncate has cleared what is behind
		return q.damaged
	}
	q.damaged = nil
	return nil
}

// endBefore is the physical end of the queue when it ends at a queue offset.
func (q *Queue) endBefore(t *tail, to int64) (int64, error) {
	if to == t.max.Load() {
		return t.end.Load(), nil
	}
	if to <= q.begin {
		return -1, nil
	}
	var u [1]Unit
	if n, err := q.readPart(t, to-1, u[:]); n == 0 {
		return 0, err
	}
	return int64(u[0].End()), nil
}

// cutFiles removes what the files hold at and behind a queue offset.
func (q *Queue) cutFiles(to int64) error {
	entries, err := vfs.ListIfThere(q.table.disk, q.path())
	if err != nil {
		return err
	}
	first, last := int64(-1), int64(-1)
	for _, e := range slices.Backward(entries) {
		start, ok := q.startOfEntry(e)
		switch {
		case !ok:
			continue
		case start < 0 || start >= to || to <= q.begin:
			err = q.removeFile(e.Name)
		case start+q.table.units > to:
			err = q.clearBehind(start, to)
			first, last = start, max(last, start)
		default:
			first, last = start, max(last, start)
			if q.loaded {
				q.touch(start)
			}
		}
		if err != nil {
			return err
		}
	}
	q.first, q.last = first, last
	return nil
}

// startOfEntry returns the queue offset at which a file of the folder starts, -1 for one at an odd place. It is not
// ok for what is no file of ours.
func (q *Queue) startOfEntry(e vfs.Entry) (start int64, ok bool) {
	n, err := segments.ParseName(e.Name)
	if err != nil || e.Dir {
		return 0, false
	}
	if n%(q.table.units*UnitBytes) != 0 {
		return -1, true
	}
	return n / UnitBytes, true
}

func (q *Queue) removeFile(name string) error {
	if n, err := segments.ParseName(name); err == nil {
		start := n / UnitBytes
		q.table.files.drop(q, start)
		q.dirty = slices.DeleteFunc(q.dirty, func(s int64) bool { return s == start })
	}
	q.names = true
	q.unsynced.Store(true)
	return vfs.RemoveIfThere(q.table.disk, path.Join(q.path(), name))
}

// clearBehind zeroes a file from a queue offset on, without writing zeros.
func (q *Queue) clearBehind(start, to int64) error {
	f, err := q.table.files.acquire(q, start)
	if err != nil {
		return err
	}
	defer q.table.files.release(f)
	q.touch(start)
	if err := f.Truncate((to - start) * UnitBytes); err != nil {
		return err
	}
	return f.Truncate(q.table.units * UnitBytes)
}

// SetMin raises Min to the first unit whose record lies at or behind a physical offset, to Max when there is none
// (spec/store.md §6.3, correctMinOffset; fillers never count). Binary search over all files.
func (q *Queue) SetMin(minPhysical messages.PhysicalOffset) error {
	q.io.Lock()
	defer q.io.Unlock()
	at, err := q.Search(minPhysical)
	if err != nil {
		return err
	}
	if t := q.tail.Load(); int64(at) > t.min.Load() {
		t.min.Store(int64(at))
	}
	return nil
}

// DeleteExpired removes the files all of whose units are below Min, oldest first, but never the last one (spec/store.md
// §9.4), and returns how many. The names are gone for good after Sync. What follows is made durable before: the files say where the queue
// goes on, and a power cut must not take all of them. On a full disk units at Min and behind may stay in memory: the log has their records.
func (q *Queue) DeleteExpired() (int, error) {
	q.io.Lock()
	defer q.io.Unlock()
	n := 0
	least := q.tail.Load().min.Load()
	expired := func() bool { return q.first >= 0 && q.first < q.last && q.first+q.table.units <= least }
	if expired() {
		if err := q.write(); err != nil && (!errors.Is(err, vfs.ErrNoSpace) || q.written.Load() < least) {
			return 0, err
		}
		if err := q.syncFiles(); err != nil {
			return 0, err
		}
	}
	for expired() {
		if err := q.removeFile(segments.Name(q.first * UnitBytes)); err != nil {
			return n, q.fail("delete expired", err)
		}
		q.first += q.table.units
		q.begin = max(q.begin, q.first)
		n++
	}
	if n > 0 && q.ext != nil {
		return n, q.cutExtension(least)
	}
	return n, nil
}

// Destroy deletes the queue with all its files and takes it out of the table; readers get ErrDestroyed. It can be called
// again after an error. When it returns nil the deletion is durable. Builder only.
func (q *Queue) Destroy() error {
	q.io.Lock()
	defer q.io.Unlock()
	gone := newTail(0, 0, -1)
	gone.gone = true
	q.tail.Store(gone)
	q.cur = nil
	q.written.Store(0)
	if err := q.destroyFiles(); err != nil {
		return q.fail("destroy", err)
	}
	q.first, q.last, q.names, q.folders = -1, -1, false, false
	q.unsynced.Store(false)
	q.table.remove(q)
	return nil
}

func (q *Queue) destroyFiles() error {
	disk := q.table.disk
	if q.ext != nil {
		if err := q.ext.Destroy(); err != nil {
			return err
		}
	}
	entries, err := vfs.ListIfThere(disk, q.path())
	if err != nil || entries == nil {
		return err
	}
	for _, e := range entries {
		if _, ok := q.startOfEntry(e); ok {
			err = errors.Join(err, q.removeFile(e.Name))
		}
	}
	if err != nil {
		return err
	}
	if err := disk.SyncDir(q.path()); err != nil {
		return err
	}
	// A foreign file keeps the folder alive, which is harmless: a folder without units is no queue.
	if err := vfs.RemoveIfThere(disk, q.path()); err != nil {
		return nil
	}
	return disk.SyncDir(path.Dir(q.path()))
}
