package segments

import "sort"

// View is an immutable list of segments sorted by start. A nil View is empty.
type View struct {
	segs []*Segment
}

// NewView returns a view of segments that are sorted by start; it keeps the slice.
func NewView(segs []*Segment) *View { return &View{segs: segs} }

// Len is the number of segments.
func (v *View) Len() int {
	if v == nil {
		return 0
	}
	return len(v.segs)
}

// At returns the i-th segment.
func (v *View) At(i int) *Segment { return v.segs[i] }

// First returns the first segment, or nil.
func (v *View) First() *Segment {
	if v.Len() == 0 {
		return nil
	}
	return v.segs[0]
}

// Last returns the last segment, or nil.
func (v *View) Last() *Segment {
	if v.Len() == 0 {
		return nil
	}
	return v.segs[len(v.segs)-1]
}

// Find returns the segment that contains a physical offset, or nil when there is none (outside, or in a gap).
func (v *View) Find(off int64) *Segment {
	if v.Len() == 0 {
		return nil
	}
	// Without a gap the place is a division; a gap is found by search.
	first := v.segs[0]
	if i := (off - first.start) / first.Size(); off >= first.start && i < int64(len(v.segs)) && v.segs[i].contains(off) {
		return v.segs[i]
	}
	i := sort.Search(len(v.segs), func(i int) bool { return v.segs[i].start > off }) - 1
	if i >= 0 && v.segs[i].contains(off) {
		return v.segs[i]
	}
	return nil
}

func (s *Segment) contains(off int64) bool { return off >= s.start && off < s.start+s.Size() }

// Append returns a view with one more segment behind the last.
func (v *View) Append(s *Segment) *View {
	segs := make([]*Segment, 0, v.Len()+1)
	if v != nil {
		segs = append(segs, v.segs...)
	}
	return &View{segs: append(segs, s)}
}

// Slice returns the view of the segments [from, to).
func (v *View) Slice(from, to int) *View { return &View{segs: v.segs[from:to:to]} }
