package storebackup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/actormq/actormq/segments/checkpoint"
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
	// Unfinished: what was restored is what the backup had that was finished, or had all; a later run was ended before it had.
	Unfinished bool `json:"unfinished,omitempty"`
}

// Progress is told how many bytes of the commit log are copied, of how many; nil: nobody is.
type Progress func(done, total int64)

func (tell Progress) files(done, of int, each int64) {
	if tell != nil {
		tell(int64(done)*each, int64(of)*each)
	}
}

// run is a backup that is being taken.
type run struct {
	vfs.Disk
	from store.Params // the store
	to   string       // the folder of the copy
	list list
	tell Progress
	had  bool // its log had files when the run began
}

// Backup copies the store in a directory to another, which may hold an older backup of it, and recovers the copy. The params are those
// of the store; its commit log is in the folder commitlog. The copy is locked meanwhile, as an open store is: vfs.ErrLocked when a node, or
// another backup, has it open. Wherever it ends, Restore finds what the copy had before, or all of this run. When it returns nil the copy
// survives a power cut.
func Backup(ctx context.Context, disk vfs.Disk, p store.Params, to string, tell Progress) (Done, error) {
	if err := isStore(disk, p.Dir); err != nil {
		return Done{}, err
	}
	l, err := readList(disk, to)
	if err == nil && l.Source != "" && l.Source != p.Dir {
		err = fmt.Errorf("%s holds a backup of %s", to, l.Source)
	}
	if err == nil && l.Source == "" {
		err = isFree(disk, to)
	}
	if err != nil {
		return Done{}, err
	}
	r := &run{Disk: disk, from: p, to: to, list: l, tell: tell}
	done, err := r.copyLocked(ctx)
	if err != nil {
		return done, err
	}
	if err := recoverCopy(disk, p, to, &done, r.list.changing(p, disk, to)); err != nil {
		return done, err
	}
	return done, r.finish(ctx)
}

// finish notes that the copy is whole, unless another run has begun since it was recovered.
func (r *run) finish(ctx context.Context) (err error) {
	lock, err := r.Lock(store.Params{Dir: r.to}.LockPath())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := r.list.goesOn(r.Disk, r.to); err != nil {
		return err
	}
	if err := r.list.sumLast(ctx, r.Disk, r.from, r.to); err != nil {
		return err
	}
	r.list.Unfinished, r.list.Whole = false, false
	return r.list.write(r.Disk, r.to)
}

// isStore tells whether there is a store to copy: a wrong name, or a disk that is not mounted, must not look like an empty one.
func isStore(disk vfs.Disk, dir string) error {
	st, err := disk.Stat(path.Join(dir, logName))
	if err == nil && !st.Dir {
		err = errors.New("no folder")
	}
	if err != nil {
		return fmt.Errorf("%w in %s, with its log in %s: %w", ErrNoStore, dir, logName, err)
	}
	return nil
}

// isFree tells whether a folder holds nothing that a backup replaces: it may be somebody's store.
func isFree(disk vfs.Disk, dir string) error {
	p := store.Params{Dir: dir}.WithDefaults()
	names := append(built(p), p.CommitLogDir, p.AbortPath(), path.Join(dir, nextName))
	for _, name := range beside {
		names = append(names, path.Join(dir, name))
	}
	for _, name := range names {
		switch _, err := disk.Stat(name); {
		case err == nil:
			return fmt.Errorf("%s is there, without %s: %w", name, listName, ErrNotBackup)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	return nil
}

// copyLocked brings the copy to where it is whole, and has to be recovered.
func (r *run) copyLocked(ctx context.Context) (done Done, err error) {
	if err := r.MkdirAll(r.to); err != nil {
		return Done{}, err
	}
	lock, err := r.Lock(store.Params{Dir: r.to}.LockPath())
	if err != nil {
		return Done{}, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := r.list.stays(r.Disk, r.to); err != nil { // it was read before the lock was taken
		return Done{}, err
	}
	names, err := segmentNames(r.Disk, r.from)
	r.had = len(names) > 0
	if err == nil && !r.had {
		err = r.keepsNoLog()
	}
	if err == nil {
		err = r.losesNothing(names)
	}
	if err == nil {
		err = r.begin()
	}
	if err != nil {
		return Done{}, err
	}
	c := copied{now: map[string]bool{}}
	if err := r.stage(ctx, &c); err != nil {
		return Done{}, err
	}
	if err := r.replace(); err != nil {
		return Done{}, err
	}
	if err := r.expire(c.names); err != nil {
		return Done{}, err
	}
	p := r.from
	p.Dir = r.to
	names, err = segmentNames(r.Disk, p)
	for _, name := range names {
		if c.now[name] {
			done.Copied++
		}
	}
	done.Segments = len(names)
	return done, err
}

// begin notes that a run has begun. The copy is then what a crash leaves: with abort, and without a checkpoint, so that whoever opens it compares
// all queues with all of the log, which may have more than they.
func (r *run) begin() error {
	if r.list.Staged != nil { // the last run has ended half-way through that
		if err := r.replace(); err != nil {
			return err
		}
	}
	if !r.list.Unfinished {
		r.list.Whole = r.list.LogEnd > 0 || r.list.Begun > 0 // it may be of a store without a message
	}
	for _, name := range r.list.Mended {
		if _, there := r.list.Last[name]; there {
			r.list.Last[name] = ""
		}
	}
	r.list.Source, r.list.Unfinished, r.list.Begun = r.from.Dir, true, time.Now().UnixNano()
	if err := r.list.write(r.Disk, r.to); err != nil {
		return err
	}
	p := store.Params{Dir: r.to}
	if err := checkpoint.SetAbort(r.Disk, p.AbortPath()); err != nil {
		return err
	}
	for _, name := range built(p) {
		if err := removeTree(r.Disk, name); err != nil {
			return err
		}
	}
	return r.MkdirAll(path.Join(r.to, logName))
}

// built are the files and folders of a copy that its recovery makes.
func built(p store.Params) []string {
	return []string{p.CleanStopPath(), p.IndexDir(), p.CheckpointPath()}
}

// recoverCopy does for the copy what the start after a crash does, and leaves it as a clean stop would. Changing, if not nil, is asked before its log is changed.
func recoverCopy(disk vfs.Disk, p store.Params, to string, done *Done, changing func(store.Finding, store.Span) error) error {
	p.Dir, p.CommitLogDir = to, ""
	s, err := store.Open(disk, p, store.Options{RebuildIndex: true, Changing: changing})
	if err != nil {
		return fmt.Errorf("recover the copy: %w", err)
	}
	done.LogEnd = int64(s.Log.End())
	if err := s.CloseClean(); err != nil {
		return fmt.Errorf("recover the copy: %w", err)
	}
	return nil
}
