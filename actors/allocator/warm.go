package allocator

import (
	"slices"

	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/segments"
)

const pageBytes = 4096

// warmStepBytes is how much of a segment is made present at a time, so that whoever wants a segment or a window waits little.
const warmStepBytes = 32 << 20

// unwarmed is a segment of which pages are still to be made present.
type unwarmed struct {
	segment *segments.Segment
	from    int64
}

// warmTick is the allocator's own: the next step of warming.
type warmTick struct{}

// toWarm has all pages of a new segment made present behind those of its first window (spec/store.md §4.6). It is handed over
// before: a put need not wait for pages.
func (a *Actor) toWarm(s *segments.Segment) {
	if a.unwarmed = append(a.unwarmed, unwarmed{segment: s, from: a.firstWindow(s)}); len(a.unwarmed) == 1 {
		a.self.Send(warmTick{})
	}
}

// firstWindow is how much of a new segment is populated before it is handed over.
func (a *Actor) firstWindow(s *segments.Segment) int64 { return min(a.cfg.WindowBytes, s.Size()) }

// warmStep makes some more pages present of the oldest segment that needs it, and locks it when it is done. The disk is given
// them now and then, instead of all at once, where that is configured.
func (a *Actor) warmStep() {
	u := &a.unwarmed[0]
	s := u.segment
	u.from = max(u.from, s.Wrote())
	n := min(warmStepBytes, s.Size()-u.from)
	if a.cfg.WarmSyncPages > 0 {
		n = min(n, int64(a.cfg.WarmSyncPages)*pageBytes)
	}
	if n > 0 && s.Hold() {
		err := actors.Protect("warm segment", func() error { return a.warmPages(s, u.from, n) })
		s.Release()
		if err == nil {
			u.from += n
			a.self.Send(warmTick{})
			return
		}
		a.cfg.Log.Warn().Err(err).Str("file", s.Path()).Int64("from", u.from).Msg("warming a segment failed: puts make its pages themselves")
	}
	a.warm.made(s, a.cfg.Log)
	if a.unwarmed = slices.Delete(a.unwarmed, 0, 1); len(a.unwarmed) > 0 {
		a.self.Send(warmTick{})
	}
}

func (a *Actor) warmPages(s *segments.Segment, from, n int64) error {
	if err := a.prepare(s, from, n); err != nil || a.cfg.WarmSyncPages == 0 {
		return err
	}
	return s.StartWriteback(from, n)
}

// warm keeps two segments locked in memory: the one that is written and the one behind it. Two more are made ahead of the tail,
// so a new one is locked when the next one is made, but for the first two.
type warm struct {
	segments []*segments.Segment // the last ones made, at most three; the first two are locked
	warned   bool
}

// made notes a new segment and moves the lock on.
func (w *warm) made(s *segments.Segment, log zerolog.Logger) {
	w.segments = append(w.segments, s)
	if len(w.segments) > 3 {
		w.with(w.segments[0], log, (*segments.Segment).Unlock)
		w.segments = append(w.segments[:0], w.segments[1:]...)
	}
	if n := len(w.segments); n < 3 {
		w.with(s, log, (*segments.Segment).Lock)
	} else {
		w.with(w.segments[1], log, (*segments.Segment).Lock)
	}
}

// with does something to a segment that is still mapped. That pages cannot be locked costs speed at worst: it is told once.
func (w *warm) with(s *segments.Segment, log zerolog.Logger, do func(*segments.Segment) error) {
	if !s.Hold() {
		return // unmapped, so not locked either
	}
	defer s.Release()
	if err := do(s); err != nil && !w.warned {
		w.warned = true
		log.Warn().Err(err).Int64("bytes", 2*s.Size()).
			Msg("segments can't be locked in memory (see ulimit -l, RLIMIT_MEMLOCK): they may be paged out")
	}
}
