package storebackup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
)

// logName is the folder of the commit log below a store, or a copy.
const logName = "commitlog"

// copyLog copies the commit log: whole files that the last run has are kept, the last one is copied up to its last whole record.
func copyLog(ctx context.Context, p store.Params, to string, l *list, tell Progress) (Done, error) {
	names, end, err := written(p)
	if err != nil {
		return Done{}, err
	}
	if err := l.expire(to, names); err != nil {
		return Done{}, err
	}
	if err := os.MkdirAll(filepath.Join(to, logName), 0o750); err != nil {
		return Done{}, err
	}
	var done Done
	last := len(names) - 1
	for i, name := range names {
		tell.files(i, len(names), p.SegmentBytes)
		from, copied := filepath.Join(p.Dir, logName, name), filepath.Join(to, logName, name)
		if _, err := os.Stat(copied); l.Segments[name] != "" && err == nil {
			continue
		}
		n := int64(-1)
		if i == last {
			n = end
		}
		sum, err := copyFile(ctx, from, copied, n)
		if errors.Is(err, fs.ErrNotExist) && i < last { // it has expired, and so has what was in front of it
			done.Copied = 0
			if err := l.expire(to, names[i+1:]); err != nil {
				return done, err
			}
			continue
		}
		if err != nil {
			return done, err
		}
		done.Copied++
		if i < last {
			l.Segments[name] = sum
			if err := l.write(to); err != nil {
				return done, err
			}
		}
	}
	p.Dir = to
	all, err := segmentNames(p)
	done.Segments = len(all)
	return done, errors.Join(err, syncDir(filepath.Join(to, logName)))
}

// expire removes what the store has no more, and nothing else but parts of copies: a file that it lacks behind its first one is lost there, and the copy
// of it may be the only one.
func (l *list) expire(to string, names []string) error {
	maps.DeleteFunc(l.Segments, func(name, _ string) bool { return len(names) == 0 || name < names[0] })
	keep := append(slices.Collect(maps.Keys(l.Segments)), names...)
	return errors.Join(removeOthers(filepath.Join(to, logName), keep), l.write(to))
}

// losesNothing refuses to copy a store over a backup that has messages which the store has not: one that was begun anew on an empty disk, or
// whose log has lost its end. What a node has stored that was started on the backup is lost too.
func (l *list) losesNothing(p store.Params, to string) error {
	end, err := logEnd(p)
	if err != nil {
		return err
	}
	has := l.LogEnd
	for name := range l.Segments {
		if start, err := segments.ParseName(name); err == nil {
			has = max(has, start+p.SegmentBytes)
		}
	}
	if end < has {
		return fmt.Errorf("%w: the log of %s ends at %d, that of %s at %d: name another folder", ErrLoses, p.Dir, end, to, has)
	}
	if other, err := l.isOfAnother(p, to); other || err != nil {
		return cmp.Or(err, fmt.Errorf("%w: the log of %s does not begin as that of %s: name another folder", ErrLoses, p.Dir, to))
	}
	if l.LogEnd == 0 || l.Unfinished {
		return nil
	}
	p.Dir = to
	if end, err = logEnd(p); err == nil && end > l.LogEnd {
		err = fmt.Errorf("%w: the log of %s ended at %d, and ends at %d, as when a node runs there: name another folder", ErrLoses, to, l.LogEnd, end)
	}
	return err
}

// isOfAnother tells whether a backup is of another store: no file of it begins as that of the store does.
func (l *list) isOfAnother(p store.Params, to string) (other bool, err error) {
	names, err := segmentNames(p)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if l.sum(name) == "" {
			continue
		}
		is, err := firstBytes(filepath.Join(p.Dir, logName, name))
		was, copyErr := firstBytes(filepath.Join(to, logName, name))
		switch err = errors.Join(err, copyErr); {
		case errors.Is(err, fs.ErrNotExist) || err == nil && was == [64]byte{}: // there was no record
		case err != nil:
			return false, err
		case is == was:
			return false, nil
		default:
			other = true
		}
	}
	return other, nil
}

// firstBytes are those of a file's first record up to its store timestamp, which no two have in common.
func firstBytes(name string) (b [64]byte, err error) {
	f, err := os.Open(name)
	if err != nil {
		return b, err
	}
	_, err = f.ReadAt(b[:], 0)
	return b, errors.Join(err, f.Close())
}

// logEnd is the physical offset behind the last record of a log, or behind a file that is damaged.
func logEnd(p store.Params) (int64, error) {
	names, end, err := written(p)
	if err != nil || len(names) == 0 {
		return 0, err
	}
	start, err := segments.ParseName(names[len(names)-1])
	return start + end, err
}

// written are the files of the log that have records, the first one in any case, and where the last record of the last one ends.
func written(p store.Params) (names []string, end int64, err error) {
	if names, err = segmentNames(p); err != nil || len(names) == 0 {
		return nil, 0, err
	}
	last := len(names) - 1
	for ; last >= 0; last-- { // RocketMQ prepares files behind the end
		if end, err = lastRecord(filepath.Join(p.Dir, logName, names[last])); err != nil {
			return nil, 0, err
		}
		if end > 0 || last == 0 {
			break
		}
	}
	return names[:last+1], end, nil
}

// keepsNoLog refuses to copy a store without a log over a backup that has one: its disk may not be mounted.
func keepsNoLog(p store.Params, to string) error {
	entries, err := os.ReadDir(filepath.Join(to, logName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%w: %s has no file, and the backup has %d: is its disk mounted?", ErrNoStore, filepath.Join(p.Dir, logName), len(entries))
	}
	return nil
}

// segmentNames are the files of the log, in its order. What is no segment by its name is left out; a link to one on another disk is one.
func segmentNames(p store.Params) ([]string, error) {
	dir := filepath.Join(p.Dir, logName)
	entries, err := vfs.ListIfThere(vfs.New(), dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if _, err := segments.ParseName(e.Name); err == nil && !e.Dir && e.Size == p.SegmentBytes {
			names = append(names, e.Name)
		}
	}
	return names, nil
}

func removeOthers(dir string, keep []string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !slices.Contains(keep, e.Name()) {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// lastRecord finds the end of the last whole record in a file that is being written to.
func lastRecord(name string) (int64, error) {
	f, err := vfs.New().Open(name, false)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil || size == 0 {
		return 0, err
	}
	m, err := f.Map(size, vfs.MapRead)
	if err != nil {
		return 0, err
	}
	at := int64(0)
	err = vfs.Guard("read "+name, func() error {
		for at < size {
			r, kind, err := record.Parse(m.Bytes()[at:], true)
			if errors.Is(err, record.ErrUnallocated) {
				return nil
			}
			if err != nil && r.Size <= 0 || kind == record.KindBlank { // damage: recovery decides about what is behind it
				at = size
				return nil
			}
			at += int64(r.Size)
		}
		return nil
	})
	return at, errors.Join(err, m.Unmap())
}
