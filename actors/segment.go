package actors

import (
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs/offheap"
)

// SegmentWanted asks the allocator for the segment that starts at a physical offset. The writer asks for each offset once,
// for two at most ahead of its tail. Answered by SegmentReady or SegmentFailed.
type SegmentWanted struct {
	Start   int64
	ReplyTo Peer
	// Tail, when set, is the segment, which is there: what it lacks is room on the disk from From on.
	Tail *segments.Segment
	From int64
}

// SegmentReady hands a segment to the writer: its file has full length, real space and a durable name, its first pages are
// populated, and the rest of the first window is next. The writer owns it. Tail: it is the one that it has already, with room now.
type SegmentReady struct {
	Segment *segments.Segment
	Tail    bool
}

// Refuse closes a new segment: the writer has stopped. Its file is removed by the next start, or by the stop itself.
func (m SegmentReady) Refuse(error) {
	if !m.Tail {
		m.Segment.Retire(nil)
	}
}

// SegmentFailed says why a segment could not be made. The allocator tries again after a pause, without being asked.
type SegmentFailed struct {
	Start int64
	Err   error
}

// WindowWanted asks the allocator to populate the pages of a segment from an offset on, one window ahead of the tail. The
// writer keeps one request outstanding. Answered by WindowReady.
type WindowWanted struct {
	ReplyTo Peer
	Segment *segments.Segment
	From    int64 // bytes from the start of the segment
}

// WindowReady says that the pages below End are populated, or that this could not be done: then the writer goes on, and
// each first touch of a page faults.
type WindowReady struct {
	Segment *segments.Segment
	End     int64
}

// BufferFree gives the allocator back the write buffer of a segment that is full and committed.
type BufferFree struct {
	Buffer *offheap.Memory
}

// Refuse frees the buffer: the allocator has stopped.
func (m BufferFree) Refuse(error) { _ = m.Buffer.Free() }
