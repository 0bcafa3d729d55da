package memfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"time"

	"github.com/actormq/actormq/segments/vfs"
)

// errFull looks like the real disk's error.
var errFull = fmt.Errorf("%w: %w", vfs.ErrNoSpace, syscall.ENOSPC)

// file is one handle. Its fields are guarded by Disk.mu, or never change.
type file struct {
	d        *Disk
	n        *node
	name     string
	writable bool
	closed   bool
}

func (d *Disk) handle(n *node, name string, writable bool) *file {
	n.handles++
	return &file{d: d, n: n, name: name, writable: writable}
}

func (f *file) op(kind Kind, off, n int64) Op { return Op{Kind: kind, Name: f.name, Off: off, N: n} }

// check refuses a closed handle, a change through one that may only read, and a range out of limit.
func (f *file) check(op Op, write bool, limit int64) error {
	if f.closed {
		return fs.ErrClosed
	}
	if write && !f.writable {
		return fs.ErrPermission
	}
	return span(op.Off, op.N, limit)
}

func (f *file) Name() string { return f.name }

func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	op := f.op(KindRead, off, int64(len(p)))
	eof := false
	err = f.d.run(op, func() error {
		if err := f.check(op, false, maxBytes); err != nil {
			return err
		}
		var end error
		n, end = f.n.content().ReadAt(p, off)
		eof = end != nil
		return nil
	})
	if eof {
		return n, io.EOF
	}
	return n, err
}

// WriteAt writes the part that there is room for.
func (f *file) WriteAt(p []byte, off int64) (int, error) {
	op := f.op(KindWrite, off, int64(len(p)))
	fail := f.d.before(op)
	var cut *shortError
	if errors.As(fail, &cut) {
		p = p[:max(0, min(cut.n, len(p)))]
	} else if fail != nil {
		return 0, opError(op, fail)
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.check(op, true, maxBytes); err != nil {
		return 0, opError(op, err)
	}
	n := f.d.write(f.n, p, off)
	if n < len(p) {
		fail = errFull
	}
	return n, opError(op, fail)
}

func (d *Disk) write(n *node, p []byte, off int64) int {
	if len(p) == 0 {
		return 0
	}
	end := d.takeSpan(n, off, off+int64(len(p)))
	p = p[:end-off]
	b := n.content()
	n.wrote(min(off, b.Size()), end)
	b.WriteAt(p, off)
	n.modTime = time.Now()
	return len(p)
}

// Close closes, also when the hook makes it fail.
func (f *file) Close() error {
	op := f.op(KindClose, 0, 0)
	injected := f.d.before(op)
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.closed {
		return opError(op, fs.ErrClosed)
	}
	f.closed = true
	f.n.handles--
	f.d.drop(f.n)
	return opError(op, injected)
}

func (f *file) Size() (int64, error) {
	var size int64
	err := f.d.run(f.op(KindStat, 0, 0), func() error {
		if f.closed {
			return fs.ErrClosed
		}
		size = f.n.size()
		return nil
	})
	return size, err
}

func (f *file) Truncate(size int64) error {
	op := f.op(KindTruncate, size, 0)
	return f.d.run(op, func() error {
		if err := f.check(op, true, maxBytes); err != nil {
			return err
		}
		b := f.n.content()
		f.n.wrote(min(size, b.Size()), max(size, b.Size()))
		b.Resize(size)
		f.n.modTime = time.Now()
		f.d.giveBack(f.n, pagesOf(size))
		return nil
	})
}

// Allocate takes all the room or none.
func (f *file) Allocate(off, n int64) error {
	op := f.op(KindAllocate, off, n)
	return f.d.run(op, func() error {
		if err := f.check(op, true, maxBytes); err != nil || n == 0 {
			return err
		}
		end := off + n
		if f.d.capacity > 0 && f.d.used+pageBytes*f.n.missing(off, end) > f.d.capacity {
			return errFull
		}
		f.d.takeSpan(f.n, off, end)
		if b := f.n.content(); end > b.Size() {
			f.n.wrote(b.Size(), end)
			b.Resize(end)
		}
		return nil
	})
}

// DataSync makes the content and the length durable. When the hook makes it fail, the changed pages are given up; when
// pages that were written through a mapping find no room, they stay as they are and the rest is synced.
func (f *file) DataSync() error {
	op := f.op(KindDataSync, 0, 0)
	injected := f.d.before(op)
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.closed {
		return opError(op, fs.ErrClosed)
	}
	if injected != nil {
		f.n.failSync(0, maxBytes)
		return opError(op, injected)
	}
	return opError(op, f.d.syncAll(f.n))
}

func (d *Disk) syncAll(n *node) error {
	err := d.sync(n, 0, maxBytes)
	if err == nil && len(n.lost) == 0 {
		n.clean()
	}
	return err
}

// sync makes the pages of a range durable, and the length.
func (d *Disk) sync(n *node, from, to int64) error {
	var err error
	for i, now := range n.differing(from, to) {
		if given := n.lost[i]; given != nil && *given == *now {
			continue
		}
		if !d.take(n, i) {
			err = errFull
			continue
		}
		delete(n.lost, i)
		n.setSynced(i, now)
	}
	n.settleSize(n.size())
	return err
}

// DataFrom tells of whole pages.
func (f *file) DataFrom(off int64) (int64, error) {
	at := off
	op := f.op(KindRead, off, 0)
	err := f.d.run(op, func() error {
		if err := f.check(op, false, maxBytes); err != nil {
			return err
		}
		size := f.n.size()
		var now page
		for ; at < size; at = (at/pageBytes + 1) * pageBytes {
			clear(now[f.n.content().Snapshot(now[:], at/pageBytes*pageBytes):])
			if now != zeroPage {
				return nil
			}
		}
		at = size
		return nil
	})
	return at, err
}

func (f *file) StartWriteback(off, n int64) error {
	op := f.op(KindWriteback, off, n)
	injected := f.d.before(op)
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.check(op, false, maxBytes); err != nil {
		return opError(op, err)
	}
	if injected != nil {
		f.n.failSync(off, off+n)
	}
	return opError(op, injected)
}

func (f *file) Map(n int64, mode vfs.MapMode) (vfs.Mapping, error) {
	op := f.op(KindMap, 0, n)
	m := &mapping{f: f, mode: mode}
	err := f.d.run(op, func() error {
		if err := f.check(f.op(KindMap, 0, 0), mode == vfs.MapShared, maxBytes); err != nil {
			return err
		}
		if n < 1 || n > f.n.size() {
			return fmt.Errorf("the file has %d bytes: %w", f.n.size(), fs.ErrInvalid)
		}
		var err error
		m.b, err = f.n.hold(n, mode)
		return err
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// hold returns the content itself, or a copy for a private mapping.
func (n *node) hold(size int64, mode vfs.MapMode) ([]byte, error) {
	if mode == vfs.MapPrivate {
		b := make([]byte, size)
		n.content().Snapshot(b, 0)
		return b, nil
	}
	b, err := n.content().Hold(size)
	if err != nil {
		return nil, err
	}
	n.handles++
	if mode == vfs.MapShared {
		n.shared++
		n.mapped = true
	}
	return b, nil
}

// mapping is shared with the content, or a copy of it.
type mapping struct {
	f    *file
	mode vfs.MapMode
	b    []byte

	locked bool
}

func (m *mapping) Bytes() []byte { return m.b }

// Populate takes room for the holes under a shared mapping. A full disk is a fault, as it is on Linux.
func (m *mapping) Populate(off, n int64) error {
	op := m.f.op(KindPopulate, off, n)
	return m.f.d.run(op, func() error {
		if err := span(off, n, int64(len(m.b))); err != nil || m.mode != vfs.MapShared {
			return err
		}
		if m.f.d.takeSpan(m.f.n, off, off+n) < off+n {
			return fmt.Errorf("%w: no room for a page", vfs.ErrFault)
		}
		return nil
	})
}

// LetGo does nothing: there is no page table.
func (m *mapping) LetGo(off, n int64) error {
	if err := span(off, n, int64(len(m.b))); err != nil {
		return &fs.PathError{Op: "let go of", Path: m.f.name, Err: err}
	}
	return nil
}

// DataSync is that of a file, for the pages of a range: the others stay as they are.
func (m *mapping) DataSync(off, n int64) error {
	op := m.f.op(KindDataSync, off, n)
	injected := m.f.d.before(op)
	m.f.d.mu.Lock()
	defer m.f.d.mu.Unlock()
	if err := span(off, n, int64(len(m.b))); err != nil {
		return opError(op, err)
	}
	if injected != nil {
		m.f.n.failSync(off, off+n)
		return opError(op, injected)
	}
	return opError(op, m.f.d.sync(m.f.n, off, off+n))
}

// Lock counts the mapping into Locked.
func (m *mapping) Lock() error {
	return m.f.d.run(m.f.op(KindLockPages, 0, int64(len(m.b))), func() error {
		m.setLocked(true)
		return nil
	})
}

// Unlock takes it out again.
func (m *mapping) Unlock() error {
	m.f.d.mu.Lock()
	defer m.f.d.mu.Unlock()
	m.setLocked(false)
	return nil
}

func (m *mapping) setLocked(locked bool) {
	if m.locked != locked {
		m.locked = locked
		if n := int64(len(m.b)); locked {
			m.f.d.locked += n
		} else {
			m.f.d.locked -= n
		}
	}
}

// Locked is how many bytes of mappings are locked in memory.
func (d *Disk) Locked() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.locked
}

func (m *mapping) Unmap() error {
	m.f.d.mu.Lock()
	defer m.f.d.mu.Unlock()
	m.setLocked(false)
	if m.b == nil {
		return &fs.PathError{Op: "unmap", Path: m.f.name, Err: fs.ErrClosed}
	}
	m.b = nil
	if m.mode == vfs.MapPrivate {
		return nil
	}
	n := m.f.n
	n.buf.Release()
	n.handles--
	if m.mode == vfs.MapShared {
		n.shared--
	}
	m.f.d.drop(n)
	return nil
}
