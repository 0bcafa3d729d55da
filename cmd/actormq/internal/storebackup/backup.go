package storebackup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
)

// ErrChecksum: a file of a backup is not what was copied.
var ErrChecksum = errors.New("the file is not what was backed up")

// ErrNotEmpty: there is something where a store is to be restored.
var ErrNotEmpty = errors.New("the folder is not empty")

// ErrNoStore: there is no store, or no log of it, where one is to be copied from.
var ErrNoStore = errors.New("there is no store to copy")

// ErrNotBackup: where a backup is to go there is something that a backup would replace, and that none has made.
var ErrNotBackup = errors.New("that is no backup, and would be overwritten")

// ErrUnfinished: a backup was ended before it had all, or another one goes on with it; what it holds is less than the store had.
var ErrUnfinished = errors.New("the backup was not finished")

// ErrLoses: a backup has messages that the store has not, and that another backup would delete.
var ErrLoses = errors.New("the backup has messages that would be lost")

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
// of the store; its commit log is in the folder commitlog. The copy is locked meanwhile, as an open store is: vfs.ErrLocked when a node, or
// another backup, has it open. Until it is whole Restore refuses it.
func Backup(ctx context.Context, p store.Params, to string, tell Progress) (Done, error) {
	if err := isStore(p.Dir); err != nil {
		return Done{}, err
	}
	l, err := readList(to)
	if err == nil && l.Source != "" && l.Source != p.Dir {
		err = fmt.Errorf("%s holds a backup of %s", to, l.Source)
	}
	if err == nil && l.Source == "" {
		err = isFree(to)
	}
	if err != nil {
		return Done{}, err
	}
	done, err := copyLocked(ctx, p, to, &l, tell)
	if err != nil {
		return done, err
	}
	if err := recoverCopy(p, to, &done, l.dropChanged(p, to)); err != nil {
		return done, err
	}
	if err := l.sumLast(ctx, p, to); err != nil {
		return done, err
	}
	if err := l.goesOn(to); err != nil {
		return done, err
	}
	l.Unfinished = false
	return done, l.write(to)
}

// isStore tells whether there is a store to copy: a wrong name, or a disk that is not mounted, must not look like an empty one.
func isStore(dir string) error {
	st, err := os.Stat(filepath.Join(dir, logName))
	if err == nil && !st.IsDir() {
		err = errors.New("no folder")
	}
	if err != nil {
		return fmt.Errorf("%w in %s, with its log in %s: %w", ErrNoStore, dir, logName, err)
	}
	return nil
}

// isFree tells whether a folder holds nothing that a backup replaces: it may be somebody's store.
func isFree(dir string) error {
	p := store.Params{Dir: dir}.WithDefaults()
	for _, name := range append(replaced(p), p.CommitLogDir, p.ConsumeQueueDir(), p.AbortPath()) {
		switch _, err := os.Lstat(name); {
		case err == nil:
			return fmt.Errorf("%s is there, without %s: %w", name, listName, ErrNotBackup)
		case !errors.Is(err, os.ErrNotExist):
			return err
		}
	}
	return nil
}

func copyLocked(ctx context.Context, p store.Params, to string, l *list, tell Progress) (done Done, err error) {
	if err := os.MkdirAll(to, 0o750); err != nil {
		return Done{}, err
	}
	lock, err := vfs.New().Lock(store.Params{Dir: to}.LockPath())
	if err != nil {
		return Done{}, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	names, err := segmentNames(p)
	if err == nil && len(names) == 0 {
		err = keepsNoLog(p, to)
	}
	if err == nil {
		err = l.losesNothing(p, to)
	}
	if err != nil {
		return Done{}, err
	}
	l.Source, l.Unfinished, l.Begun = p.Dir, true, time.Now().UnixNano()
	if err := l.write(to); err != nil {
		return Done{}, err
	}
	if err := copyAround(ctx, p.Dir, to); err != nil {
		return Done{}, err
	}
	return copyLog(ctx, p, to, l, tell)
}

// replaced are the files and folders beside log and queues that each backup replaces.
func replaced(p store.Params) []string {
	promoted := filepath.Join(p.Dir, promotedName)
	return []string{p.CleanStopPath(), p.IndexDir(), p.CheckpointPath(), p.FloorsPath(), metadata.Backup(p.FloorsPath()), p.UnprovenQueuesPath(),
		p.ConfigDir(), filepath.Join(p.Dir, "extensions"), promoted, metadata.Backup(promoted)}
}

// configName is the folder of the JSON files below a store, or a copy.
const configName = "config"

// copyAround copies what is beside the log, in the order in which none of it speaks of more than what comes after it. The copy is what a crash
// leaves from the beginning on: with abort, and without a checkpoint, so that whoever opens it compares all queues with all of the log.
func copyAround(ctx context.Context, from, to string) error {
	gone := store.Params{Dir: to}
	if err := makeAbort(to); err != nil {
		return err
	}
	for _, name := range replaced(gone) {
		if err := os.RemoveAll(name); err != nil {
			return err
		}
	}
	for _, name := range []string{configName, "extensions"} {
		if err := copyDurably(ctx, filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	floors, unproven := filepath.Base(gone.FloorsPath()), filepath.Base(gone.UnprovenQueuesPath())
	for _, name := range []string{promotedName, metadata.Backup(promotedName), metadata.Backup(floors), floors, unproven} {
		if err := copyRegular(ctx, filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	if err := copyTree(ctx, filepath.Join(from, "consumequeue"), filepath.Join(to, "consumequeue")); err != nil {
		return err
	}
	// Again: they may say now where queues go on that were deleted before they were copied, and that what was copied is not to be believed.
	for _, name := range []string{metadata.Backup(floors), floors, unproven} {
		if err := copyRegular(ctx, filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	// Again, behind the floors: the offsets of a topic that they say was deleted must not meet the queues of its next life.
	if err := copyDurably(ctx, filepath.Join(from, configName), filepath.Join(to, configName)); err != nil {
		return err
	}
	return syncDir(to)
}

func makeAbort(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	abort, err := os.Create(store.Params{Dir: dir}.AbortPath())
	if err != nil {
		return err
	}
	return errors.Join(abort.Sync(), abort.Close(), syncDir(dir))
}

// recoverCopy does for the copy what the start after a crash does, and leaves it as a clean stop would. Heard, if not nil, is told what is found.
func recoverCopy(p store.Params, to string, done *Done, heard func(store.Event)) error {
	p.Dir, p.CommitLogDir = filepath.ToSlash(to), ""
	s, err := store.Open(vfs.New(), p, store.Options{RebuildIndex: true, Events: heard})
	if err != nil {
		return fmt.Errorf("recover the copy: %w", err)
	}
	done.LogEnd = int64(s.Log.End())
	if err := s.CloseClean(); err != nil {
		return fmt.Errorf("recover the copy: %w", err)
	}
	return nil
}
