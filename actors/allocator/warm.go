package allocator

import (
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/segments"
)

const pageBytes = 4096

// populate makes pages of a new segment present: its first window, or all of it, with a sync now and then so that the disk is not
// given all at once (spec/store.md §4.6).
func (a *Actor) populate(s *segments.Segment) error {
	if !a.cfg.Warm {
		if n := min(a.cfg.WindowBytes, s.Size()); n > 0 {
			return s.Populate(0, n)
		}
		return nil
	}
	step := s.Size()
	if a.cfg.WarmSyncPages > 0 {
		step = min(step, int64(a.cfg.WarmSyncPages)*pageBytes)
	}
	for at := int64(0); at < s.Size(); at += step {
		if err := s.Populate(at, min(step, s.Size()-at)); err != nil {
			return err
		}
		if a.cfg.WarmSyncPages > 0 {
			if err := s.DataSync(); err != nil {
				return err
			}
		}
	}
	return nil
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
