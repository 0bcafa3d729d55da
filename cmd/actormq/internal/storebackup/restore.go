package storebackup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/actormq/actormq/segments/store"
)

// Restore copies a backup to a directory that is empty or not there, after it has compared the commit-log files with their checksums. The
// log gets its name at last: a node does not start on a part of it (store.ErrNoLog).
func Restore(ctx context.Context, p store.Params, to string, tell Progress) (Done, error) {
	l, err := readFinished(p.Dir)
	if err != nil {
		return Done{}, err
	}
	if err := isStore(p.Dir); err != nil {
		return Done{}, err
	}
	if err := isEmpty(to); err != nil {
		return Done{}, err
	}
	if err := copyAround(ctx, p.Dir, to); err != nil {
		return Done{}, err
	}
	done, err := restoreLog(ctx, p, to, &l, tell)
	if err != nil {
		return done, err
	}
	return done, recoverCopy(p, to, &done, nil)
}

// IsFinished refuses with ErrUnfinished a backup that was ended before it had all, however little it has.
func IsFinished(dir string) error {
	_, err := readFinished(dir)
	return err
}

func readFinished(dir string) (list, error) {
	l, err := readList(dir)
	if err == nil && l.Unfinished {
		err = fmt.Errorf("%s: %w: actormq store backup %s %s goes on with it; without that store a node can be started on what there is",
			dir, ErrUnfinished, l.Source, dir)
	}
	return l, err
}

// isEmpty tells whether a store can be restored to a folder. A file system of its own has lost+found.
func isEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		switch e.Name() {
		case "lost+found":
		case filepath.Base(store.Params{Dir: dir}.AbortPath()):
			if _, err := os.Lstat(filepath.Join(dir, logName)); errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("%s has %s and no %s, as a restore that was interrupted leaves it: %w: delete it, and restore again", dir, e.Name(),
					logName, ErrNotEmpty)
			}
			fallthrough
		default:
			return fmt.Errorf("%s has %s: %w", dir, e.Name(), ErrNotEmpty)
		}
	}
	return nil
}

// restoreLog copies the commit log, and gives its folder the name once all of it is there.
func restoreLog(ctx context.Context, p store.Params, to string, l *list, tell Progress) (done Done, err error) {
	names, err := segmentNames(p)
	if err != nil {
		return Done{}, err
	}
	for _, sums := range []map[string]string{l.Segments, l.Last} {
		for name := range sums {
			if !slices.Contains(names, name) {
				return Done{}, fmt.Errorf("%s is missing: %w", name, ErrChecksum)
			}
		}
	}
	part := filepath.Join(to, logName+".part")
	if err := os.Mkdir(part, 0o750); err != nil {
		return Done{}, err
	}
	for i, name := range names {
		tell.files(i, len(names), p.SegmentBytes)
		sum, err := copyFile(ctx, filepath.Join(p.Dir, logName, name), filepath.Join(part, name), -1)
		if want := l.sum(name); err == nil && want != "" && want != sum {
			err = fmt.Errorf("%s: %w", name, ErrChecksum)
		}
		if err != nil {
			return done, err
		}
		done.Segments, done.Copied = done.Segments+1, done.Copied+1
	}
	if err := errors.Join(syncDir(part), l.goesOn(p.Dir)); err != nil { // a backup that has begun meanwhile has replaced what was copied
		return done, err
	}
	return done, errors.Join(os.Rename(part, filepath.Join(to, logName)), syncDir(to))
}
