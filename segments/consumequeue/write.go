package consumequeue

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
)

// fillerBytes is how much of a long run of fillers is written at once.
const fillerBytes = 3200 * UnitBytes

// Write puts all units that are only in memory into the files, in few large writes, and has the system begin to take them to the
// disk. They are then safe from the end of the process, not from a power cut. On an error nothing is lost: the units stay in memory, and the next Write tries
// again. Not on the put path: it takes the queue's mutex.
func (q *Queue) Write() error {
	if q.Pending() == 0 {
		return nil
	}
	q.io.Lock()
	defer q.io.Unlock()
	return q.write()
}

// Sync writes, and makes all units and file names durable. A failed sync is final for the queue, since what is lost is
// unknown: it is reported again by every later Sync until the queue is destroyed and built again.
func (q *Queue) Sync() error {
	if q.Pending() == 0 && !q.unsynced.Load() {
		return nil
	}
	q.io.Lock()
	defer q.io.Unlock()
	if err := q.write(); err != nil {
		return err
	}
	return q.syncFiles()
}

// SyncWritten is Sync for what Write has written already.
func (q *Queue) SyncWritten() error {
	if !q.unsynced.Load() {
		return nil
	}
	q.io.Lock()
	defer q.io.Unlock()
	return q.syncFiles()
}

func (q *Queue) syncFiles() error {
	if q.failed != nil {
		return q.failed
	}
	if q.ext != nil {
		if err := q.ext.Sync(); err != nil {
			return q.unproven("sync", err)
		}
	}
	for len(q.dirty) > 0 {
		f, err := q.table.files.acquire(q, q.dirty[0])
		if err != nil {
			return q.fail("sync", err)
		}
		err = f.DataSync()
		q.table.files.release(f)
		if err != nil {
			return q.unproven("sync "+q.filePath(q.dirty[0]), err)
		}
		q.dirty = q.dirty[1:]
	}
	if err := q.syncNames(); err != nil {
		return q.unproven("sync folder", err)
	}
	q.dirty, q.loaded, q.doubt = nil, false, -1
	q.unsynced.Store(false)
	return nil
}

// unproven notes that the disk may lack units though they can be read, and tells whoever wants to know at once: a system says so
// just once.
func (q *Queue) unproven(what string, err error) error {
	q.failed = q.fail(what, fmt.Errorf("%w: %w", ErrUnsynced, err))
	if tell := q.table.opt.OnUnproven; tell != nil && q.doubt >= 0 {
		tell(messages.PhysicalOffset(q.doubt), q.failed)
	}
	return q.failed
}

// syncNames makes the names of files and folders durable, those above first.
func (q *Queue) syncNames() error {
	var dirs []string
	if q.folders {
		dirs = append(dirs, q.table.dir, path.Dir(q.path()))
	}
	if q.names {
		dirs = append(dirs, q.path())
	}
	for _, dir := range dirs {
		if err := q.table.disk.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	q.names, q.folders = false, false
	return nil
}

// synced notes that the disk has made everything durable, unless it has said before that it could not.
func (q *Queue) synced() error {
	q.io.Lock()
	defer q.io.Unlock()
	if q.failed != nil {
		return q.failed
	}
	q.dirty, q.loaded, q.names, q.folders, q.doubt = nil, false, false, false, -1
	q.unsynced.Store(false)
	return nil
}

// touchAll marks every file, and the names of all, as not durable: units of records at from and behind.
func (q *Queue) touchAll(from messages.PhysicalOffset) {
	q.io.Lock()
	defer q.io.Unlock()
	if q.doubt < 0 || q.doubt > int64(from) {
		q.doubt = int64(max(from, 0))
	}
	for start := q.first; start >= 0 && start <= q.last; start += q.table.units {
		q.touch(start)
	}
	q.names, q.folders = true, true
	q.unsynced.Store(true)
}

func (q *Queue) write() error {
	t := q.tail.Load()
	if q.ext != nil {
		if err := q.ext.Write(); err != nil {
			return q.fail("write", err)
		}
	}
	end := t.max.Load()
	for from := q.written.Load(); from < end; {
		q.doubtFrom(t, from)
		start := q.startOf(from)
		to := min(end, start+q.table.units)
		if err := q.writeFile(t, start, from, to); err != nil {
			return q.fail(fmt.Sprintf("write units %d to %d", from, to), err)
		}
		q.touch(start)
		q.written.Store(to)
		from = to
	}
	t.drop(end)
	return nil
}

// doubtFrom notes that a unit, which is in memory, and all behind it are not durable.
func (q *Queue) doubtFrom(t *tail, from int64) {
	if q.doubt >= 0 {
		return
	}
	if c := find(t.list(), from); c != nil {
		q.doubt = int64(DecodeUnit(c.at(from, from+1)).PhysicalOffset)
	}
}

// touch notes that a file must be synced.
func (q *Queue) touch(start int64) {
	q.unsynced.Store(true)
	if !slices.Contains(q.dirty, start) {
		q.dirty = append(q.dirty, start)
	}
}

// writeFile writes the units [from, to) into the file that starts at start, and makes the file when it is missing.
func (q *Queue) writeFile(t *tail, start, from, to int64) error {
	if q.first < 0 || start > q.last {
		return q.createFile(t, start, from, to)
	}
	f, err := q.table.files.acquire(q, start)
	if err != nil {
		return err
	}
	defer q.table.files.release(f)
	return q.writeUnits(f, t, start, from, to)
}

func (q *Queue) writeUnits(f vfs.File, t *tail, start, from, to int64) error {
	list := t.list()
	off := (from - start) * UnitBytes
	for from < to {
		c := find(list, from)
		if c == nil {
			panic(fmt.Sprintf("BUG: unit %d is neither in memory nor in a file", from))
		}
		b := c.at(from, to)
		if _, err := f.WriteAt(b, (from-start)*UnitBytes); err != nil {
			return err
		}
		from += int64(len(b)) / UnitBytes
	}
	// What goes wrong here may be told nowhere else, so it counts as a failed sync. The units are in memory and in the file all the same.
	if err := f.StartWriteback(off, (to-start)*UnitBytes-off); err != nil && q.failed == nil {
		_ = q.unproven("write back", err)
	}
	return nil
}

// createFile makes a file with its first units beside the folder and moves it in at its full length, so that nobody ever
// finds a short, empty or filler-only one. The length becomes durable with Sync, before the name does.
func (q *Queue) createFile(t *tail, start, from, to int64) error {
	if q.first < 0 {
		if err := q.makeFolders(); err != nil {
			return err
		}
	}
	if err := q.makeFile(t, start, from, to); err != nil {
		return errors.Join(err, vfs.RemoveIfThere(q.table.disk, q.freshPath()))
	}
	if q.first < 0 {
		q.first = start
	}
	q.last = start
	q.names = true
	return nil
}

// makeFolders makes the folder of the queue. Its name becomes durable with Sync, where many queues are made durable together.
func (q *Queue) makeFolders() error {
	q.folders = true // also where they are there: an earlier process may have made them
	disk, topic := q.table.disk, path.Dir(q.path())
	err := disk.Mkdir(topic)
	if errors.Is(err, fs.ErrNotExist) { // the first queue of all
		err = disk.MkdirAll(topic)
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = disk.Mkdir(q.path())
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func (q *Queue) makeFile(t *tail, start, from, to int64) (err error) {
	disk, fresh := q.table.disk, q.freshPath()
	if err := vfs.RemoveIfThere(disk, fresh); err != nil {
		return err
	}
	f, err := disk.Create(fresh)
	if err != nil {
		return err
	}
	err = q.fillFile(f, t, start, from, to)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return disk.Rename(fresh, q.filePath(start))
}

func (q *Queue) fillFile(f vfs.File, t *tail, start, from, to int64) error {
	if err := f.Truncate(q.table.units * UnitBytes); err != nil {
		return err
	}
	if err := writeFillers(f, from-start); err != nil {
		return err
	}
	if err := q.writeUnits(f, t, start, from, to); err != nil || from == start {
		return err
	}
	// A power cut must not keep the fillers and lose the units: RocketMQ takes fillers for units (spec/store.md §16, W4).
	return f.DataSync()
}

// writeFillers writes n filler units at the start of a file.
func writeFillers(f vfs.File, n int64) error {
	if n == 0 {
		return nil
	}
	b := make([]byte, min(n*UnitBytes, fillerBytes))
	for i := 0; i < len(b); i += UnitBytes {
		putUnit(b[i:], filler)
	}
	for off := int64(0); off < n*UnitBytes; off += int64(len(b)) {
		if _, err := f.WriteAt(b[:min(int64(len(b)), n*UnitBytes-off)], off); err != nil {
			return err
		}
	}
	return nil
}
