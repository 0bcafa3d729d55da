package consumequeue

import (
	"math/bits"
	"sort"
	"sync/atomic"
)

// Chunks grow with the number of units that wait to be written, so that a quiet queue costs little and a busy one
// allocates seldom.
const (
	minChunkUnits = 16
	maxChunkUnits = 2048
)

// chunk is a run of units in their file form. The builder fills it from the front; what is below the tail's max never
// changes.
type chunk struct {
	first int64 // queue offset of the first unit
	buf   []byte
}

func newChunk(first, pending int64) *chunk {
	units := int64(maxChunkUnits)
	if pending < maxChunkUnits {
		units = max(minChunkUnits, int64(1)<<bits.Len64(uint64(pending)))
	}
	return &chunk{first: first, buf: make([]byte, units*UnitBytes)}
}

// end is the queue offset behind the room of the chunk.
func (c *chunk) end() int64 { return c.first + int64(len(c.buf))/UnitBytes }

// at returns the bytes of the units [from, to), as far as they lie in the chunk.
func (c *chunk) at(from, to int64) []byte {
	return c.buf[(from-c.first)*UnitBytes : (min(to, c.end())-c.first)*UnitBytes]
}

// tail is one generation of a queue's readable range: everything below max is in the chunks or in the files. Truncate
// and Destroy replace the tail; within one, min and max only grow, and units below max never change.
type tail struct {
	chunks atomic.Pointer[[]*chunk] // contiguous up to max; the builder adds, Write takes away at the front
	min    atomic.Int64
	max    atomic.Int64 // stored after the unit and its chunk
	end    atomic.Int64 // physical offset behind the last record, -1: none
	gone   bool         // the queue has been deleted
}

func newTail(min, max, end int64) *tail {
	t := &tail{}
	t.min.Store(min)
	t.max.Store(max)
	t.end.Store(end)
	return t
}

func (t *tail) list() []*chunk {
	if p := t.chunks.Load(); p != nil {
		return *p
	}
	return nil
}

// add appends a chunk. Write may take chunks away at the same time, so it compares and swaps.
func (t *tail) add(c *chunk) {
	for {
		old := t.chunks.Load()
		var list []*chunk
		if old != nil {
			list = append(make([]*chunk, 0, len(*old)+1), *old...)
		}
		list = append(list, c)
		if t.chunks.CompareAndSwap(old, &list) {
			return
		}
	}
}

// drop takes away the chunks that are in the file, but never the last two: readers of the hot end use them, and the
// builder may be filling the last.
func (t *tail) drop(written int64) {
	for {
		old := t.chunks.Load()
		if old == nil {
			return
		}
		n := 0
		for n < len(*old)-2 && (*old)[n].end() <= written {
			n++
		}
		if n == 0 {
			return
		}
		list := append([]*chunk(nil), (*old)[n:]...)
		if t.chunks.CompareAndSwap(old, &list) {
			return
		}
	}
}

// cut returns a new tail that ends at to. It shares the chunks; the one that to falls into ends there for the new tail, so
// the builder goes on in another one and readers of the old tail see no change.
func (t *tail) cut(to, physicalEnd int64) *tail {
	n := newTail(min(t.min.Load(), to), to, physicalEnd)
	var list []*chunk
	for _, c := range t.list() {
		if c.first >= to {
			break
		}
		if c.end() > to {
			c = &chunk{first: c.first, buf: c.at(c.first, to)}
		}
		list = append(list, c)
	}
	if list != nil {
		n.chunks.Store(&list)
	}
	return n
}

// find returns the chunk that holds a queue offset, or nil when it is not in memory.
func find(list []*chunk, at int64) *chunk {
	i := sort.Search(len(list), func(i int) bool { return list[i].end() > at })
	if i == len(list) || list[i].first > at {
		return nil
	}
	return list[i]
}
