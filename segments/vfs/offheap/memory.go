//go:build linux || darwin || freebsd

package offheap

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Memory is zeroed pages that take memory once they are touched. Its owner frees it when nobody looks at it any more.
type Memory struct {
	b []byte
}

// New returns n bytes, a page-aligned whole number of pages at best.
func New(n int64) (*Memory, error) {
	b, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of memory: %w", n, err)
	}
	return &Memory{b: b}, nil
}

// Bytes is the memory; it must not be touched after Free.
func (m *Memory) Bytes() []byte { return m.b }

// Lock keeps the pages in memory, each from its first touch on where the system can do that. It may fail for want of permission
// (RLIMIT_MEMLOCK).
func (m *Memory) Lock() error {
	if err := lock(m.b); err != nil {
		return fmt.Errorf("lock %d bytes in memory: %w", len(m.b), err)
	}
	return nil
}

// Populate makes the pages of [off, off+n) present, so that later writes to them do not fault. Their content stays, whoever
// writes to it meanwhile. Where the system can't, it does nothing.
func (m *Memory) Populate(off, n int64) error {
	if off < 0 || n <= 0 || off+n > int64(len(m.b)) {
		return nil
	}
	if err := populate(m.b[off-off%pageBytes : off+n]); err != nil {
		return fmt.Errorf("populate %d bytes of memory: %w", n, err)
	}
	return nil
}

const pageBytes = 64 << 10 // a multiple of every page size

// Free gives the memory back.
func (m *Memory) Free() error {
	b := m.b
	m.b = nil
	if b == nil {
		return nil
	}
	if err := unix.Munmap(b); err != nil {
		return fmt.Errorf("unmap %d bytes of memory: %w", len(b), err)
	}
	return nil
}
