package storebackup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"

	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/store"
)

// listName is the file with the checksums.
const listName = "backup.json"

// promotedName is the file that says that a slave was promoted; a store that is restored still is its own master.
const promotedName = "promoted.json"

// list is what backup.json holds.
type list struct {
	Source   string            `json:"source"`
	Segments map[string]string `json:"segments"` // commit-log files that will not change: their SHA-256
	// Last is the same of the others, of which there may be more in the store by now: as the recovery of the copy has left them.
	Last map[string]string `json:"last,omitempty"`
	// LogEnd is where the log of the last copy that was finished ends, as logEnd finds it; 0: not known.
	LogEnd int64 `json:"logEnd,omitempty"`
	// Begun tells runs apart: when the last one began, in ns since 1970.
	Begun int64 `json:"begun,omitempty"`
	// Unfinished: the copy has not all yet, or is not recovered.
	Unfinished bool `json:"unfinished,omitempty"`

	failed error // of writing the list while the copy is recovered
}

func readList(dir string) (list, error) {
	l := list{Segments: map[string]string{}}
	text, err := os.ReadFile(filepath.Join(dir, listName))
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

// goesOn fails when a run has begun in a folder since the list was read, or written.
func (l *list) goesOn(dir string) error {
	now, err := readList(dir)
	if err == nil && now.Begun != l.Begun {
		err = fmt.Errorf("%s: %w: another one has begun there", dir, ErrUnfinished)
	}
	return err
}

// dropChanged hears the recovery of a copy, and forgets the checksums of files that it is about to change, before it does: if it ends there the next run
// must not take what it has left for what was copied.
func (l *list) dropChanged(p store.Params, dir string) func(store.Event) {
	return func(e store.Event) {
		from, to := e.From, e.To
		switch e.What {
		case store.FoundHole:
		case store.RemovedSegment: // the one in front may be cut next
			start, _ := segments.ParseName(filepath.Base(e.Path)) // the store's own name of it
			from, to = start-1, math.MaxInt64
		default:
			return
		}
		before := len(l.Segments)
		maps.DeleteFunc(l.Segments, func(name, _ string) bool {
			start, err := segments.ParseName(name)
			return err != nil || start < to && start+p.SegmentBytes > from
		})
		if len(l.Segments) != before {
			l.failed = errors.Join(l.failed, l.write(dir))
		}
	}
}

// sumLast takes the checksums of the files that Segments does not have, of a copy that is whole, and notes where its log ends.
func (l *list) sumLast(ctx context.Context, p store.Params, dir string) error {
	p.Dir = dir
	names, err := segmentNames(p)
	if err = errors.Join(err, l.failed); err != nil {
		return err
	}
	if l.LogEnd, err = logEnd(p); err != nil {
		return err
	}
	l.Last = map[string]string{}
	for _, name := range names {
		if l.Segments[name] != "" {
			continue
		}
		if l.Last[name], err = sumFile(ctx, filepath.Join(dir, logName, name)); err != nil {
			return err
		}
	}
	return nil
}

// sum is the checksum of a file of the log, empty when none was taken.
func (l *list) sum(name string) string { return cmp.Or(l.Segments[name], l.Last[name]) }

// write replaces the file as a whole.
func (l list) write(dir string) error {
	text, err := json.MarshalIndent(l, "", " ")
	if err != nil {
		return err
	}
	name := filepath.Join(dir, listName)
	f, err := os.Create(name + ".tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.Rename(name+".tmp", name); err != nil {
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
