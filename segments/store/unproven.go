package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/checkpoint"
	"github.com/actormq/actormq/segments/vfs"
)

// ErrUnproven: after a failed sync, what lies behind the last good one could not be copied to new files. The store stays
// closed, as it is; it can be read with `actormq store dump`.
var ErrUnproven = errors.New("the log could not be made durable after a failed sync")

// UnprovenPath is the marker that a sync of the log has failed, with the offset below which everything is durable. RocketMQ
// ignores it.
func (p Params) UnprovenPath() string { return path.Join(p.Dir, "unproven") }

// MarkUnproven notes that a sync of the commit log has failed: what lies at flushed and behind it may be in the page cache
// only, and a kernel says so just once. The next Open copies it to new files. When it returns nil the marker survives a power cut.
func MarkUnproven(disk vfs.Disk, p Params, flushed messages.PhysicalOffset, cause error) error {
	if err := mark(disk, p.UnprovenPath(), flushed, cause); err != nil {
		return fmt.Errorf("mark the log as unproven from %d on: %w", flushed, err)
	}
	return nil
}

// mark makes a marker say that what it is about is in doubt from a place on, or from further back if it says so already. When it returns nil
// that survives a power cut. Otherwise the next start on the same machine finds it all the same, if the disk has taken anything: where one sync fails, others do.
func mark(disk vfs.Disk, name string, from messages.PhysicalOffset, cause error) error {
	text, there, err := replaceMarker(disk, name, from, cause)
	if err != nil && !there {
		_ = writeMarker(disk, name, text) // as good as can be: the caller is told of err
	}
	return err
}

// note is mark for what has not begun: when it fails, the marker that was there is as it was. A disk without room for its text often has some for a
// name: a marker without a number means everything.
func note(disk vfs.Disk, name string, from messages.PhysicalOffset, cause error) error {
	_, _, err := replaceMarker(disk, name, from, cause)
	if !errors.Is(err, vfs.ErrNoSpace) {
		return err
	}
	f, noName := disk.Create(name)
	if noName != nil {
		return err
	}
	return errors.Join(f.Close(), disk.SyncDir(path.Dir(name)))
}

// replaceMarker makes a marker anew, durably, and tells what it is to say, and whether one was there that says it. That one is made anew too, as
// what can be read of it need not be on the disk: in its place when there is no room for another.
func replaceMarker(disk vfs.Disk, name string, from messages.PhysicalOffset, cause error) (text []byte, there bool, err error) {
	was, err := readUnproven(disk, name)
	if there = err == nil && was <= from; there {
		from = was
	}
	text = fmt.Appendf(nil, "%d\n%v\n", from, cause)
	err = checkpoint.Replace(disk, name, text)
	if there && errors.Is(err, vfs.ErrNoSpace) {
		err = rewriteMarker(disk, name)
	}
	return text, there, err
}

// rewriteMarker makes durable what can be read of a marker: the same bytes are written into their place, which takes no room.
func rewriteMarker(disk vfs.Disk, name string) error {
	f, err := disk.Open(name, true)
	if err != nil {
		return err
	}
	var text [markerBytes]byte
	n, err := readMarker(f, text[:])
	if err == nil {
		_, err = f.WriteAt(text[:n], 0)
	}
	if err == nil {
		err = f.DataSync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return disk.SyncDir(path.Dir(name))
}

// writeMarker writes a marker into its place, without a promise: a part of it means more than all of it does.
func writeMarker(disk vfs.Disk, name string, text []byte) error {
	f, err := disk.Open(name, true)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = disk.Create(name)
	}
	if err != nil {
		return err
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt(text, 0)
	}
	return errors.Join(err, f.Close())
}

// readUnproven reads a marker: from where on what it is about is in doubt. One whose number cannot be read means all of it. Without a
// marker the error wraps fs.ErrNotExist.
func readUnproven(disk vfs.Disk, name string) (messages.PhysicalOffset, error) {
	f, err := disk.Open(name, false)
	if err != nil {
		return 0, err
	}
	var text [markerBytes]byte
	n, err := readMarker(f, text[:])
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	var from messages.PhysicalOffset
	if _, err := fmt.Sscanf(string(text[:n]), "%d\n", &from); err != nil || from < 0 {
		from = 0
	}
	return from, nil
}

// markerBytes is how much of a marker is read: its number, and a line's end.
const markerBytes = 32

func readMarker(f vfs.File, b []byte) (int, error) {
	n, err := f.ReadAt(b, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// proveLog makes the log durable that a failed sync has left in doubt, before anybody opens it: each segment that reaches
// behind the last good flush is copied to a new file, which is synced and takes its place. It may be interrupted
// anywhere; the marker goes last.
func (s *Store) proveLog() error {
	place, err := readUnproven(s.Disk, s.Params.UnprovenPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	from := int64(place)
	if s.scratch {
		s.tell(Event{What: FoundUnproven, Path: s.Params.UnprovenPath(), From: from})
		return nil
	}
	entries, err := vfs.ListIfThere(s.Disk, s.Params.CommitLogDir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		start, err := segments.ParseName(e.Name)
		if err != nil || e.Size != s.Params.SegmentBytes || start+e.Size <= from {
			continue
		}
		if err := s.proveSegment(e.Name); err != nil {
			return fmt.Errorf("%w: from %d on: %w", ErrUnproven, from, err)
		}
		s.tell(Event{What: FoundUnproven, Path: path.Join(s.Params.CommitLogDir, e.Name), From: from})
	}
	return checkpoint.ClearAbort(s.Disk, s.Params.UnprovenPath())
}

// proveSegment puts a synced copy in the place of a segment.
func (s *Store) proveSegment(name string) error {
	dir := path.Join(path.Dir(s.Params.CommitLogDir), "prepare")
	fresh, final := path.Join(dir, name), path.Join(s.Params.CommitLogDir, name)
	if err := s.Disk.MkdirAll(dir); err != nil {
		return err
	}
	if err := vfs.RemoveIfThere(s.Disk, fresh); err != nil {
		return err
	}
	if err := s.copyFile(fresh, final); err != nil {
		return err
	}
	if err := s.Disk.Rename(fresh, final); err != nil {
		return err
	}
	return s.Disk.SyncDir(s.Params.CommitLogDir)
}

func (s *Store) copyFile(fresh, from string) error {
	in, err := s.Disk.Open(from, false)
	if err != nil {
		return err
	}
	out, err := s.Disk.Create(fresh)
	if err != nil {
		return errors.Join(err, in.Close())
	}
	err = copyContent(out, in, s.Params.SegmentBytes)
	if err == nil {
		err = out.DataSync()
	}
	return errors.Join(err, out.Close(), in.Close())
}

// copyContent copies what is not zero.
func copyContent(out, in vfs.File, size int64) error {
	if err := out.Allocate(0, size); err != nil {
		return err
	}
	buf := make([]byte, min(size, 1<<20))
	for at := int64(0); at < size; at += int64(len(buf)) {
		b := buf[:min(int64(len(buf)), size-at)]
		if n, err := in.ReadAt(b, at); n < len(b) {
			return err
		}
		if zeros(b) == len(b) {
			continue
		}
		if _, err := out.WriteAt(b, at); err != nil {
			return err
		}
	}
	return nil
}
