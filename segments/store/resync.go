package store

import (
	"container/heap"
	"errors"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
)

// resync finds where the log goes on behind the damaged item: at the first record that a consume queue names; in front of
// it, or when there is none, at a record with a chain of records behind it (record.Resync); at the start of a later segment
// that begins with a sound record, since no body reaches over it. A record whose lengths add up, and of which only the body
// is damaged, tells by itself where the next one begins.
func (w *Walk) resync(it *Item, seg *segments.Segment) (messages.PhysicalOffset, bool) {
	used, err := w.used.of(seg, int64(it.From)-seg.Start())
	if err != nil {
		used = Span{From: it.From, To: messages.PhysicalOffset(seg.Start() + seg.Size())} // reading the map will say so too
	}
	if to, ok := overBody(it, seg); ok {
		return to, true
	}
	named, found := w.nextNamed(it.From)
	from, segmentEnd := int64(it.From)-seg.Start(), messages.PhysicalOffset(seg.Start()+seg.Size())
	b := seg.Data()[from:min(seg.Wrote(), max(from, int64(used.To)-seg.Start()+zeroMargin))]
	if found && named < segmentEnd {
		b, segmentEnd = seg.Data()[from:int64(named)-seg.Start()], 0
	}
	if n, ok := record.Resync(b, it.From, segmentEnd); ok {
		return it.From + messages.PhysicalOffset(n), true
	}
	view := w.Log.View()
	for i := range view.Len() {
		start := messages.PhysicalOffset(view.At(i).Start())
		if found && start >= named {
			break
		}
		if start > it.From && w.soundAt(start) {
			return start, true
		}
	}
	return named, found
}

// zeroMargin is how many of the zeros behind a segment's last bytes are looked at: more than end any record.
const zeroMargin = 4096

// overBody returns the place behind a record of which only the body is damaged, when a sound record follows, perhaps behind
// more of that kind.
func overBody(it *Item, seg *segments.Segment) (to messages.PhysicalOffset, ok bool) {
	data := seg.Data()[:seg.Wrote()]
	err, r := it.Err, it.Record
	for at := it.From; isPartly(err) && r.PhysicalOffset == at; {
		at += messages.PhysicalOffset(r.Size)
		var kind record.Kind
		r, kind, err = record.Parse(data[int64(at)-seg.Start():], true)
		if err == nil && kind == record.KindMessage && r.PhysicalOffset == at {
			return it.From + messages.PhysicalOffset(it.Record.Size), true
		}
	}
	return 0, false
}

// isPartly tells whether an error leaves the record's lengths in order.
func isPartly(err error) bool {
	return errors.Is(err, record.ErrBadCRC) || errors.Is(err, record.ErrTorn)
}

// soundAt tells whether a segment begins with a record that names its place, or with a blank.
func (w *Walk) soundAt(start messages.PhysicalOffset) bool {
	return look(w.Log, start, func(r *record.Record, kind record.Kind) error {
		if kind == record.KindMessage && r.PhysicalOffset != start {
			return ErrMisplaced
		}
		return nil
	}) == nil
}

// look parses what stands at a place, checksum included, and shows it to fn.
func look(log *commitlog.Log, at messages.PhysicalOffset, fn func(*record.Record, record.Kind) error) error {
	s, err := log.ReadFrom(at)
	if err != nil {
		return err
	}
	defer s.Release()
	return vfs.Guard(s.Path(), func() error {
		r, kind, err := record.Parse(s.Bytes, true)
		if err != nil {
			return err
		}
		return fn(&r, kind)
	})
}

// nextNamed returns the first sound record behind a place that a consume queue names.
func (w *Walk) nextNamed(behind messages.PhysicalOffset) (messages.PhysicalOffset, bool) {
	if w.Queues == nil {
		return 0, false
	}
	units := unitHeap{}
	w.Queues.Each(func(key messages.QueueKey, q *consumequeue.Queue) {
		if q.PhysicalEnd() <= behind {
			return
		}
		c := &unitCursor{key: key, queue: q}
		var err error
		if c.at, err = q.Search(behind + 1); err == nil && c.read() {
			units = append(units, c)
		}
	})
	heap.Init(&units)
	for len(units) > 0 {
		c := units[0]
		if Names(w.Log, c.unit, c.key, c.at) == nil {
			return c.unit.PhysicalOffset, true
		}
		c.at++
		if c.read() {
			heap.Fix(&units, 0)
		} else {
			heap.Pop(&units)
		}
	}
	return 0, false
}

// unitCursor walks over the units of one queue.
type unitCursor struct {
	key   messages.QueueKey
	queue *consumequeue.Queue
	at    messages.QueueOffset
	unit  consumequeue.Unit
}

// read fetches the unit at the cursor; false at the end.
func (c *unitCursor) read() bool {
	var u [1]consumequeue.Unit
	n, err := c.queue.Read(c.at, u[:])
	c.unit = u[0]
	return err == nil && n == 1
}

// unitHeap orders cursors by the place that their unit names.
type unitHeap []*unitCursor

func (h unitHeap) Len() int           { return len(h) }
func (h unitHeap) Less(i, j int) bool { return h[i].unit.PhysicalOffset < h[j].unit.PhysicalOffset }
func (h unitHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *unitHeap) Push(x any) { *h = append(*h, x.(*unitCursor)) }

// Pop implements heap.Interface.
func (h *unitHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// ErrOtherRecord: a consume-queue unit names a sound record, but of another queue or queue offset.
var ErrOtherRecord = errors.New("unit names a record of another place")

// Names checks that a unit of a queue, at a queue offset, names a sound record of that queue and offset. The error is
// ErrOtherRecord when it names another record, and what is wrong with the record otherwise.
func Names(log *commitlog.Log, u consumequeue.Unit, key messages.QueueKey, at messages.QueueOffset) error {
	return look(log, u.PhysicalOffset, func(r *record.Record, kind record.Kind) error {
		switch {
		case kind != record.KindMessage || r.Size != u.Size:
			return ErrOtherRecord
		case r.PhysicalOffset != u.PhysicalOffset:
			return ErrMisplaced
		case r.QueueOffset == at && r.QueueID == key.QueueID && string(r.Topic) == key.Topic:
			return nil
		}
		for k, offset := range record.MultiQueues(r) {
			if k == key && offset == at {
				return nil
			}
		}
		return ErrOtherRecord
	})
}
