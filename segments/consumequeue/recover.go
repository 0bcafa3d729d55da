package consumequeue

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sync"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
)

// foundFile is a file that recovery has found in the folder of a queue.
type foundFile struct {
	name  string
	start int64 // queue offset of the first unit, -1: at an odd place
	size  int64 // bytes
}

// recover finds the range of a queue in its files: the longest sound part from the front (spec/store.md §8.3, but by
// binary search, and without the phantom units of §16 W4 and W33). It removes last files without a unit, and mends a
// last file that was left short by Truncate. Doing it twice changes nothing more.
func (q *Queue) recover() error {
	defer func() {
		if q.peeked != nil {
			q.peeked.close()
			q.peeked = nil
		}
	}()
	files, err := q.findFiles()
	if err != nil {
		return err
	}
	q.names, q.folders, q.loaded = true, true, true // after a kill, names and contents may still be on their way to the disk
	if files, err = q.dropEmpty(files); err != nil || len(files) == 0 {
		return err
	}
	if err := q.mend(files); err != nil {
		return err
	}
	sound, err := q.soundFiles(files)
	if err != nil {
		return err
	}
	return q.findEnd(sound)
}

func (q *Queue) findFiles() ([]foundFile, error) {
	entries, err := vfs.ListIfThere(q.table.disk, q.path())
	if err != nil {
		return nil, err
	}
	var files []foundFile
	for _, e := range entries {
		start, ok := q.startOfEntry(e)
		if !ok {
			q.table.ignore(path.Join(q.path(), e.Name))
			continue
		}
		files = append(files, foundFile{name: e.Name, start: start, size: e.Size})
	}
	return files, nil
}

// dropEmpty removes last files that hold zeros or fillers only.
func (q *Queue) dropEmpty(files []foundFile) ([]foundFile, error) {
	for len(files) > 0 {
		last := files[len(files)-1]
		empty, err := q.isEmpty(last)
		if err != nil {
			return nil, err
		}
		if !empty {
			break
		}
		if err := q.removeFile(last.name); err != nil {
			return nil, err
		}
		files = files[:len(files)-1]
	}
	return files, nil
}

func (q *Queue) isEmpty(file foundFile) (bool, error) {
	if file.size == 0 {
		return true, nil
	}
	if file.size != q.fileBytes() || file.start < 0 {
		return false, nil // damage, not emptiness
	}
	r, err := q.openUnits(file)
	if err != nil {
		return false, err
	}
	for i := range r.units {
		u, err := r.at(i)
		if err != nil {
			r.close()
			return false, err
		}
		if u != (Unit{}) && u != filler {
			q.peeked = r // it is wanted again at once
			return false, nil
		}
	}
	r.close()
	return true, nil
}

// mend extends a file that is short and full of units: what is left when the process is killed, or the power fails, while
// Truncate cuts. More than one of a wrong size is another setting, and left alone.
func (q *Queue) mend(files []foundFile) error {
	wrong := slices.IndexFunc(files, func(f foundFile) bool { return f.size != q.fileBytes() })
	if wrong < 0 || slices.ContainsFunc(files[wrong+1:], func(f foundFile) bool { return f.size != q.fileBytes() }) {
		return nil
	}
	short := &files[wrong]
	if short.size > q.fileBytes() || short.size == 0 || short.size%UnitBytes != 0 || short.start < 0 {
		return nil
	}
	r, err := q.openUnits(*short)
	if err != nil {
		return err
	}
	defer r.close()
	u, err := r.at(short.size/UnitBytes - 1)
	if err != nil || !u.Valid() {
		return err
	}
	if err := r.file.Truncate(q.fileBytes()); err != nil {
		return q.fail("mend "+short.name, err)
	}
	q.touch(short.start)
	short.size = q.fileBytes()
	return nil
}

// soundFiles returns the files from the front that belong together: right size, no gap, all but the last full. What
// comes behind is damage.
func (q *Queue) soundFiles(files []foundFile) ([]foundFile, error) {
	before := messages.PhysicalOffset(-1)
	for i, file := range files {
		if q.damaged = q.judge(files, i); q.damaged != nil {
			return files[:i], nil
		}
		if len(files) == 1 {
			break
		}
		first, last, err := q.edges(file)
		switch {
		case err != nil:
			return nil, err
		case i > 0 && (!first.Valid() || first.PhysicalOffset <= before):
			q.damaged = q.corrupt(file.start, file.start, ErrUnit)
			return files[:i], nil
		case i < len(files)-1 && !last.Valid():
			q.damaged = q.corrupt(file.start, file.start+q.table.units-1, ErrUnit)
			return files[:i+1], nil
		}
		before = last.PhysicalOffset
	}
	return files, nil
}

// judge says what is wrong with the name or the size of a file.
func (q *Queue) judge(files []foundFile, i int) error {
	file := files[i]
	wrong := func(err error) error {
		return &segments.CorruptionError{File: path.Join(q.path(), file.name), Err: err}
	}
	switch {
	case file.start < 0:
		return wrong(fmt.Errorf("its place is no multiple of %d: %w", q.fileBytes(), segments.ErrName))
	case file.size != q.fileBytes():
		return wrong(fmt.Errorf("%d bytes instead of %d: %w", file.size, q.fileBytes(), segments.ErrSize))
	case i > 0 && file.start != files[i-1].start+q.table.units:
		return wrong(fmt.Errorf("the file before it is missing: %w", ErrGap))
	}
	return nil
}

// edges returns the first and the last unit of a file.
func (q *Queue) edges(file foundFile) (first, last Unit, err error) {
	r, err := q.openUnits(file)
	if err != nil {
		return Unit{}, Unit{}, err
	}
	defer r.close()
	if first, err = r.at(0); err != nil {
		return Unit{}, Unit{}, err
	}
	last, err = r.at(r.units - 1)
	return first, last, err
}

// findEnd sets the range of the queue from its sound files.
func (q *Queue) findEnd(files []foundFile) error {
	for ; len(files) > 0; files = files[:len(files)-1] {
		first, last := files[0], files[len(files)-1]
		part, err := q.partOf(last)
		if err != nil {
			return err
		}
		if q.damaged == nil {
			q.damaged = part.damage
		}
		if part.begin == part.end {
			continue
		}
		q.tidy, q.sound = part.tidy && q.damaged == nil, part.sound && first == last
		q.first, q.last, q.begin = first.start, last.start, first.start
		if first == last {
			q.begin = part.begin
		} else if q.begin, err = q.beginOf(first); err != nil {
			return err
		}
		q.written.Store(part.end)
		q.tail.Store(newTail(q.begin, part.end, part.physicalEnd))
		return nil
	}
	return nil
}

// filePart is what one file holds: the units [begin, end) as queue offsets.
type filePart struct {
	begin, end  int64
	physicalEnd int64
	damage      error
	tidy, sound bool
}

func (q *Queue) partOf(file foundFile) (filePart, error) {
	r, err := q.openUnits(file)
	if err != nil {
		return filePart{}, err
	}
	defer r.close()
	begin, end, sound, err := r.bounds()
	if err != nil {
		return filePart{}, err
	}
	part := filePart{begin: file.start + begin, end: file.start + end, physicalEnd: -1, sound: sound}
	if begin == end { // it is not empty, so what is in it is damaged
		part.damage = q.corrupt(file.start, part.end, ErrUnit)
		return part, nil
	}
	last, err := r.at(end - 1)
	if err != nil {
		return filePart{}, err
	}
	part.physicalEnd = int64(last.End())
	clean, err := r.zeros(end)
	if !clean {
		part.damage = q.corrupt(file.start, part.end, ErrUnit)
		return part, err
	}
	behind, err := vfs.DataFrom(r.file, min(end+readUnits, r.units)*UnitBytes)
	part.tidy = err == nil && behind >= file.size
	return part, err
}

func (q *Queue) beginOf(file foundFile) (int64, error) {
	r, err := q.openUnits(file)
	if err != nil {
		return 0, err
	}
	defer r.close()
	begin, err := r.skipFillers()
	return file.start + begin, err
}

func (q *Queue) fileBytes() int64 { return q.table.units * UnitBytes }

var readBuffers = sync.Pool{New: func() any { return new([readUnits * UnitBytes]byte) }}

// unitReader reads single units of a file, a page at a time.
type unitReader struct {
	file  vfs.File
	start int64 // queue offset of its first unit
	units int64 // in the file
	buf   *[readUnits * UnitBytes]byte
	from  int64 // first unit in buf
	have  int64 // units in buf
}

func (q *Queue) openUnits(file foundFile) (*unitReader, error) {
	if r := q.peeked; r != nil {
		q.peeked = nil
		if r.start == file.start && r.units == file.size/UnitBytes {
			return r, nil
		}
		r.close()
	}
	f, err := q.table.disk.Open(path.Join(q.path(), file.name), true)
	if err != nil {
		return nil, err
	}
	return &unitReader{file: f, start: file.start, units: file.size / UnitBytes, buf: readBuffers.Get().(*[readUnits * UnitBytes]byte)}, nil
}

// close gives up the reader; nothing was written through it that a failing close could lose.
func (r *unitReader) close() {
	readBuffers.Put(r.buf)
	_ = r.file.Close()
}

func (r *unitReader) at(i int64) (Unit, error) {
	if i < r.from || i >= r.from+r.have {
		from := i - i%readUnits
		n := min(readUnits, r.units-from)
		r.have = 0
		if err := readFull(r.file, r.buf[:n*UnitBytes], from*UnitBytes); errors.Is(err, io.ErrUnexpectedEOF) {
			// Somebody else has cut the file since it was listed.
			return Unit{}, fmt.Errorf("read %s: %w", r.file.Name(), errors.Join(fs.ErrNotExist, err))
		} else if err != nil {
			return Unit{}, fmt.Errorf("read %s: %w", r.file.Name(), err)
		}
		r.from, r.have = from, n
	}
	return DecodeUnit(r.buf[(i-r.from)*UnitBytes:]), nil
}

// bounds finds the units [begin, end) of the file. Everything that was ever synced lies in front of end, whatever a power
// cut has left behind it: the search moves its lower bound to valid units only. It is sound when it has looked at all of them.
func (r *unitReader) bounds() (begin, end int64, sound bool, err error) {
	if begin, err = r.skipFillers(); err != nil || begin == r.units {
		return begin, begin, false, err
	}
	first, err := r.at(begin)
	if err != nil || !first.Valid() {
		return begin, begin, false, err
	}
	grown := func(u Unit) bool { return u.Valid() && u.PhysicalOffset > first.PhysicalOffset }
	last, err := r.lastWhere(begin, grown)
	if err != nil {
		return begin, begin, false, err
	}
	from := max(begin, last-readUnits)
	end, err = r.verified(from, last)
	return begin, end, from == begin, err
}

func (r *unitReader) skipFillers() (int64, error) {
	if u, err := r.at(0); err != nil || !u.isFiller() {
		return 0, err
	}
	last, err := r.lastWhere(0, Unit.isFiller)
	return last + 1, err
}

// lastWhere returns the last unit, from one for which it counts as given on, for which a property holds that holds up to
// some unit and not behind it: by steps that double, then by halves.
func (r *unitReader) lastWhere(from int64, holds func(Unit) bool) (int64, error) {
	low, high := from, r.units
	for step := int64(readUnits); low+step < high; step *= 2 {
		u, err := r.at(low + step)
		if err != nil {
			return 0, err
		}
		if !holds(u) {
			high = low + step
			break
		}
		low += step
	}
	for high-low > 1 {
		mid := low + (high-low)/2
		u, err := r.at(mid)
		if err != nil {
			return 0, err
		}
		if holds(u) {
			low = mid
		} else {
			high = mid
		}
	}
	return low, nil
}

// verified walks over the units [from, last], of which the first is valid or follows damage, and returns the end of those
// that are valid and grow.
func (r *unitReader) verified(from, last int64) (int64, error) {
	before := messages.PhysicalOffset(-1)
	for i := from; i <= last; i++ {
		u, err := r.at(i)
		if err != nil {
			return 0, err
		}
		if !u.Valid() || u.PhysicalOffset <= before {
			return i, nil
		}
		before = u.PhysicalOffset
	}
	return last + 1, nil
}

// zeros tells whether the page behind a unit is zero, as it is behind the end of a sound queue.
func (r *unitReader) zeros(from int64) (bool, error) {
	for i := from; i < min(from+readUnits, r.units); i++ {
		u, err := r.at(i)
		if err != nil || u != (Unit{}) {
			return false, err
		}
	}
	return true, nil
}
