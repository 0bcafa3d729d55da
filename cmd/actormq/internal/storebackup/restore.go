package storebackup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"

	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/checkpoint"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
)

// Restore copies a backup to a directory that is empty or not there, after it has compared the commit-log files with their checksums. The
// log gets its name at last: a node does not start on a part of it (store.ErrNoLog). Of a backup that was not finished it takes the last moment of
// which the backup has all, and ErrUnfinished says that there is none.
func Restore(ctx context.Context, disk vfs.Disk, p store.Params, to string, tell Progress) (Done, error) {
	l, err := readWhole(disk, p.Dir)
	if err != nil {
		return Done{}, err
	}
	if err := isStore(disk, p.Dir); err != nil {
		return Done{}, err
	}
	if err := isEmpty(disk, to); err != nil {
		return Done{}, err
	}
	if err := disk.MkdirAll(to); err != nil {
		return Done{}, err
	}
	if err := checkpoint.SetAbort(disk, store.Params{Dir: to}.AbortPath()); err != nil {
		return Done{}, err
	}
	for _, name := range beside {
		from, err := l.place(disk, p.Dir, name)
		if err == nil && from != "" {
			err = copyAnew(ctx, disk, from, path.Join(to, name))
		}
		if err != nil {
			return Done{}, err
		}
	}
	if err := disk.SyncDir(to); err != nil {
		return Done{}, err
	}
	done, err := restoreLog(ctx, disk, p, to, &l, tell)
	if err != nil {
		return done, err
	}
	return done, recoverCopy(disk, p, to, &done, nil)
}

// IsWhole refuses with ErrUnfinished a backup of which no run had all, however little it has.
func IsWhole(disk vfs.Disk, dir string) error {
	_, err := readWhole(disk, dir)
	return err
}

func readWhole(disk vfs.Disk, dir string) (list, error) {
	l, err := readList(disk, dir)
	if err == nil && l.Unfinished && !l.Whole && l.Staged == nil {
		err = fmt.Errorf("%s: %w: actormq store backup %s %s goes on with it; without that store a node can be started on what there is",
			dir, ErrUnfinished, l.Source, dir)
	}
	return l, err
}

// place is where a backup has what belongs beside the log by a name; empty: it has none.
func (l *list) place(disk vfs.Disk, dir, name string) (string, error) {
	at := path.Join(dir, name)
	if l.Staged == nil {
		return at, nil
	}
	if !slices.Contains(l.Staged, name) {
		return "", nil
	}
	next := path.Join(dir, nextName, name)
	_, err := disk.Stat(next)
	switch {
	case err == nil:
		return next, nil
	case errors.Is(err, fs.ErrNotExist):
		return at, nil
	}
	return "", err
}

// isEmpty tells whether a store can be restored to a folder. A file system of its own has lost+found.
func isEmpty(disk vfs.Disk, dir string) error {
	entries, err := vfs.ListIfThere(disk, dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch e.Name {
		case "lost+found":
		case path.Base(store.Params{Dir: dir}.AbortPath()):
			if _, err := disk.Stat(path.Join(dir, logName)); errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%s has %s and no %s, as a restore that was interrupted leaves it: %w: delete it, and restore again", dir, e.Name,
					logName, ErrNotEmpty)
			}
			fallthrough
		default:
			return fmt.Errorf("%s has %s: %w", dir, e.Name, ErrNotEmpty)
		}
	}
	return nil
}

// restoreLog copies the commit log, and gives its folder the name once all of it is there.
func restoreLog(ctx context.Context, disk vfs.Disk, p store.Params, to string, l *list, tell Progress) (done Done, err error) {
	names, end, err := l.logOf(disk, p)
	if err != nil {
		return Done{}, err
	}
	done.Unfinished = l.Unfinished
	part := path.Join(to, logName+".part")
	if err := disk.Mkdir(part); err != nil {
		return Done{}, err
	}
	for i, name := range names {
		tell.files(i, len(names), p.SegmentBytes)
		start, err := segments.ParseName(name)
		if err != nil {
			return done, err
		}
		n := min(end-start, p.SegmentBytes)
		sum, err := copyFile(ctx, disk, path.Join(p.Dir, logName, name), path.Join(part, name), n)
		if err == nil && !l.isSum(name, sum, n < p.SegmentBytes) {
			err = fmt.Errorf("%s: %w", name, ErrChecksum)
		}
		if err != nil {
			return done, err
		}
		done.Segments, done.Copied = done.Segments+1, done.Copied+1
	}
	if err := errors.Join(disk.SyncDir(part), l.stays(disk, p.Dir)); err != nil { // a backup that has begun meanwhile may have replaced what was copied
		return done, err
	}
	return done, disk.Rename(part, path.Join(to, logName)) // durable with what the recovery makes beside it
}

// logOf are the files of a backup's log that are to be restored, and the physical offset up to which: of one that was not finished those of the last
// moment of which it has all.
func (l *list) logOf(disk vfs.Disk, p store.Params) (names []string, end int64, err error) {
	if end = math.MaxInt64; l.Unfinished {
		end = l.LogEnd
	}
	is := func(name string) bool {
		start, err := segments.ParseName(name)
		return err == nil && start < end && name >= l.First
	}
	all, err := segmentNames(disk, p)
	for _, name := range all {
		if is(name) {
			names = append(names, name)
		}
	}
	for _, sums := range []map[string]string{l.Segments, l.Last} {
		for name, sum := range sums {
			if sum != "" && is(name) && !slices.Contains(names, name) {
				err = errors.Join(err, fmt.Errorf("%s is missing: %w", name, ErrChecksum))
			}
		}
	}
	return names, end, err
}
