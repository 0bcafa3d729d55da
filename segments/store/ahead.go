package store

import (
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
)

const (
	// aheadBytes is what must be left of a segment for a walk to read it ahead; a goroutine costs less than to read that much.
	aheadBytes = 2 << 10
	// aheadBatch and aheadBatchBytes bound what the two goroutines hand over at a time: it is in the processor's cache when the walk's
	// function looks at it.
	aheadBatch      = 256
	aheadBatchBytes = 512 << 10
)

// ahead reads the sound records of a segment, checksums included, while the walk's function looks at those in front of them.
type ahead struct {
	*Walk
	seg   *segments.Segment
	full  chan []Item // closed behind the last sound one
	empty chan []Item
	stop  chan struct{}
}

// sound walks over the sound records and blanks from *pos on, up to the first damage or the end of data, which is the segment's.
func (w *Walk) sound(data []byte, seg *segments.Segment, pos *int64, fn func(*Item) error) error {
	a := &ahead{Walk: w, seg: seg, full: make(chan []Item, 1), empty: make(chan []Item, 2), stop: make(chan struct{})}
	a.empty <- nil
	a.empty <- nil
	go a.run(data, *pos-seg.Start())
	defer func() {
		close(a.stop)
		for range a.full { // until it does not touch the segment any more
		}
	}()
	for batch := range a.full {
		for i := range batch {
			*pos = int64(batch[i].To)
			if err := fn(&batch[i]); err != nil {
				return err
			}
		}
		a.empty <- batch[:0]
	}
	return nil
}

// run parses from a place in the segment on. A fault ends it like damage: who walks meets it again.
func (a *ahead) run(data []byte, at int64) {
	defer close(a.full)
	_ = vfs.Guard(a.seg.Path(), func() error {
		for n := 8; at < int64(len(data)); n = min(2*n, aheadBatch) { // small first: the walk's function need not wait for long
			var batch []Item
			select {
			case batch = <-a.empty:
			case <-a.stop:
				return nil
			}
			if at = a.fill(data, at, batch, n); at < 0 {
				return nil
			}
		}
		return nil
	})
}

// fill hands up to n items over, and returns where they end: -1 in front of damage. A fault panics behind the sound ones: what is
// half parsed then is not handed over.
func (a *ahead) fill(data []byte, at int64, batch []Item, n int) int64 {
	sound := 0
	defer func() {
		select {
		case a.full <- batch[:sound]:
		case <-a.stop:
		}
	}()
	for from := at; sound < n && at < int64(len(data)) && at-from < aheadBatchBytes; {
		batch = append(batch[:sound], Item{From: messages.PhysicalOffset(a.seg.Start() + at)})
		it := &batch[sound]
		if a.parse(data[at:], a.seg, it) != nil {
			return -1
		}
		at = int64(it.To) - a.seg.Start()
		sound++
	}
	return at
}
