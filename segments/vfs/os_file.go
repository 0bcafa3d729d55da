//go:build linux || darwin || freebsd

package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errCannotReserve: the platform or the file system has no way to reserve space.
var errCannotReserve = errors.New("space cannot be reserved")

// osFile is an open file of the machine. Package os completes short writes and makes interrupted calls again.
type osFile struct {
	f    *os.File
	conn syscall.RawConn
	name string
	maps mappings
}

func (f *osFile) Name() string { return f.name }

func (f *osFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.f.ReadAt(p, off)
	if err == nil || err == io.EOF { //nolint:errorlint // io.ReaderAt promises the bare value
		return n, err
	}
	return n, rangeError("read", f.name, off, int64(len(p)), err)
}

// WriteAt, when it fails, may have written more than it counts.
func (f *osFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.f.WriteAt(p, off)
	if err != nil {
		return n, rangeError("write", f.name, off, int64(len(p)), err)
	}
	return n, nil
}

func (f *osFile) Close() error { return pathError("close", f.name, f.f.Close()) }

func (f *osFile) Size() (int64, error) {
	st, err := f.f.Stat()
	if err != nil {
		return 0, pathError("size", f.name, err)
	}
	return st.Size(), nil
}

func (f *osFile) Truncate(size int64) error {
	if err := f.f.Truncate(size); err != nil {
		return pathError("truncate", f.name, fmt.Errorf("to %d bytes: %w", size, bare(err)))
	}
	return nil
}

// Allocate leaves the length as it was when it fails; Truncate must not run beside it.
func (f *osFile) Allocate(off, n int64) error {
	return rangeError("allocate", f.name, off, n, f.allocate(off, n))
}

func (f *osFile) allocate(off, n int64) error {
	if err := checkSpan(off, n, 1<<62); err != nil {
		return err
	}
	st, err := f.f.Stat()
	if err != nil || n == 0 {
		return err
	}
	err = withFD(f.conn, func(fd int) error { return reserve(fd, off, n) })
	if errors.Is(err, errCannotReserve) {
		return f.extend(st.Size(), off+n)
	}
	if err != nil {
		// A file system may have grown the file before it ran out of room.
		return errors.Join(err, f.shrink(st.Size()))
	}
	return nil
}

func (f *osFile) extend(size, end int64) error {
	if end <= size {
		return nil
	}
	return f.f.Truncate(end)
}

func (f *osFile) shrink(size int64) error {
	st, err := f.f.Stat()
	if err != nil || st.Size() <= size {
		return err
	}
	return f.f.Truncate(size)
}

func (f *osFile) DataSync() error { return pathError("sync", f.name, f.dataSync()) }

func (f *osFile) StartWriteback(off, n int64) error {
	err := checkSpan(off, n, 1<<62)
	if err == nil && n > 0 {
		err = withFD(f.conn, func(fd int) error { return startWriteback(fd, off, n) })
	}
	return rangeError("start writing", f.name, off, n, err)
}

// Map refuses more bytes than the file has: they could not be touched.
func (f *osFile) Map(n int64, mode MapMode) (Mapping, error) {
	size, err := f.Size()
	if err == nil {
		err = checkMap(n, size)
	}
	if err != nil {
		return nil, pathError("map", f.name, err)
	}
	prot, flags := unix.PROT_READ, unix.MAP_SHARED
	if mode != MapRead {
		prot |= unix.PROT_WRITE
	}
	if mode == MapPrivate {
		flags = unix.MAP_PRIVATE
	}
	m := &osMapping{name: f.name, mode: mode, file: f}
	err = withFD(f.conn, func(fd int) error {
		m.b, err = unix.Mmap(fd, 0, int(n), prot, flags)
		return err
	})
	if err != nil {
		return nil, rangeError("map", f.name, 0, n, explainMap(err))
	}
	f.maps.add(m)
	return m, nil
}

type osMapping struct {
	name string
	mode MapMode
	file *osFile
	b    []byte
}

func (m *osMapping) Bytes() []byte { return m.b }

// Lock implements Mapping.
func (m *osMapping) Lock() error { return pathError("lock in memory", m.name, unix.Mlock(m.b)) }

// Unlock implements Mapping.
func (m *osMapping) Unlock() error { return pathError("unlock in memory", m.name, unix.Munlock(m.b)) }

func (m *osMapping) Unmap() error {
	if m.b == nil {
		return pathError("unmap", m.name, fs.ErrClosed)
	}
	m.file.maps.remove(m)
	b := m.b
	m.b = nil
	return pathError("unmap", m.name, unix.Munmap(b))
}

// Populate makes the pages of a read-only mapping present only.
func (m *osMapping) Populate(off, n int64) error {
	err := checkSpan(off, n, int64(len(m.b)))
	if err == nil && n > 0 {
		start := off - off%int64(os.Getpagesize())
		err = populate(m.b[start:off+n], m.mode != MapRead)
	}
	return rangeError("populate", m.name, off, n, err)
}

// LetGo implements Mapping.
func (m *osMapping) LetGo(off, n int64) error {
	err := checkSpan(off, n, int64(len(m.b)))
	page := int64(os.Getpagesize())
	from, to := (off+page-1)/page*page, (off+n)/page*page
	if err == nil && m.mode != MapPrivate && from < to {
		err = letGo(m.b[from:to])
	}
	return rangeError("let go of", m.name, off, n, err)
}

// DataSync implements Mapping.
func (m *osMapping) DataSync(off, n int64) error {
	err := checkSpan(off, n, int64(len(m.b)))
	if err == nil && n > 0 {
		err = m.dataSync(off, n)
	}
	return rangeError("sync", m.name, off, n, err)
}

// touch makes pages present one by one: adding zero atomically changes nothing, whoever writes there meanwhile. b begins
// on a page boundary, so its words are aligned and lie within the page.
func touch(b []byte, writable bool) error {
	page := os.Getpagesize()
	return Guard("touch", func() error {
		for i := 0; i < len(b); i += page {
			word := (*uint32)(unsafe.Pointer(&b[i]))
			if writable {
				atomic.AddUint32(word, 0)
			} else {
				atomic.LoadUint32(word)
			}
		}
		return nil
	})
}
