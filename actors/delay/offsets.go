package delay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
)

// flushTimeout bounds the wait for the flusher before a save.
const flushTimeout = 30 * time.Second

// load reads delayOffset.json. A file that is damaged, and its backup too, is put aside: every level then begins at the first
// message that its queue still has, so nothing is lost and much is delivered twice.
func (s *Scheduler) load() error {
	s.file = metadata.DelayOffsets{}
	report, err := metadata.LoadReport(s.cfg.Disk, s.cfg.Path, &s.file)
	switch {
	case errors.Is(err, metadata.ErrDamaged):
		s.cfg.Logger.Error().Err(err).Msg("delay offsets can't be read: delayed messages that are still there are delivered again")
		aside, err := metadata.PutAside(s.cfg.Disk, s.cfg.Path, s.cfg.Now())
		if err != nil {
			return fmt.Errorf("put unreadable delay offsets aside: %w", err)
		}
		s.cfg.Logger.Error().Strs("files", aside).Msg("the unreadable delay offset files were put aside")
	case err != nil:
		return err
	case report.MainErr != nil:
		s.cfg.Logger.Error().Err(report.MainErr).Str("from", report.From).
			Msg("the delay offset file is damaged; its backup was loaded")
	}
	return nil
}

// correct returns where a level begins: at its saved offset, or the end of its queue that is nearest to it (L55).
func (s *Scheduler) correct(l *level) messages.QueueOffset {
	var first, end messages.QueueOffset
	if q := s.cfg.Table.Lookup(l.key); q != nil {
		first, end = q.Range()
	}
	stored, known := s.file.Offsets[l.number]
	at := min(max(messages.QueueOffset(stored), first), end)
	if int64(at) != stored {
		s.dirty = true
		s.armTick()
		if known {
			l.log.Warn().Int64("saved", stored).Int64("first", int64(first)).Int64("end", int64(end)).
				Msg("a saved delay offset lies outside of its queue: it goes to the nearest end")
		}
	}
	return at
}

func (s *Scheduler) armTick() {
	if s.tick == nil {
		s.tick = s.self.After(s.cfg.Interval, saveTick{})
	}
}

// save writes the offsets, on a goroutine of its own, and calls done on the actor's. Behind a save that is under way it
// waits for that.
func (s *Scheduler) save(done func(error)) {
	if s.saving {
		before := s.whole
		s.whole = func(err error) {
			before(err)
			s.save(done)
		}
		return
	}
	if !s.dirty {
		done(nil)
		return
	}
	s.dirty, s.saving, s.whole = false, true, done
	table, delivered := s.snapshot()
	go func() {
		s.result <- actors.Protect("save delay offsets", func() error { return s.write(table, delivered) })
		s.self.Send(saved{})
	}()
}

// snapshot returns the file's new content, and the physical offset up to which the log must be durable before it may be
// written.
func (s *Scheduler) snapshot() (metadata.DelayOffsets, messages.PhysicalOffset) {
	table := metadata.DelayOffsets{Offsets: map[int]int64{}, Unknown: s.file.Unknown}
	for number, at := range s.file.Offsets {
		table.Offsets[number] = at
	}
	var delivered messages.PhysicalOffset
	for _, l := range *s.levels.Load() {
		at := l.offset.Load() // before end, which then covers it
		delivered = max(delivered, messages.PhysicalOffset(l.end.Load()))
		if _, known := table.Offsets[l.number]; known || at > 0 {
			table.Offsets[l.number] = at
		}
	}
	return table, delivered
}

// write makes what was delivered durable, and then the offsets that say so: the other way round a power cut could lose a
// message.
func (s *Scheduler) write(table metadata.DelayOffsets, delivered messages.PhysicalOffset) error {
	if delivered > 0 {
		answer := messages.NewAnswer[messages.PhysicalOffset]()
		s.cfg.Flusher.Send(messages.FlushNow{Answer: answer})
		ctx, cancel := context.WithTimeout(s.stopped, flushTimeout)
		defer cancel()
		flushed, err := answer.Wait(ctx)
		if err != nil {
			return fmt.Errorf("flush what was delivered before its offsets are saved: %w", err)
		}
		if flushed < delivered {
			return fmt.Errorf("the log is durable up to %d, delivered is %d: delay offsets are not saved", flushed, delivered)
		}
	}
	if err := metadata.Save(s.cfg.Disk, s.cfg.Path, table); err != nil {
		return fmt.Errorf("delay offsets are not saved: %w", err)
	}
	return nil
}

func (s *Scheduler) saveDone(err error) {
	s.saving = false
	done := s.whole
	s.whole = nil
	if err != nil {
		s.cfg.Logger.Error().Err(err).Msg("saving delay offsets failed")
		s.dirty = true
		if !errors.Is(err, messages.ErrFailed) { // else it would fail for ever
			s.armTick()
		}
	}
	done(err)
}
