package store

import (
	"errors"
	"path"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
)

// UnprovenIndexPath is the marker that the index is not complete, or not what it was: its number is the physical offset from which on a start was
// building it again that has not said that it is done. RocketMQ ignores it; so it counts whoever has closed the store since, and however.
func (p Params) UnprovenIndexPath() string { return path.Join(p.Dir, "unprovenindex") }

// errIndexing is what the marker of an index says that is not complete.
var errIndexing = errors.New("the index was being built again")

// loadIndexDoubt reads the marker, also for a store that is opened without an index: it stays for one with.
func (s *Store) loadIndexDoubt() error {
	s.indexDoubt = doubt{disk: s.Disk, path: s.Params.UnprovenIndexPath(), what: "index"}
	if err := s.indexDoubt.load(); err != nil {
		return err
	}
	if s.Index != nil && s.indexDoubt.from != proven {
		s.tell(Event{What: UnprovenIndex, Path: s.indexDoubt.path, From: int64(min(s.indexDoubt.from, s.Log.End()))})
	}
	return nil
}

// noteNewIndex makes durable that the index is to be built again, where nothing else would tell the next start: before the marker of an open store,
// as after that nobody asks what a clean stop has left.
func (s *Store) noteNewIndex(p *Plan) error {
	if s.Index == nil || !p.Index.Anew {
		return nil
	}
	return s.must(ErrNoNote, s.indexDoubt.path, func() error { return s.indexDoubt.note(p.Index.Doubt, errIndexing) })
}

// noteIndex does it where the index shows by itself that it lacks something: before anything goes, as a file that could not be read may be readable
// for the next start, and before anything is built that the checkpoint would vouch for, as it does for what was there. Without room for a note there
// is no index until the next start, which finds the same.
func (s *Store) noteIndex(p *Plan) error {
	switch {
	case p.Index.Anew || p.Index.Doubt == proven:
		return nil
	case s.Index == nil:
		return s.noteUnused(p)
	}
	return s.indexOrNone(s.indexDoubt.note(p.Index.Doubt, errIndexing))
}

// noteUnused keeps for a later start with an index that this one, which is without, has not cut it, as it would after an unclean stop.
func (s *Store) noteUnused(p *Plan) error {
	files, err := vfs.ListIfThere(s.Disk, s.Params.IndexDir())
	if err != nil || len(files) == 0 {
		return err
	}
	_, err = s.markIndex(p.Index.Doubt, errIndexing) // who does without an index gets the store also without room
	return err
}

// markIndex marks the index as unproven from a record on. Without room for that the stop owes it, and is none that counts as clean if it has none either.
func (s *Store) markIndex(from messages.PhysicalOffset, cause error) (noRoom, err error) {
	mark := func() error { return s.indexDoubt.mark(from, cause) }
	if err = mark(); errors.Is(err, vfs.ErrNoSpace) {
		s.indexOwed = mark
		return err, nil
	}
	return nil, err
}

// indexUnproven notes that a sync of the index has failed that is given up for that.
func (s *Store) indexUnproven(cause error) error {
	noRoom, err := s.markIndex(0, cause)
	if noRoom != nil && s.options.OnUnmarked != nil {
		s.options.OnUnmarked(errors.Join(noRoom, cause))
	}
	return err
}

// settleIndex takes the marker away once all of the index is durable.
func (s *Store) settleIndex() error {
	if s.Index == nil || !s.indexDurable {
		return nil
	}
	return s.indexDoubt.clear()
}
