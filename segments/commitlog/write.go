package commitlog

import (
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
)

// Add appends a segment that nothing is written to yet. Only the owner calls it; the segment follows the last one.
func (l *Log) Add(s *segments.Segment) { l.view.Store(l.view.Load().Append(s)) }

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
