package storebackup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"

	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/checkpoint"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
)

// listName is the file with the checksums.
const listName = "backup.json"

// list is what backup.json holds.
type list struct {
	Source   string            `json:"source"`
	Segments map[string]string `json:"segments"` // commit-log files that will not change: their SHA-256
	// Last is the same of the others, of which there may be more in the store by now: as the recovery of the copy has left them, or as they are
	// when they are copied up to LogEnd. Empty: not known, for the copy may be half recovered, or they are gone with what was cut.
	Last map[string]string `json:"last,omitempty"`
	// Mended are files in which the recovery of the copy has closed damage: the next run puts there again what the store has.
	Mended []string `json:"mended,omitempty"`
	// LogEnd is where the log of the last copy ends that is whole, as logEnd finds it; 0: not known.
	LogEnd int64 `json:"logEnd,omitempty"`
	// First is the first file of its log; empty: whichever there is.
	First string `json:"first,omitempty"`
	// Begun tells runs apart: when the last one began, in ns since 1970.
	Begun int64 `json:"begun,omitempty"`
	// Unfinished: the last run has not all yet, or the copy is not recovered.
	Unfinished bool `json:"unfinished,omitempty"`
	// Whole: what the copy has up to LogEnd is whole though the run is unfinished: it is that of the run before, or is not recovered only.
	Whole bool `json:"whole,omitempty"`
	// Staged are the names in the folder nextName that take, or have taken, the place of those beside it, when the last run
	// has all and is to put it there; nil: it is not.
	Staged []string `json:"staged"`
}

func readList(disk vfs.Disk, dir string) (list, error) {
	l := list{Segments: map[string]string{}}
	text, err := readFile(disk, path.Join(dir, listName))
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err != nil {
		return l, fmt.Errorf("read the checksums of the backup in %s: %w", dir, err)
	}
	if l.Segments == nil {
		l.Segments = map[string]string{}
	}
	return l, nil
}

func readFile(disk vfs.Disk, name string) ([]byte, error) {
	f, err := disk.Open(name, false)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	text := make([]byte, size)
	if err == nil {
		_, err = f.ReadAt(text, 0)
	}
	if errors.Is(err, io.EOF) { // it is empty
		err = nil
	}
	return text, errors.Join(err, f.Close())
}

// goesOn fails when a run has begun in a folder since the list was read, or written.
func (l *list) goesOn(disk vfs.Disk, dir string) error {
	now, err := readList(disk, dir)
	if err == nil && now.Begun != l.Begun {
		err = fmt.Errorf("%s: %w: another one has begun there", dir, ErrUnfinished)
	}
	return err
}

// stays fails when the list has changed since it was read.
func (l *list) stays(disk vfs.Disk, dir string) error {
	now, err := readList(disk, dir)
	if err == nil && !reflect.DeepEqual(now, *l) {
		err = fmt.Errorf("%s: %w: one was being taken there", dir, ErrUnfinished)
	}
	return err
}

// changing is asked by the recovery of a copy before it changes a part of its log, and forgets the checksums of the files before it does: if it ends
// there the next run must not take what it has left for what was copied. Nothing is changed that could not be noted.
func (l *list) changing(p store.Params, disk vfs.Disk, dir string) func(store.Finding, store.Span) error {
	return func(what store.Finding, part store.Span) error {
		mends, noted := what == store.ClosedHole || what == store.ClosedGap, true
		for _, name := range l.names() {
			start, err := segments.ParseName(name)
			if err == nil && (start >= int64(part.To) || start+p.SegmentBytes <= int64(part.From)) {
				continue
			}
			if mends && !slices.Contains(l.Mended, name) {
				l.Mended, noted = append(l.Mended, name), false
			}
			noted = noted && l.Segments[name] == "" && l.Last[name] == ""
			delete(l.Segments, name)
			l.Last[name] = ""
		}
		if noted {
			return nil
		}
		return l.write(disk, dir)
	}
}

// names are the files of the log that were copied.
func (l *list) names() []string {
	all := maps.Clone(l.Segments)
	maps.Copy(all, l.Last)
	return slices.Sorted(maps.Keys(all))
}

// sumLast takes the checksums of the files that Segments does not have, of a copy that is whole, and notes where its log ends.
func (l *list) sumLast(ctx context.Context, disk vfs.Disk, p store.Params, dir string) error {
	p.Dir = dir
	names, err := segmentNames(disk, p)
	if err != nil {
		return err
	}
	if l.LogEnd, err = logEnd(disk, p); err != nil {
		return err
	}
	l.Last = map[string]string{}
	for _, name := range names {
		if l.Segments[name] != "" {
			continue
		}
		if l.Last[name], err = sumFile(ctx, disk, path.Join(dir, logName, name)); err != nil {
			return err
		}
	}
	return nil
}

// knows tells whether a file of the log is one that was copied, and is as it was then.
func (l *list) knows(name string) bool {
	_, last := l.Last[name]
	return (last || l.Segments[name] != "") && !slices.Contains(l.Mended, name)
}

// isSum tells whether a file of the log has a checksum that was taken of it, or there is none. Cut: of a file that is not copied to its end.
func (l *list) isSum(name, sum string, cut bool) bool {
	whole, last := l.Segments[name], l.Last[name]
	if cut {
		whole = ""
	}
	return whole == "" && last == "" || sum == whole || sum == last
}

// write replaces the file as a whole. When it returns nil that survives a power cut.
func (l *list) write(disk vfs.Disk, dir string) error {
	text, err := json.MarshalIndent(l, "", " ")
	if err == nil {
		err = checkpoint.Replace(disk, path.Join(dir, listName), append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write the checksums of the backup: %w", err)
	}
	return nil
}
