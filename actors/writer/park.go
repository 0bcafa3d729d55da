package writer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
)

// park keeps a message until there is a segment for it. The order of the puts is kept: while anything is parked,
// everything is. Admission bounds how much that can be.
func (w *Actor) park(m any) {
	lead := leadOf(m)
	if lead.Deadline.IsZero() {
		lead.Deadline = time.Now().Add(w.cfg.SegmentWait)
	}
	w.parked = append(w.parked, m)
	w.noteParked()
	if len(w.parked) == 1 {
		w.armPark(time.Until(lead.Deadline))
	}
}

func (w *Actor) armPark(d time.Duration) {
	if w.parkTimer != nil {
		w.parkTimer.Stop()
	}
	w.parkTimer = w.self.After(max(d, 0), parkExpired{})
}

// unpark appends what was waiting, oldest first.
func (w *Actor) unpark() {
	waiting := w.parked
	w.parked = nil
	for i, m := range waiting {
		w.parked = waiting[i+1:] // what is left should this one panic
		w.current = m
		if w.append(m) {
			continue
		}
		cause := w.broken
		if cause == nil {
			w.parked = waiting[i:]
			break
		}
		w.broken = nil
		w.failUnwritten(m, cause)
		if w.failed != nil {
			break // the others have been refused
		}
	}
	w.current = nil
	w.noteParked()
	w.settle()
	if len(w.parked) == 0 && w.parkTimer != nil {
		w.parkTimer.Stop()
		w.parkTimer = nil
	}
}

// expireParked answers the parked puts whose deadline has passed.
func (w *Actor) expireParked() {
	now := time.Now()
	keep := w.parked[:0]
	var oldest time.Time
	for _, m := range w.parked {
		d := leadOf(m).Deadline
		if !d.After(now) || w.diskFull() {
			w.refuseFull(m)
			continue
		}
		if oldest.IsZero() || d.Before(oldest) {
			oldest = d
		}
		keep = append(keep, m)
	}
	clear(w.parked[len(keep):])
	w.parked = keep
	w.noteParked()
	if len(keep) > 0 {
		w.armPark(oldest.Sub(now))
	}
}

// segmentFailed notes why there is no segment. On a full disk nobody waits: only a deletion helps, and nobody knows when.
func (w *Actor) segmentFailed(cause error) {
	w.segmentErr = cause
	if !w.rebuilding {
		w.expireParked()
	}
}

func (w *Actor) diskFull() bool { return errors.Is(w.segmentErr, vfs.ErrNoSpace) }

// refuseFull refuses a put for which there is no segment. That the disk is full is said in the words of that state
// (spec/store.md §9.5).
func (w *Actor) refuseFull(m any) {
	if !w.diskFull() {
		failPut(m, messages.CreateMapedFileFailed, w.noSegment())
		return
	}
	failPut(m, messages.ServiceNotAvailable, fmt.Errorf("%w: %w: %w", messages.ErrDiskFull, ErrNoSegment, w.segmentErr))
	if !w.short {
		w.short = true
		w.cfg.Space.Send(messages.SpaceProblem{Part: part, Err: w.segmentErr, Refuse: true})
	}
}

// part is how the writer is called in messages.SpaceProblem.
const part = "commit log"

// forget makes the queues of a topic begin at offset 0 again.
func (w *Actor) forget(m messages.ForgetTopic) {
	if w.failed != nil {
		m.Refuse(w.failed)
		return
	}
	if w.rebuilding {
		m.Refuse(messages.ErrBusy)
		return
	}
	w.tail.forget(m.Topic)
	m.Answer.Complete(w.cfg.Log.Written(), nil)
}

// noSegment says why there is no segment, as far as that is known.
func (w *Actor) noSegment() error { return errors.Join(ErrNoSegment, w.segmentErr) }

func (w *Actor) refuseParked() {
	for _, m := range w.parked {
		failPut(m, messages.ServiceNotAvailable, w.failed)
	}
	w.parked = nil
	w.noteParked()
}

// noteParked notes since when puts have been waiting.
func (w *Actor) noteParked() {
	switch since := w.parkedAt.Load(); {
	case len(w.parked) == 0:
		w.parkedAt.Store(0)
	case since == 0:
		w.parkedAt.Store(int64(time.Since(w.made)) + 1)
	}
}

// Parked is how long puts have been waiting for a segment or a rebuild, 0 when none is. Safe for any goroutine.
func (w *Actor) Parked() time.Duration {
	since := w.parkedAt.Load()
	if since == 0 {
		return 0
	}
	return time.Since(w.made) - time.Duration(since)
}

func leadOf(m any) *messages.PutMessage {
	switch m := m.(type) {
	case *messages.PutMessage:
		return m
	case *messages.PutGroup:
		return m.Lead
	case *messages.AppendReplica:
		return m.Done
	}
	panic("BUG: parked a message that is no put")
}

// roll goes on in the next segment, if it is there.
func (w *Actor) roll() bool {
	if w.tail.short {
		return false
	}
	if len(w.tail.staged) > 0 { // what waits for a segment has nothing staged
		if err := w.tail.write(); err != nil {
			w.unwritten(err)
			w.broken = err
			return false
		}
	}
	if len(w.ready) == 0 || w.ready[0].Start() != w.tail.nextStart() {
		w.wantSegments()
		if w.cfg.Pooled { // its write buffer may be the one that the next segment waits for
			w.tail.finish()
			w.follow(false)
		}
		return false
	}
	w.begun = 0
	next := w.ready[0]
	w.ready = append(w.ready[:0], w.ready[1:]...)
	w.tail.roll(next)
	w.window.enter(next)
	w.wantSegments()
	return true
}

func (w *Actor) segmentReady(m actors.SegmentReady) {
	if w.failed != nil {
		m.Refuse(w.failed)
		return
	}
	if m.Tail {
		w.tail.short = false
		w.wantSegments()
		w.wantWindow()
	}
	w.segmentErr = nil
	if w.short {
		w.short = false
		w.cfg.Space.Send(messages.SpaceProblem{Part: part})
	}
	if !m.Tail {
		w.ready = append(w.ready, m.Segment)
	}
	// After failures they may come in any order.
	slices.SortFunc(w.ready, func(a, b *segments.Segment) int { return cmp.Compare(a.Start(), b.Start()) })
	if len(w.parked) > 0 {
		w.self.Send(goOn{}) // a panic must not cost this message, whose segment would be refused
	}
}

// wantSegments asks for the next segment, and for the one behind it once the log has begun: an empty store needs just one.
func (w *Actor) wantSegments() {
	if w.cfg.Follower && w.tail.begins < 0 {
		return // the master's first bytes tell where the log begins
	}
	next, size := w.tail.nextStart(), w.cfg.Log.SegmentBytes()
	last := next
	if w.tail.seg != nil {
		last += size
	}
	for start := max(next, w.asked); start <= last; start += size {
		w.asked = start + size
		w.cfg.Allocator.Send(actors.SegmentWanted{Start: start, ReplyTo: w.self})
	}
}
