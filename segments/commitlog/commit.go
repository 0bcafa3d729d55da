package commitlog

import (
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs/offheap"
)

// SetWritten says that everything up to pos in the last segment is appended, and not yet readable: Commit makes it so. With a
// transient store pool the writer calls it instead of Publish. storeTimestampMs is that of the last record.
func (l *Log) SetWritten(s *segments.Segment, pos, storeTimestampMs int64) {
	l.written.Store(s.Start() + pos)
	l.writtenMs.Store(storeTimestampMs)
}

// Written is the physical offset behind the last appended byte: at End, or beyond it with a transient store pool.
func (l *Log) Written() messages.PhysicalOffset {
	return messages.PhysicalOffset(max(l.written.Load(), l.end.Load()))
}

// Commit writes what is appended to the files, the oldest first, and makes it readable. It returns the write buffers of the
// segments that are full and committed: they are the caller's. After an error the bytes behind End may have been written in part;
// it may be tried again. One goroutine at a time calls it, beside the writer.
func (l *Log) Commit() (free []*offheap.Memory, err error) {
	storeMs := l.writtenMs.Load() // before written: never newer than what is committed
	written := l.written.Load()
	v := l.View()
	first := v.Len()
	for first > 0 && !whole(v.At(first-1), written) {
		first--
	}
	for i := first; i < v.Len() && v.At(i).Start() < written; i++ {
		s := v.At(i)
		to := min(written-s.Start(), s.Size())
		if err := s.Commit(to); err != nil {
			return free, err
		}
		ms := l.storeMs.Load()
		if s.Start()+to == written {
			ms = storeMs
		}
		l.Publish(s, to, ms)
		if m := detachFull(s, to); m != nil {
			free = append(free, m)
		}
	}
	return free, nil
}

// whole tells whether everything that was written to a segment is committed.
func whole(s *segments.Segment, written int64) bool {
	return s.Start() < written && s.Wrote() >= min(written-s.Start(), s.Size())
}

func detachFull(s *segments.Segment, to int64) *offheap.Memory {
	if to < s.Size() {
		return nil
	}
	return s.Detach()
}
