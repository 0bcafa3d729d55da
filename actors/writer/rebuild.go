package writer

import (
	"fmt"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
)

// startRebuild reads the state from the files again, on a goroutine of its own; puts wait. The tail is what was published:
// bytes behind it, which a put that panicked may have left, are zeroed.
func (w *Actor) startRebuild() {
	if w.cfg.Rebuild == nil {
		w.fail(messages.ErrPanicked)
		return
	}
	w.rebuilding = true
	self, rebuild := w.self, w.cfg.Rebuild
	seg, data, written := w.tail.seg, w.tail.data, w.tail.published()
	go func() {
		var offsets map[messages.QueueKey]messages.QueueOffset
		err := actors.Protect("read the queue offsets again", func() (err error) {
			if offsets, err = rebuild(); err != nil || seg == nil {
				return err
			}
			return vfs.Guard("clear the tail of "+seg.Path(), func() error {
				clearTail(data[written:])
				return nil
			})
		})
		self.Send(rebuilt{offsets: offsets, err: err})
	}()
}

// clearTail zeroes what a torn append may have left: up to the first page of zeros.
func clearTail(b []byte) {
	const page = 4096
	for len(b) > 0 {
		n := min(page, len(b))
		dirty := false
		for _, c := range b[:n] {
			dirty = dirty || c != 0
		}
		if !dirty {
			return
		}
		clear(b[:n])
		b = b[n:]
	}
}

func (w *Actor) rebuilt(m rebuilt) {
	w.rebuilding = false
	if m.err != nil {
		w.fail(fmt.Errorf("rebuild the writer's state: %w", m.err))
		return
	}
	if w.failed != nil {
		return
	}
	w.tail.setOffsets(m.offsets)
	if w.tail.seg != nil {
		w.tail.pos = w.tail.published()
	}
	w.cfg.Logger.Warn().Int("queues", len(m.offsets)).Msg("the writer's state was read from the files again")
	w.guarded(w.unpark)
}

// guarded runs fn, which appends outside of a batch.
func (w *Actor) guarded(fn func()) {
	w.enter()
	defer w.leave()
	fn()
}

func (a *appender) segmentPath() string {
	if a.seg == nil {
		return "the commit log"
	}
	return a.seg.Path()
}

// published is the place in the current segment up to which records have been answered.
func (a *appender) published() int64 {
	if a.seg == nil {
		return 0
	}
	return max(int64(a.log.Written())-a.seg.Start(), 0)
}
