package storebackup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
)

// ErrChecksum: a file of a backup is not what was copied.
var ErrChecksum = errors.New("the file is not what was backed up")

// ErrNotEmpty: there is something where a store is to be restored.
var ErrNotEmpty = errors.New("the folder is not empty")

// Done is what a copy has taken.
type Done struct {
	Segments int   `json:"segments"` // commit-log files of the copy
	Copied   int   `json:"copied"`   // of them, in this run
	LogEnd   int64 `json:"logEnd"`   // physical offset at which the copy ends
}

// Progress is told how many bytes of the commit log are copied, of how many; nil: nobody is.
type Progress func(done, total int64)

func (tell Progress) files(done, of int, each int64) {
	if tell != nil {
		tell(int64(done)*each, int64(of)*each)
	}
}

// Backup copies the store in a directory to another, which may hold an older backup of it, and recovers the copy. The params are those
// of the store; its commit log is in the folder commitlog.
func Backup(ctx context.Context, p store.Params, to string, tell Progress) (Done, error) {
	l, err := readList(to)
	if err == nil && l.Source != "" && l.Source != p.Dir {
		err = fmt.Errorf("%s holds a backup of %s", to, l.Source)
	}
	if err != nil {
		return Done{}, err
	}
	l.Source = p.Dir
	if err := os.MkdirAll(to, 0o750); err != nil {
		return Done{}, err
	}
	if err := l.write(to); err != nil {
		return Done{}, err
	}
	if err := copyAround(ctx, p.Dir, to); err != nil {
		return Done{}, err
	}
	done, err := copyLog(ctx, p, to, &l, tell)
	if err != nil {
		return done, err
	}
	return done, recoverCopy(p, to, &done)
}

// copyAround copies what is beside the log, in the order in which none of it speaks of more than what comes after it.
func copyAround(ctx context.Context, from, to string) error {
	gone := store.Params{Dir: to}
	for _, name := range []string{gone.CleanStopPath(), gone.IndexDir(), gone.CheckpointPath(), gone.FloorsPath()} {
		if err := os.RemoveAll(name); err != nil {
			return err
		}
	}
	if err := copyTree(ctx, filepath.Join(from, "config"), filepath.Join(to, "config")); err != nil {
		return err
	}
	for _, name := range []string{gone.FloorsPath(), gone.CheckpointPath()} {
		base := filepath.Base(name)
		if _, err := copyFile(ctx, filepath.Join(from, base), name, -1); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := copyTree(ctx, filepath.Join(from, "consumequeue"), filepath.Join(to, "consumequeue")); err != nil {
		return err
	}
	abort, err := os.Create(gone.AbortPath()) // the copy is what a crash leaves
	if err != nil {
		return err
	}
	return errors.Join(abort.Sync(), abort.Close(), syncDir(to))
}

// copyLog copies the commit log: whole files that the last run has are kept, the last one is copied up to its last whole record.
func copyLog(ctx context.Context, p store.Params, to string, l *list, tell Progress) (Done, error) {
	names, err := segmentNames(p, filepath.Join(p.Dir, "commitlog"))
	if err != nil || len(names) == 0 {
		return Done{}, errors.Join(err, removeOthers(filepath.Join(to, "commitlog"), nil))
	}
	last, end := len(names)-1, int64(0)
	for ; last >= 0; last-- { // RocketMQ prepares files behind the end
		if end, err = lastRecord(filepath.Join(p.Dir, "commitlog", names[last])); err != nil {
			return Done{}, err
		}
		if end > 0 || last == 0 {
			break
		}
	}
	names = names[:last+1]
	if err := removeOthers(filepath.Join(to, "commitlog"), names); err != nil {
		return Done{}, err
	}
	var done Done
	for i, name := range names {
		tell.files(i, len(names), p.SegmentBytes)
		from, copied := filepath.Join(p.Dir, "commitlog", name), filepath.Join(to, "commitlog", name)
		_, err := os.Stat(copied)
		if l.Segments[name] != "" && err == nil {
			done.Segments++
			continue
		}
		n := int64(-1)
		if i == last {
			n = end
		}
		sum, err := copyFile(ctx, from, copied, n)
		if errors.Is(err, fs.ErrNotExist) && done.Segments == 0 {
			continue // it was the oldest, and has expired
		}
		if err != nil {
			return done, err
		}
		done.Segments, done.Copied = done.Segments+1, done.Copied+1
		if i < last {
			l.Segments[name] = sum
			if err := l.write(to); err != nil {
				return done, err
			}
		}
	}
	for name := range l.Segments {
		if !slices.Contains(names, name) {
			delete(l.Segments, name)
		}
	}
	return done, errors.Join(l.write(to), syncDir(filepath.Join(to, "commitlog")))
}

// segmentNames are the files of the log, in its order.
func segmentNames(p store.Params, dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if info.Mode().IsRegular() && info.Size() == p.SegmentBytes {
			names = append(names, e.Name())
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

// recoverCopy does for the copy what the start after a crash does, and leaves it as a clean stop would.
func recoverCopy(p store.Params, to string, done *Done) error {
	p.Dir, p.CommitLogDir = filepath.ToSlash(to), ""
	s, err := store.Open(vfs.New(), p, store.Options{RebuildIndex: true})
	if err != nil {
		return fmt.Errorf("recover the copy: %w", err)
	}
	done.LogEnd = int64(s.Log.End())
	if err := s.CloseClean(); err != nil {
		return fmt.Errorf("recover the copy: %w", err)
	}
	return nil
}

// Restore copies a backup to a directory that is empty or not there, after it has compared the commit-log files with their checksums.
func Restore(ctx context.Context, p store.Params, to string, tell Progress) (Done, error) {
	l, err := readList(p.Dir)
	if err != nil {
		return Done{}, err
	}
	entries, err := os.ReadDir(to)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Done{}, err
	}
	if len(entries) > 0 {
		return Done{}, fmt.Errorf("%s: %w", to, ErrNotEmpty)
	}
	if err := copyAround(ctx, p.Dir, to); err != nil {
		return Done{}, err
	}
	names, err := segmentNames(p, filepath.Join(p.Dir, "commitlog"))
	if err != nil {
		return Done{}, err
	}
	var done Done
	for i, name := range names {
		tell.files(i, len(names), p.SegmentBytes)
		sum, err := copyFile(ctx, filepath.Join(p.Dir, "commitlog", name), filepath.Join(to, "commitlog", name), -1)
		if want := l.Segments[name]; err == nil && want != "" && want != sum {
			err = fmt.Errorf("%s: %w", name, ErrChecksum)
		}
		if err != nil {
			return done, err
		}
		done.Segments, done.Copied = done.Segments+1, done.Copied+1
	}
	for name := range l.Segments {
		if !slices.Contains(names, name) {
			return done, fmt.Errorf("%s is missing: %w", name, ErrChecksum)
		}
	}
	return done, recoverCopy(p, to, &done)
}
