package writer

import (
	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/segments"
)

// window is the populated part of the current segment ahead of the tail (design: a bounded window, not a whole segment).
type window struct {
	size    int64 // bytes; 0: no population
	end     int64 // populated up to here
	asked   bool  // a request is outstanding
	segment *segments.Segment
}

// enter begins a new segment; the allocator populates its first window unasked.
func (v *window) enter(s *segments.Segment) {
	v.segment, v.asked, v.end = s, false, min(v.size, s.Size())
}

func (v *window) ready(m actors.WindowReady) {
	if m.Segment == v.segment {
		v.asked, v.end = false, m.End
	}
}

// wantWindow asks for the next window once half of the current one is used.
func (w *Actor) wantWindow() {
	v := &w.window
	if v.asked || w.tail.seg == nil {
		return
	}
	if v.segment != w.tail.seg { // the segment that recovery left
		v.segment, v.end = w.tail.seg, w.tail.pos
	}
	if v.end >= v.segment.Size() || v.end-w.tail.pos > v.size/2 {
		return
	}
	v.asked = true
	w.cfg.Allocator.Send(actors.WindowWanted{ReplyTo: w.self, Segment: v.segment, From: max(v.end, w.tail.pos)})
}
