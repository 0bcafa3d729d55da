package reput

import (
	"errors"
	"fmt"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/record"
)

var (
	// ErrMisplaced: a record names another physical offset than the one it stands at.
	ErrMisplaced = errors.New("record names another place")
	// ErrDeleted: the segments were deleted before their records were dispatched.
	ErrDeleted = errors.New("deleted before it was dispatched")
	// ErrMissing: segments are missing inside the log.
	ErrMissing = errors.New("segments are missing")
)

// cursor walks the records of the log, over blanks, damage and missing segments. It holds a segment between two calls of
// next; close lets go of it, also after a panic.
type cursor struct {
	log    *commitlog.Log
	report func(messages.LogDamage) // nil: nobody listens
	// follows: the log is that of a slave. Its last record may be there in part, and an empty one may begin anywhere.
	follows bool
	pos     messages.PhysicalOffset // of the next record
	rec     record.Record           // the last one that next found; its slices are valid until the next call or close

	held  commitlog.Slice
	bytes []byte // of held, from pos to the readable end of the segment
}

// next finds the next record that ends at or below limit, which is at most the log's end. It does not allocate but where
// the log is damaged.
func (c *cursor) next(limit messages.PhysicalOffset) bool {
	for c.pos < limit {
		if len(c.bytes) == 0 {
			if !c.open() {
				return false
			}
			continue
		}
		kind, err := c.rec.Parse(c.bytes, false)
		switch {
		case err == nil && kind == record.KindBlank:
			c.jump(c.segmentEnd())
		case err == nil && c.rec.PhysicalOffset == c.pos:
			if c.pos+messages.PhysicalOffset(c.rec.Size) > limit {
				return false
			}
			c.skip(int(c.rec.Size))
			return true
		case c.follows && errors.Is(err, record.ErrTruncated) && c.pos+messages.PhysicalOffset(len(c.bytes)) < c.segmentEnd():
			return false // its rest is on its way
		default:
			if err == nil {
				err = fmt.Errorf("%w: %d", ErrMisplaced, c.rec.PhysicalOffset)
			}
			c.resync(err)
		}
	}
	return false
}

// open looks at the segment that holds pos; where there is none it moves pos to the next one. It is false when nothing is
// readable at or behind pos.
func (c *cursor) open() bool {
	c.close()
	if first := c.log.Min(); c.follows && c.pos == 0 && first > 0 {
		c.pos = first
		return true
	} else if c.pos < first {
		c.hop(first, ErrDeleted)
		return true
	}
	s, err := c.log.ReadFrom(c.pos)
	if err != nil {
		to, ok := c.nextSegment()
		if ok {
			c.hop(to, errors.Join(ErrMissing, err))
		}
		return ok
	}
	n := min(int64(len(s.Bytes)), int64(c.log.End()-c.pos))
	if n <= 0 {
		s.Release()
		return false
	}
	c.held, c.bytes = s, s.Bytes[:n]
	return true
}

// close lets go of the segment; the position stays.
func (c *cursor) close() {
	c.held.Release()
	c.held, c.bytes = commitlog.Slice{}, nil
}

func (c *cursor) skip(n int) {
	c.bytes = c.bytes[n:]
	c.pos += messages.PhysicalOffset(n)
}

func (c *cursor) jump(to messages.PhysicalOffset) {
	c.close()
	c.pos = to
}

// hop goes on at a place behind bytes that are not there.
func (c *cursor) hop(to messages.PhysicalOffset, err error) {
	c.tell(messages.LogDamage{From: c.pos, To: to, Err: fmt.Errorf("offset %d to %d: %w", c.pos, to, err)})
	c.pos = to
}

// resync goes on behind damage that begins at pos.
func (c *cursor) resync(cause error) {
	from, file := c.pos, c.path()
	start := c.log.SegmentStart(from)
	end := c.segmentEnd()
	if from+messages.PhysicalOffset(len(c.bytes)) < end {
		end = 0
	}
	n, ok := record.Resync(c.bytes, from, end)
	if !ok {
		n = len(c.bytes)
	}
	c.skip(n)
	err := &segments.CorruptionError{File: file, Offset: int64(from - start), Err: cause}
	c.tell(messages.LogDamage{From: from, To: c.pos, Err: err})
}

func (c *cursor) tell(d messages.LogDamage) {
	if c.report != nil {
		c.report(d)
	}
}

func (c *cursor) segmentEnd() messages.PhysicalOffset {
	return c.log.SegmentStart(c.pos) + messages.PhysicalOffset(c.log.SegmentBytes())
}

// nextSegment is where the first segment behind pos begins.
func (c *cursor) nextSegment() (messages.PhysicalOffset, bool) {
	view := c.log.View()
	for i := range view.Len() {
		if start := messages.PhysicalOffset(view.At(i).Start()); start > c.pos {
			return start, true
		}
	}
	return 0, false
}

// path is the file that holds pos.
func (c *cursor) path() string {
	if s := c.log.View().Find(int64(c.pos)); s != nil {
		return s.Path()
	}
	return c.log.Dir()
}
