package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/segments/vfs/membuf"
)

// ocontent is what all handles of one file share: the base's file until the first change, a copy from then on.
type ocontent struct {
	handles, maps int // guarded by OverlayDisk.mu

	mu      sync.RWMutex
	base    File           // open for reading; nil in a new file
	copied  Mapping        // the private mapping under buf, when there is one
	buf     *membuf.Buffer // not nil once copied or new
	changed bool
	modTime time.Time
}

func newContent() *ocontent {
	return &ocontent{buf: membuf.New(nil), changed: true, modTime: time.Now()}
}

func (c *ocontent) isChanged() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.changed
}

func (c *ocontent) entry(name string) (Entry, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	size, err := c.size()
	return Entry{Name: name, Size: size, ModTime: c.modTime}, err
}

func (c *ocontent) size() (int64, error) {
	if c.buf != nil {
		return c.buf.Size(), nil
	}
	return c.base.Size()
}

// copy makes the private copy; c.mu is held for writing.
func (c *ocontent) copy() error {
	if c.buf != nil {
		return nil
	}
	size, err := c.base.Size()
	if err != nil {
		return err
	}
	if size == 0 {
		c.buf = membuf.New(nil)
		return nil
	}
	m, err := c.base.Map(size, MapPrivate)
	if err != nil {
		return err
	}
	c.copied, c.buf = m, membuf.New(m.Bytes())
	return nil
}

// change runs fn on the copy. The pages under it can fault like the base's file.
func (c *ocontent) change(fn func(*membuf.Buffer)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.copy(); err != nil {
		return err
	}
	c.changed, c.modTime = true, time.Now()
	return Guard("overlay", func() error { fn(c.buf); return nil })
}

func (c *ocontent) release() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	if c.copied != nil {
		errs = append(errs, c.copied.Unmap())
	}
	if c.base != nil {
		errs = append(errs, c.base.Close())
	}
	c.copied, c.base = nil, nil
	return errors.Join(errs...)
}

// overlayFile is one handle.
type overlayFile struct {
	disk     *OverlayDisk
	node     *onode
	content  *ocontent
	name     string
	writable bool
	closed   atomic.Bool
}

func (f *overlayFile) Name() string { return f.name }

func (f *overlayFile) check(write bool) error {
	if f.closed.Load() {
		return fs.ErrClosed
	}
	if write && !f.writable {
		return fs.ErrPermission
	}
	return nil
}

func (f *overlayFile) ReadAt(p []byte, off int64) (int, error) {
	err := f.check(false)
	if err == nil && off < 0 {
		err = errRange
	}
	if err != nil {
		return 0, rangeError("read", f.name, off, int64(len(p)), err)
	}
	n, err := f.content.readAt(p, off)
	if err == nil || err == io.EOF { //nolint:errorlint // io.ReaderAt promises the bare value
		return n, err
	}
	return n, rangeError("read", f.name, off, int64(len(p)), err)
}

func (c *ocontent) readAt(p []byte, off int64) (n int, err error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.buf == nil {
		return c.base.ReadAt(p, off)
	}
	err = Guard("overlay", func() (err error) { n, err = c.buf.ReadAt(p, off); return err })
	return n, err
}

func (f *overlayFile) WriteAt(p []byte, off int64) (int, error) {
	err := f.check(true)
	if err == nil {
		err = checkSpan(off, int64(len(p)), 1<<62)
	}
	if err == nil && len(p) > 0 {
		err = f.content.change(func(b *membuf.Buffer) { b.WriteAt(p, off) })
	}
	if err != nil {
		return 0, rangeError("write", f.name, off, int64(len(p)), err)
	}
	return len(p), nil
}

func (f *overlayFile) Close() error {
	if f.closed.Swap(true) {
		return pathError("close", f.name, fs.ErrClosed)
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.content.handles--
	return pathError("close", f.name, f.node.settle())
}

func (f *overlayFile) Size() (int64, error) {
	if err := f.check(false); err != nil {
		return 0, pathError("size", f.name, err)
	}
	e, err := f.content.entry("")
	return e.Size, pathError("size", f.name, err)
}

func (f *overlayFile) Truncate(size int64) error {
	err := f.check(true)
	if err == nil {
		err = checkSpan(0, size, 1<<62)
	}
	if err == nil {
		err = f.content.change(func(b *membuf.Buffer) { b.Resize(size) })
	}
	if err != nil {
		return pathError("truncate", f.name, fmt.Errorf("to %d bytes: %w", size, bare(err)))
	}
	return nil
}

// Allocate only extends: memory is not reserved.
func (f *overlayFile) Allocate(off, n int64) error {
	err := f.check(true)
	if err == nil {
		err = checkSpan(off, n, 1<<62)
	}
	if err == nil && n > 0 {
		err = f.content.change(func(b *membuf.Buffer) { b.Resize(max(b.Size(), off+n)) })
	}
	return rangeError("allocate", f.name, off, n, err)
}

func (f *overlayFile) DataSync() error { return pathError("sync", f.name, f.check(false)) }

func (f *overlayFile) StartWriteback(off, n int64) error {
	err := f.check(false)
	if err == nil {
		err = checkSpan(off, n, 1<<62)
	}
	return rangeError("start writing", f.name, off, n, err)
}

// Map maps the copy, except for a private mapping of an unchanged file, which comes from the base.
func (f *overlayFile) Map(n int64, mode MapMode) (Mapping, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	err := f.check(mode == MapShared)
	var m Mapping
	if err == nil {
		m, err = f.doMap(n, mode)
	}
	if err != nil {
		return nil, rangeError("map", f.name, 0, n, err)
	}
	return m, nil
}

func (f *overlayFile) doMap(n int64, mode MapMode) (Mapping, error) {
	c := f.content
	c.mu.Lock()
	defer c.mu.Unlock()
	size, err := c.size()
	if err != nil {
		return nil, err
	}
	if err := checkMap(n, size); err != nil {
		return nil, err
	}
	if mode == MapPrivate && c.buf == nil {
		return c.base.Map(n, mode)
	}
	if err := c.copy(); err != nil {
		return nil, err
	}
	m := &overlayMapping{file: f}
	if mode == MapPrivate {
		m.b, m.private = make([]byte, n), true
		return m, Guard("overlay", func() error { _, err := c.buf.ReadAt(m.b, 0); return err })
	}
	err = Guard("overlay", func() (err error) { m.b, err = c.buf.Hold(n); return err })
	if err != nil {
		return nil, err
	}
	f.content.maps++
	c.changed = c.changed || mode == MapShared
	return m, nil
}

type overlayMapping struct {
	file    *overlayFile
	b       []byte
	private bool // not part of the content
}

func (m *overlayMapping) Bytes() []byte { return m.b }

// Populate does nothing: pages come when they are touched.
func (m *overlayMapping) Populate(off, n int64) error {
	return rangeError("populate", m.file.name, off, n, checkSpan(off, n, int64(len(m.b))))
}

// LetGo does nothing.
func (m *overlayMapping) LetGo(off, n int64) error {
	return rangeError("let go of", m.file.name, off, n, checkSpan(off, n, int64(len(m.b))))
}

// DataSync does nothing, as DataSync of the file.
func (m *overlayMapping) DataSync(off, n int64) error {
	return rangeError("sync", m.file.name, off, n, checkSpan(off, n, int64(len(m.b))))
}

// Lock does nothing: the overlay is memory of a reader.
func (m *overlayMapping) Lock() error { return nil }

// Unlock does nothing.
func (m *overlayMapping) Unlock() error { return nil }

func (m *overlayMapping) Unmap() error {
	if m.b == nil {
		return pathError("unmap", m.file.name, fs.ErrClosed)
	}
	m.b = nil
	if m.private {
		return nil
	}
	m.file.disk.mu.Lock()
	defer m.file.disk.mu.Unlock()
	m.file.content.mu.Lock()
	m.file.content.buf.Release()
	m.file.content.mu.Unlock()
	m.file.content.maps--
	return pathError("unmap", m.file.name, m.file.node.settle())
}
