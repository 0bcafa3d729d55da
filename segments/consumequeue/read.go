package consumequeue

import (
	"errors"
	"io"
	"path"
	"sort"
	"sync"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
)

// readUnits is what one pread fetches: a page full. For who reads on it is twice as much each time, up to mostUnits.
const (
	readUnits = 4096 / UnitBytes
	mostUnits = 4 * readUnits
)

// Read fills dst with the units from queue offset at on and returns how many: as many as are there and fit, 0 at Max.
// It never returns a filler or a unit that was not appended. Below Min it fails with ErrBelowMin, above Max with
// ErrAboveMax, and with ErrChanged when the queue was cut meanwhile. An error comes only with 0 units. Safe for
// any goroutine, without a lock for the hot tail; it does not allocate.
func (q *Queue) Read(at messages.QueueOffset, dst []Unit) (int, error) {
	return q.readFrom(q.tail.Load(), at, dst)
}

// readFrom is Read of what a tail has.
func (q *Queue) readFrom(t *tail, at messages.QueueOffset, dst []Unit) (int, error) {
	end := t.max.Load()
	switch {
	case t.gone:
		return 0, q.fail("read", ErrDestroyed)
	case int64(at) < t.min.Load():
		return 0, q.fail("read", ErrBelowMin)
	case int64(at) > end:
		return 0, q.fail("read", ErrAboveMax)
	}
	return q.read(t, int64(at), dst[:min(int64(len(dst)), end-int64(at))])
}

// read fills dst, which ends at or below the tail's max.
func (q *Queue) read(t *tail, at int64, dst []Unit) (int, error) {
	done := 0
	for done < len(dst) {
		n, err := q.readPart(t, at+int64(done), dst[done:])
		done += n
		if err != nil {
			if done > 0 {
				return done, nil // asking again from there tells why
			}
			return 0, err
		}
	}
	return done, nil
}

// readPart reads from one chunk, or one piece of a file.
func (q *Queue) readPart(t *tail, at int64, dst []Unit) (int, error) {
	list := t.list()
	if c := find(list, at); c != nil {
		b := c.at(at, at+int64(len(dst)))
		return decode(dst, b), nil
	}
	end := t.max.Load()
	if len(list) > 0 {
		end = list[0].first
	}
	return q.readFile(t, at, end, dst)
}

// decode reads the units of b, all of which are valid.
func decode(dst []Unit, b []byte) int {
	dst = dst[:min(len(dst), len(b)/UnitBytes)]
	for i := range dst {
		dst[i] = decodeUnit((*[UnitBytes]byte)(b))
		b = b[UnitBytes:]
	}
	return len(dst)
}

// decodeValid is decode up to the first unit that is none.
func decodeValid(dst []Unit, b []byte) int {
	dst = dst[:min(len(dst), len(b)/UnitBytes)]
	for i := range dst {
		u := decodeUnit((*[UnitBytes]byte)(b))
		if !u.Valid() {
			return i
		}
		dst[i], b = u, b[UnitBytes:]
	}
	return len(dst)
}

// readFile reads up to a page of units, those below end, from the file that holds at. The pread may have met a file that
// Truncate or DeleteExpired was changing: what it found counts only if the tail is still the same.
func (q *Queue) readFile(t *tail, at, end int64, dst []Unit) (int, error) {
	start := q.startOf(at)
	f, err := q.table.files.acquire(q, start)
	switch {
	case err == nil:
	case q.tail.Load() != t: // Truncate or Destroy was faster
		return 0, q.fail("read", ErrChanged)
	case at < t.min.Load(): // DeleteExpired was
		return 0, q.fail("read", ErrBelowMin)
	default:
		return 0, q.fail("read", err)
	}
	defer q.table.files.release(f)
	end = min(end, start+q.table.units)
	if f.mapped.Load() != nil {
		if n, err := q.guardedGlance(t, f, at, dst[:min(int64(len(dst)), end-at)]); n > 0 || err != nil {
			return n, err
		}
	}
	if f.page.mu.TryLock() { // who reads on finds the rest of the page that was read before
		defer f.page.mu.Unlock()
		return q.readPage(t, f, &f.page, at, end, dst)
	}
	p := spare.Get().(*page)
	defer spare.Put(p)
	p.of = nil
	return q.readPage(t, f, p, at, end, dst)
}

// page is the piece of a file that was read last, up to 16 KiB of it. Whoever holds mu uses it.
type page struct {
	mu    sync.Mutex
	of    *tail // whose units these are; nil: nobody's
	first int64 // queue offset of the first unit
	units int64
	buf   []byte
}

var spare = sync.Pool{New: func() any { return new(page) }}

// readPage fills dst from a page, which is read when it does not have the units at at.
func (q *Queue) readPage(t *tail, f *openFile, p *page, at, end int64, dst []Unit) (int, error) {
	if p.of != t || at < p.first || at >= p.first+p.units {
		if p.of == t && p == &f.page && (at == p.first+p.units && p.units == mostUnits || at != p.first+p.units && len(dst) == 1) {
			f.lookAround()
		}
		if err := q.fillPage(t, f, p, at, end); err != nil {
			return 0, err
		}
	}
	if q.tail.Load() != t {
		p.of = nil
		return 0, q.fail("read", ErrChanged)
	}
	dst = dst[:min(int64(len(dst)), p.first+p.units-at)]
	n := decodeValid(dst, p.buf[(at-p.first)*UnitBytes:])
	return n, q.sawUnits(n, len(dst), f, at)
}

// sawUnits tells of damage where fewer units of a file are valid, from at on, than there must be.
func (q *Queue) sawUnits(n, want int, f *openFile, at int64) error {
	if n < want {
		return q.met(q.corrupt(f.key.start, at+int64(n), ErrUnit))
	}
	return nil
}

// fillPage reads the units [at, end) of a file, as many as fit.
func (q *Queue) fillPage(t *tail, f *openFile, p *page, at, end int64) error {
	want := int64(readUnits)
	if p.of == t && at == p.first+p.units { // it reads on
		want = min(2*max(p.units, readUnits), mostUnits)
	}
	if have := int64(len(p.buf)) / UnitBytes; have < want {
		p.buf = make([]byte, want*UnitBytes)
	}
	p.of, p.first, p.units = nil, at, min(want, end-at)
	err := q.pread(f, p.buf[:p.units*UnitBytes], (at-f.key.start)*UnitBytes)
	if q.tail.Load() != t {
		return q.fail("read", ErrChanged)
	}
	if err != nil && at < t.min.Load() { // DeleteExpired was faster
		return q.fail("read", ErrBelowMin)
	}
	if err == nil {
		p.of = t
	}
	return err
}

// pread fills b from a file.
func (q *Queue) pread(f *openFile, b []byte, off int64) error {
	start := f.key.start
	switch err := readFull(f, b, off); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return q.met(q.corrupt(start, start+off/UnitBytes, err))
	case err != nil:
		return q.fail("read "+q.filePath(start), err)
	}
	return nil
}

// readFull reads all of b; a file that ends before it is io.ErrUnexpectedEOF.
func readFull(f io.ReaderAt, b []byte, off int64) error {
	n, err := f.ReadAt(b, off)
	switch {
	case n == len(b):
		return nil
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	}
	return err
}

func (q *Queue) corrupt(start, at int64, err error) error {
	return &segments.CorruptionError{File: q.filePath(start), Offset: (at - start) * UnitBytes, Err: err}
}

// met tells of damage that a reader has met.
func (q *Queue) met(damage error) error {
	if tell := q.table.onDamage.Load(); tell != nil && !q.told.Swap(true) {
		(*tell)(q.key, damage)
	}
	return damage
}

// filePath is the path of the file that starts at a queue offset.
func (q *Queue) filePath(start int64) string {
	return path.Join(q.path(), segments.Name(start*UnitBytes))
}

// Search returns the first readable queue offset whose record lies at or behind a physical offset, Max when there is
// none. A damaged unit counts as lying behind. Safe for any goroutine; binary search, so it reads few units.
func (q *Queue) Search(physical messages.PhysicalOffset) (messages.QueueOffset, error) {
	t := q.tail.Load()
	from, to := t.min.Load(), t.max.Load()
	if t.end.Load() <= int64(physical) {
		return messages.QueueOffset(to), nil
	}
	var failure error
	n := sort.Search(int(to-from), func(i int) bool {
		var u [1]Unit
		_, err := q.read(t, from+int64(i), u[:])
		var damage *segments.CorruptionError
		if err != nil && !errors.As(err, &damage) {
			failure = err
		}
		return err != nil || u[0].PhysicalOffset >= physical
	})
	if failure != nil {
		return 0, failure
	}
	return messages.QueueOffset(from + int64(n)), nil
}

// Verify reads every unit between Min and Max and checks that each is valid and names a record behind the one before.
// For inspection, before the queue grows; it takes long on a large queue. What OpenTable has looked at is not read again.
func (q *Queue) Verify() error {
	if q.sound {
		return nil
	}
	t := q.tail.Load()
	var buf [readUnits]Unit
	last := messages.PhysicalOffset(-1)
	for at, end := t.min.Load(), t.max.Load(); at < end; {
		n, err := q.read(t, at, buf[:min(readUnits, end-at)])
		if err != nil {
			return err
		}
		for i, u := range buf[:n] {
			if u.PhysicalOffset <= last {
				return q.corrupt(q.startOf(at), at+int64(i), ErrOrder)
			}
			last = u.PhysicalOffset
		}
		at += int64(n)
	}
	return nil
}
