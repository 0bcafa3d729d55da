package gateway

import "sync"

const (
	// joinedBytes is the memory in which short answers of a burst are put together, so that they are one part of the write: each part costs the
	// kernel more than copying a short answer does here.
	joinedBytes = 16 << 10
	// shortAnswer is the longest that is copied.
	shortAnswer = 1 << 10
)

var joinedPool = sync.Pool{New: func() any { return new([joinedBytes]byte) }}

// joined are the short answers of the write that is being put together. The memory is common to all connections: it is in the processor's cache.
type joined struct {
	room *[joinedBytes]byte // nil: none
	used int
	from int  // where the last part of the write begins in the room
	open bool // that part ends where the room is free
}

// lay adds a frame to the parts of a write; what is short goes behind what is short.
func (o *outbox) lay(f *frame) {
	j, n := &o.joined, len(f.head)
	if len(f.tail) > 0 || n > shortAnswer || j.used+n > joinedBytes || j.room == nil && f.next == nil {
		j.open = false
		o.scratch = append(append(o.scratch, f.head), f.tail...)
		return
	}
	if j.room == nil {
		j.room = joinedPool.Get().(*[joinedBytes]byte)
	}
	if !j.open {
		j.open, j.from = true, j.used
		o.scratch = append(o.scratch, nil)
	}
	j.used += copy(j.room[j.used:], f.head)
	o.scratch[len(o.scratch)-1] = j.room[j.from:j.used]
}

// free gives the memory back once all is written.
func (j *joined) free() {
	if j.room != nil {
		joinedPool.Put(j.room)
	}
	*j = joined{}
}
