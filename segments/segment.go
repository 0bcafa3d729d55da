package segments

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/segments/vfs/offheap"
)

// nameDigits is the length of a segment's file name (spec/store.md §1.1).
const nameDigits = 20

// Name returns the file name of the segment that starts at an offset.
func Name(start int64) string { return fmt.Sprintf("%020d", start) }

// ParseName returns the start offset that a file name states, or ErrName.
func ParseName(name string) (int64, error) {
	if len(name) != nameDigits {
		return 0, fmt.Errorf("%q: %w", name, ErrName)
	}
	start, err := strconv.ParseUint(name, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%q: %w", name, ErrName)
	}
	return int64(start), nil
}

// Segment is one mapped file of fixed size (RocketMQ: MappedFile). One owner appends and publishes; any number of readers
// hold it while they look at its bytes.
type Segment struct {
	start   int64
	path    string
	file    vfs.File
	mapping vfs.Mapping
	data    []byte
	buffer  atomic.Pointer[offheap.Memory] // where its owner writes until it is full; nil: into the map

	prepared  atomic.Int64 // bytes that may be written through the map
	preparing sync.Mutex   // held while zeros are written at prepared

	wrote atomic.Int64 // readable bytes; stored after the bytes themselves
	refs  atomic.Int64 // 1 for the owner, 1 for each holder; unmapped at 0
	gone  func(error)  // called after the last holder left; set before the owner's reference is dropped
}

// Create makes the file at path with real space for size bytes, all zero, and maps it. The name is durable only after the
// folder is synced. On an error nothing is left behind.
func Create(disk vfs.Disk, path string, start, size int64) (*Segment, error) {
	f, err := disk.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create segment: %w", err)
	}
	s, err := prepare(f, start, size)
	if err != nil {
		err = fmt.Errorf("create segment %s: %w", path, err)
		return nil, errors.Join(err, f.Close(), disk.Remove(path))
	}
	return s, nil
}

func prepare(f vfs.File, start, size int64) (*Segment, error) {
	if err := f.Allocate(0, size); err != nil {
		return nil, err
	}
	m, err := f.Map(size, vfs.MapShared)
	if err != nil {
		return nil, err
	}
	return newSegment(f, m, start), nil
}

// Open maps an existing file, whose length must be size, as the segment that its name states. All of it counts as
// written until SetWrote says otherwise.
func Open(disk vfs.Disk, path string, start, size int64) (*Segment, error) {
	f, err := disk.Open(path, true)
	if err != nil {
		return nil, fmt.Errorf("open segment: %w", err)
	}
	s, err := open(f, start, size)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open segment %s: %w", path, err), f.Close())
	}
	return s, nil
}

func open(f vfs.File, start, size int64) (*Segment, error) {
	n, err := f.Size()
	if err != nil {
		return nil, err
	}
	if n != size {
		return nil, fmt.Errorf("%d bytes instead of %d: %w", n, size, ErrSize)
	}
	m, err := f.Map(size, vfs.MapShared)
	if err != nil {
		return nil, err
	}
	s := newSegment(f, m, start)
	s.wrote.Store(size)
	return s, nil
}

func newSegment(f vfs.File, m vfs.Mapping, start int64) *Segment {
	s := &Segment{start: start, path: f.Name(), file: f, mapping: m, data: m.Bytes()}
	s.refs.Store(1)
	s.prepared.Store(s.Size())
	return s
}

// ReadAt reads from the file instead of the map: what is looked at once does not become resident memory. An io.ReaderAt.
func (s *Segment) ReadAt(b []byte, off int64) (int, error) { return s.file.ReadAt(b, off) }

// WriteAt writes to the file, past the map: what the owner has written so is in the map too. Only the owner calls it.
func (s *Segment) WriteAt(b []byte, off int64) (int, error) { return s.file.WriteAt(b, off) }

// DataFrom returns the first place at or behind off that may not be zero, the segment's size when there is none.
func (s *Segment) DataFrom(off int64) (int64, error) { return vfs.DataFrom(s.file, off) }

// Start is the physical offset of the first byte.
func (s *Segment) Start() int64 { return s.start }

// Size is the length of the file in bytes.
func (s *Segment) Size() int64 { return int64(len(s.data)) }

// Path is the name of the file.
func (s *Segment) Path() string { return s.path }

// Renamed tells the segment its new name; only its owner calls it, before anybody else sees the segment.
func (s *Segment) Renamed(path string) { s.path = path }

// Wrote is the number of readable bytes.
func (s *Segment) Wrote() int64 { return s.wrote.Load() }

// SetWrote publishes the number of readable bytes; only the owner calls it, after the bytes are in place. Going back is
// for recovery, before there are readers.
func (s *Segment) SetWrote(n int64) { s.wrote.Store(n) }

// Fetch is [Fetch] of n bytes at off, of as many as there are. Who calls it need not hold the segment.
func (s *Segment) Fetch(off, n int64) {
	if off >= 0 && off < s.Size() && n > 0 {
		Fetch(s.data[off : off+min(n, s.Size()-off)])
	}
}

// Data is the whole mapped file. Readers hold the segment and stay below Wrote; the owner writes at and above it.
func (s *Segment) Data() []byte { return s.data }

// Populate makes the pages of [off, off+n) that the owner writes to present ahead of that; see vfs.Mapping.
func (s *Segment) Populate(off, n int64) error {
	if m := s.buffer.Load(); m != nil {
		return m.Populate(off, n)
	}
	return s.mapping.Populate(off, n)
}

// LetGo makes syncing [off, off+n) cheaper, which nobody writes to any more; see vfs.Mapping.
func (s *Segment) LetGo(off, n int64) error { return s.mapping.LetGo(off, n) }

// Forget has the system take back the memory of [off, off+n), which is synced: who reads there after all waits for the disk.
func (s *Segment) Forget(off, n int64) error {
	if err := s.mapping.LetGo(off, n); err != nil {
		return err
	}
	return vfs.Forget(s.file, off, n)
}

// Lock keeps the segment's pages in memory, Unlock lets them go; see vfs.Mapping.
func (s *Segment) Lock() error { return s.mapping.Lock() }

// Unlock ends what Lock began.
func (s *Segment) Unlock() error { return s.mapping.Unlock() }

// Reserve makes sure that there is room on the disk for [off, off+n); see vfs.File.Allocate.
func (s *Segment) Reserve(off, n int64) error { return s.file.Allocate(off, n) }

// DataSync makes the written bytes durable; see vfs.File.
func (s *Segment) DataSync() error { return s.file.DataSync() }

// SyncRange makes the bytes written to [off, off+n) durable; see vfs.Mapping.
func (s *Segment) SyncRange(off, n int64) error { return s.mapping.DataSync(off, n) }

// StartWriteback asks the system to begin writing a range; see vfs.File.
func (s *Segment) StartWriteback(off, n int64) error { return s.file.StartWriteback(off, n) }

// Hold adds a reference for a reader; it fails once the last holder has left.
func (s *Segment) Hold() bool {
	for {
		n := s.refs.Load()
		if n <= 0 {
			return false
		}
		if s.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release drops a reference. The last one unmaps and closes the file.
func (s *Segment) Release() {
	switch n := s.refs.Add(-1); {
	case n == 0:
		err := errors.Join(s.mapping.Unmap(), s.file.Close())
		if m := s.Detach(); m != nil {
			err = errors.Join(err, m.Free())
		}
		if s.gone != nil {
			s.gone(err)
		}
	case n < 0:
		panic("BUG: segment " + s.path + " released more often than held")
	}
}

// Retire drops the owner's reference; only the owner calls it, once. When the last reader has left, the file is unmapped
// and closed, and then (if not nil) is called with the error of that.
func (s *Segment) Retire(then func(error)) {
	s.endAhead()
	s.gone = then
	s.Release()
}
