package store

import (
	"errors"
	"fmt"

	"github.com/actormq/actormq/segments/checkpoint"
	"github.com/actormq/actormq/segments/index"
	"github.com/actormq/actormq/segments/vfs"
)

// ErrNoAbort: there is no room for the marker of an open store, and without it nothing may be written.
var ErrNoAbort = errors.New("the marker of an open store can't be made")

// ErrNoNote: there is no room for what the next start has to know before recovery cuts consume queues or index, or builds them again, when nothing of
// them was changed, or after a sync of queues that has failed.
var ErrNoNote = errors.New("what is about to happen to consume queues or index can't be noted")

// lowBytes is how little room is hardly any: what recovery writes is mostly less.
const lowBytes = 16 << 20

// giveUpBallast makes room for what recovery has to write.
func (s *Store) giveUpBallast() error {
	if s.options.Ballast == "" || s.overlay != nil {
		return nil
	}
	u, err := s.Disk.Usage(s.Params.Dir)
	if err != nil || u.FreeBytes >= lowBytes {
		return nil //nolint:nilerr // unknown: a full disk shows itself
	}
	if err := vfs.RemoveIfThere(s.Disk, s.options.Ballast); err != nil {
		return fmt.Errorf("make room for the recovery: %w", err)
	}
	return nil
}

// setAbort makes the marker of a store that is open.
func (s *Store) setAbort() error {
	return s.must(ErrNoAbort, s.Params.AbortPath(), func() error { return checkpoint.SetAbort(s.Disk, s.Params.AbortPath()) })
}

// must writes a small file without which recovery may not go on. The ballast goes for it when there is no room otherwise.
func (s *Store) must(refusal error, name string, write func() error) error {
	err := write()
	if errors.Is(err, vfs.ErrNoSpace) && s.options.Ballast != "" && s.Disk.Remove(s.options.Ballast) == nil {
		err = write()
	}
	if errors.Is(err, vfs.ErrNoSpace) {
		return fmt.Errorf("%w: make room for %s, one small file, and start again: %w", refusal, name, err)
	}
	return err
}

// room lets recovery go on when the disk is full: nothing of what it could not write is lost, since all of it stands in the
// log, and what does not was noted. Units stay in memory until there is room; the checkpoint stays as it was.
func (s *Store) room(err error) error {
	if err == nil || !errors.Is(err, vfs.ErrNoSpace) {
		return err
	}
	s.unwritten = true
	s.tell(Event{What: NoRoom, Path: s.Params.Dir, Err: err})
	return nil
}

// indexOrNone does without the index, until the next start, when there is no room for it.
func (s *Store) indexOrNone(err error) error {
	if err == nil || !errors.Is(err, vfs.ErrNoSpace) {
		return err
	}
	s.tell(Event{What: NoRoom, Path: s.Params.IndexDir(), Err: err})
	given := s.Index
	s.Index = nil
	if err = given.Close(); errors.Is(err, index.ErrFailed) {
		return s.indexUnproven(err) // it was a sync that has said so: what can be read of the files is not what the disk holds
	}
	return err
}

// LeaveIndex gives an index up that lacks records at its end: the next start makes it complete.
func (s *Store) LeaveIndex() error {
	index := s.Index
	s.Index = nil
	if err := index.Close(); err != nil {
		return fmt.Errorf("leave the index: %w", err)
	}
	return nil
}

// syncRecovered makes durable what recovery has built, as far as there is room.
func (s *Store) syncRecovered(p *Plan) error {
	if err := s.syncQueues(p); err != nil {
		if noted := s.noteUnsynced(p, err); noted != nil {
			return noted
		}
		if err := s.room(err); err != nil {
			return err
		}
	}
	return s.indexOrNone(s.syncIndex())
}

// reserveTail makes room for what will be appended to the last segment: RocketMQ makes files with holes, and so does a tool that
// copies them. Without room the store opens all the same, and the writer waits for the room: it may not touch a page that the disk has none for.
func (s *Store) reserveTail() error {
	seg := s.Log.View().Last()
	if seg == nil || s.scratch || seg.Wrote() == seg.Size() {
		return nil
	}
	err := seg.Reserve(seg.Wrote(), seg.Size()-seg.Wrote())
	if errors.Is(err, vfs.ErrNoSpace) {
		s.tell(Event{What: NoRoom, Path: seg.Path(), From: seg.Start() + seg.Wrote(), To: seg.Start() + seg.Size(), Err: err})
		s.TailShort = err
		return nil
	}
	return err
}
