package commitlog

import (
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
)

// Add appends a segment that nothing is written to yet. Only the owner calls it; the segment follows the last one.
func (l *Log) Add(s *segments.Segment) {
	for old := l.view.Load(); !l.view.CompareAndSwap(old, old.Append(s)); old = l.view.Load() {
	}
}

// DropFirst takes the oldest segment out of the log and returns it, still open: the caller retires it, and deletes its file.
// The last segment stays, and so does one that ends behind limit: then the result is nil. Safe for any goroutine; readers
// that hold the segment go on.
func (l *Log) DropFirst(limit messages.PhysicalOffset) *segments.Segment {
	for {
		v := l.view.Load()
		if v.Len() < 2 || v.First().Start()+v.First().Size() > int64(limit) {
			return nil
		}
		if l.view.CompareAndSwap(v, v.Slice(1, v.Len())) {
			return v.First()
		}
	}
}

// Publish makes the bytes of the last segment up to pos readable; they are in place already. storeTimestampMs is that of
// the last record. Only the owner calls it.
func (l *Log) Publish(s *segments.Segment, pos, storeTimestampMs int64) {
	s.SetWrote(pos)
	l.end.Store(s.Start() + pos)
	if l.storeMs.Load() != storeTimestampMs {
		l.storeMs.Store(storeTimestampMs)
	}
}

// StoreTimestampMs is the store timestamp of a record below End, usually the last. Read before End, it is never newer than
// the log up to that end.
func (l *Log) StoreTimestampMs() int64 { return l.storeMs.Load() }

// CutTo sets the end of the log and takes the segments that begin at or behind it out of the view, all but the one that
// contains the end. They are returned, still open: the caller keeps a copy of what matters, retires and removes them.
// storeTimestampMs is that of the last record, 0 if there is none. Recovery calls it before there are readers.
func (l *Log) CutTo(end messages.PhysicalOffset, storeTimestampMs int64) []*segments.Segment {
	v := l.view.Load()
	keep := v.Len()
	for keep > 0 && v.At(keep-1).Start() >= int64(end) {
		keep--
	}
	cut := make([]*segments.Segment, 0, v.Len()-keep)
	for i := keep; i < v.Len(); i++ {
		cut = append(cut, v.At(i))
	}
	kept := v.Slice(0, keep)
	if last := kept.Last(); last != nil {
		last.SetWrote(min(int64(end)-last.Start(), last.Size()))
	}
	l.view.Store(kept)
	l.end.Store(int64(end))
	l.storeMs.Store(storeTimestampMs)
	return cut
}
