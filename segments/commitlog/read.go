package commitlog

import (
	"fmt"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
)

// Slice is a readable piece of one segment. Bytes stay valid until Release, which the reader calls exactly once.
type Slice struct {
	Bytes []byte
	seg   *segments.Segment
	pos   int64 // of the first byte in its file
}

// Path is the file that the bytes lie in.
func (s Slice) Path() string { return s.seg.Path() }

// Offset is the place of the first byte in its file.
func (s Slice) Offset() int64 { return s.pos }

// Holder is what Release lets go of, for a result that is released as a whole; then Release is not called.
func (s Slice) Holder() *segments.Segment { return s.seg }

// Release lets go of the segment. The zero Slice may be released too.
func (s Slice) Release() {
	if s.seg != nil {
		s.seg.Release()
	}
}

// Read returns exactly n bytes from a physical offset on; they lie in one segment. It does not allocate when it succeeds.
// Touching the bytes can fault when the disk fails: see vfs.Guard.
func (l *Log) Read(off messages.PhysicalOffset, n int) (Slice, error) {
	s, err := l.ReadFrom(off)
	if err != nil {
		return Slice{}, err
	}
	if n < 0 || n > len(s.Bytes) {
		have := len(s.Bytes)
		s.Release()
		return Slice{}, fmt.Errorf("read %d bytes at offset %d, %d there: %w", n, off, have, ErrNotInLog)
	}
	s.Bytes = s.Bytes[:n:n]
	return s, nil
}

// ReadFrom returns what is readable from a physical offset to the end of its segment, at least one byte.
func (l *Log) ReadFrom(off messages.PhysicalOffset) (Slice, error) {
	seg := l.view.Load().Find(int64(off))
	if seg == nil {
		return Slice{}, notInLog(off)
	}
	if !seg.Hold() {
		return Slice{}, fmt.Errorf("read at offset %d: %w", off, segments.ErrGone)
	}
	pos, wrote := int64(off)-seg.Start(), seg.Wrote()
	if pos >= wrote {
		seg.Release()
		return Slice{}, notInLog(off)
	}
	return Slice{Bytes: seg.Data()[pos:wrote:wrote], seg: seg, pos: pos}, nil
}

// Fetch has the processor fetch the first n bytes at a physical offset, for whoever is going to read there (segments.Fetch).
func (l *Log) Fetch(off messages.PhysicalOffset, n int64) {
	if seg := l.view.Load().Find(int64(off)); seg != nil {
		seg.Fetch(int64(off)-seg.Start(), n)
	}
}

func notInLog(off messages.PhysicalOffset) error {
	return fmt.Errorf("offset %d: %w", off, ErrNotInLog)
}
