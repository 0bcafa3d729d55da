package writer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
)

// stageBytes is what is staged at most before it is written, but for what one message brings, and the largest buffer that is kept.
const stageBytes = 1 << 20

// undo is a queue's next offset before a staged record.
type undo struct {
	next *messages.QueueOffset
	was  messages.QueueOffset
}

// choose decides how the next records are appended: those that somebody waits for by write(2). Nothing is staged between two batches,
// so the way may change then.
func (w *Actor) choose(waits bool) {
	w.tail.byWrite = waits && (w.cfg.Crowded == nil || !w.cfg.Crowded())
}

// note remembers what a staged put has taken, after it was taken.
func (a *appender) note(p *messages.PutMessage, next *messages.QueueOffset) {
	a.undo = append(a.undo, undo{next: next, was: *next - messages.QueueOffset(p.Count)})
	for _, key := range p.Further {
		further := a.offsets[key]
		a.undo = append(a.undo, undo{next: further, was: *further - 1})
	}
}

// takeBack gives up what was appended behind a place in the current segment: only who then reads the offsets again, or appends no
// more, may do so.
func (a *appender) takeBack(pos int64) {
	a.staged = a.staged[:max(0, int64(len(a.staged))-(a.pos-pos))]
	a.pos = pos
}

// write writes what is staged to the file. When that fails it is as if nothing had been staged.
func (a *appender) write() error {
	b := a.staged
	from := a.pos - int64(len(b))
	if a.staged = b[:0]; cap(b) > 2*stageBytes {
		a.staged = nil
	}
	_, err := a.seg.WriteAt(b, from)
	if err != nil {
		a.pos = from
		for _, u := range slices.Backward(a.undo) {
			*u.next = u.was
		}
		err = fmt.Errorf("append to the commit log: %w", err)
	}
	a.undo = a.undo[:0]
	return err
}

// unwritten answers what could not be written in this batch, and fails for good; where there was only no room for it, although
// it was reserved (file systems that copy on write), others may find some later.
func (w *Actor) unwritten(cause error) {
	if !errors.Is(cause, vfs.ErrNoSpace) {
		w.fail(cause)
	}
	for _, g := range w.groups {
		w.failUnwritten(g, cause)
	}
	for i, p := range w.done {
		w.done[i] = nil
		if p != nil && p.Count > 0 { // the others lead groups, or stand for a master's bytes
			w.failUnwritten(p, cause)
		}
	}
	w.done = w.done[:0]
	w.forgetGroups()
}

// failUnwritten answers a message that could not be written, or not all of it.
func (w *Actor) failUnwritten(m any, cause error) {
	if w.failed != nil {
		failPut(m, messages.UnknownError, w.failed)
		return
	}
	failPut(m, messages.ServiceNotAvailable, fmt.Errorf("%w: %w", messages.ErrDiskFull, cause))
}

func (w *Actor) forgetGroups() {
	clear(w.groups)
	w.groups = w.groups[:0]
}
