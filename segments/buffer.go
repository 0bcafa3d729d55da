package segments

import (
	"fmt"

	"github.com/actormq/actormq/segments/vfs/offheap"
)

// Attach gives the segment a write buffer of its size, all zero: its owner writes there, and Commit copies to the file what readers
// may see (spec/store.md §3.8). Before anybody else sees the segment.
func (s *Segment) Attach(m *offheap.Memory) { s.buffer.Store(m) }

// Detach takes the write buffer back, nil if there is none: all of it is committed, and nobody writes there any more.
func (s *Segment) Detach() *offheap.Memory { return s.buffer.Swap(nil) }

// Tail is where the owner writes: the write buffer, or the mapped file.
func (s *Segment) Tail() []byte {
	if m := s.buffer.Load(); m != nil {
		return m.Bytes()
	}
	return s.data
}

// Commit copies [Wrote, to) from the write buffer to the file; without one they are there already. SetWrote then makes them readable.
func (s *Segment) Commit(to int64) error {
	m := s.buffer.Load()
	from := s.Wrote()
	if m == nil || to <= from {
		return nil
	}
	if _, err := s.file.WriteAt(m.Bytes()[from:to], from); err != nil {
		return fmt.Errorf("commit %d bytes at %d: %w", to-from, from, err)
	}
	return nil
}
