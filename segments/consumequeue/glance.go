package consumequeue

import (
	"errors"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
)

// Glance looks at single units of a queue here and there. It keeps the file of its last look until Close; a mapped one is read
// without a system call. For one goroutine. Its looks can fault: see vfs.Guard.
type Glance struct {
	queue *Queue
	tail  *tail     // whose file it is
	file  *openFile // nil: none yet
}

// Glance begins a search.
func (q *Queue) Glance() Glance { return Glance{queue: q} }

// Close lets go of the file.
func (g *Glance) Close() {
	if g.file != nil {
		g.queue.table.files.release(g.file)
		g.file = nil
	}
}

// At is the unit at a queue offset; n and the error are those of Read.
func (g *Glance) At(at messages.QueueOffset, dst *[1]Unit) (n int, err error) {
	q := g.queue
	if g.file != nil && g.holds(int64(at)) {
		if n, err := q.glance(g.tail, g.file, int64(at), dst[:]); n == 1 && err == nil {
			return 1, nil
		}
	}
	if n, err = q.Read(at, dst[:]); n == 1 {
		g.keep(int64(at))
	}
	return n, err
}

// holds tells whether a unit is in the file, and nothing has been cut off or deleted since that was opened.
func (g *Glance) holds(at int64) bool {
	start, t := g.file.key.start, g.tail
	return g.queue.tail.Load() == t && at >= start && at < start+g.queue.table.units && t.onlyInFile(at)
}

// onlyInFile tells whether a unit is there, and not in memory: what a file has in its place then may be older.
func (t *tail) onlyInFile(at int64) bool {
	return at >= t.min.Load() && at < t.max.Load() && find(t.list(), at) == nil
}

// keep takes the file that has a unit, if it is mapped.
func (g *Glance) keep(at int64) {
	g.Close()
	t := g.queue.tail.Load()
	if !t.onlyInFile(at) {
		return
	}
	f, err := g.queue.table.files.acquire(g.queue, g.queue.startOf(at))
	if err != nil {
		return // the next look tells why
	}
	if g.file, g.tail = f, t; f.mapped.Load() == nil {
		g.Close()
	}
}

// lookAround maps a file for those who look at single units here and there, a search for example, or read on for long: neither then takes a
// system call. Where it can't be mapped, they go on reading pages. Whoever holds the lock of the file's page calls it.
func (f *openFile) lookAround() {
	if f.mapped.Load() != nil {
		return
	}
	size, err := f.Size()
	if err != nil {
		return
	}
	if m, err := f.Map(size, vfs.MapRead); err == nil {
		f.mapped.Store(&m)
	}
}

func (f *openFile) unmap() error {
	if m := f.mapped.Load(); m != nil {
		return (*m).Unmap()
	}
	return nil
}

// glance reads units of a mapped file from at on, as many as there are up to one that is damaged; none when it is not mapped as far as
// that. It may fault.
func (q *Queue) glance(t *tail, f *openFile, at int64, dst []Unit) (n int, err error) {
	m, off := f.mapped.Load(), (at-f.key.start)*UnitBytes
	if m == nil {
		return 0, nil
	}
	b := (*m).Bytes()
	if off+int64(len(dst))*UnitBytes > int64(len(b)) {
		return 0, nil
	}
	n = decodeValid(dst, b[off:])
	if q.tail.Load() != t {
		return 0, q.fail("read", ErrChanged)
	}
	return n, q.sawUnits(n, len(dst), f, at)
}

// guardedGlance is glance that finds nothing where it meets a fault: a read of the file says what is wrong with it.
func (q *Queue) guardedGlance(t *tail, f *openFile, at int64, dst []Unit) (n int, err error) {
	err = vfs.Guard("read a consume queue's file", func() (err error) {
		n, err = q.glance(t, f, at, dst)
		return err
	})
	switch {
	case q.tail.Load() != t:
		return 0, q.fail("read", ErrChanged)
	case errors.Is(err, vfs.ErrFault):
		return 0, nil
	}
	return n, err
}
