//go:build darwin || freebsd || (linux && vfsportable)

package vfs

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"
)

// The slower ways of this file also work on Linux: "go test -tags vfsportable ./segments/vfs" runs the tests on them.

// mappings are the writable shared mappings of one open file. POSIX lets fsync leave their changes out, so that each is
// synced by itself. A mapping through another open file is not known here: sync through the file that was mapped.
type mappings struct {
	mu   sync.Mutex
	live map[*osMapping]struct{}
}

func (s *mappings) add(m *osMapping) {
	if m.mode != MapShared {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		s.live = map[*osMapping]struct{}{}
	}
	s.live[m] = struct{}{}
}

func (s *mappings) remove(m *osMapping) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, m)
}

// sync holds the lock so that nothing is unmapped under it.
func (s *mappings) sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for m := range s.live {
		errs = append(errs, retry(func() error { return unix.Msync(m.b, unix.MS_SYNC) }))
	}
	return errors.Join(errs...)
}

// dataSync leaves the last call to package os, which knows the one on darwin that reaches the disk.
func (f *osFile) dataSync() error {
	if err := f.maps.sync(); err != nil {
		return err
	}
	return f.f.Sync()
}

// dataSync syncs the whole file: msync need not reach the disk.
func (m *osMapping) dataSync(int64, int64) error { return m.file.dataSync() }

func blockBytes(st *unix.Statfs_t) int64 { return int64(st.Bsize) } //nolint:unconvert // differs by platform

func reserve(int, int64, int64) error { return errCannotReserve }

func startWriteback(int, int64, int64) error { return nil }

func populate(b []byte, writable bool) error { return touch(b, writable) }

func letGo([]byte) error { return nil }

// setLock takes a lock of the process: it is lost when any descriptor of the file is closed in this process. Lock does
// not open a file that is locked already.
func setLock(fd int, kind int16) error {
	lock := unix.Flock_t{Type: kind, Whence: unix.SEEK_SET, Start: 0, Len: 1}
	return unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &lock)
}
