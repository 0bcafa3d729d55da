package storebackup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

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
	// Unfinished: the copy has not all yet, or is not recovered.
	Unfinished bool `json:"unfinished,omitempty"`
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

// keep forgets the files that the log has no more, and writes the list.
func (l *list) keep(dir string, names []string) error {
	for name := range l.Segments {
		if !slices.Contains(names, name) {
			delete(l.Segments, name)
		}
	}
	return l.write(dir)
}

// sumLast takes the checksums of the files that Segments does not have, of a copy that is whole.
func (l *list) sumLast(ctx context.Context, p store.Params, dir string) error {
	p.Dir = dir
	names, err := segmentNames(p)
	if err != nil {
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
