package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/vfs"
)

// PutAside moves the log, and what is derived from it, into quarantine/, the log into one beside its own folder: the store is empty when it
// is opened next. Configuration stays. It is for a replica whose log has nothing in common with its group's. The store must not be open; half-way through it can be
// called again.
func PutAside(disk vfs.Disk, p Params, now time.Time) error {
	p = p.WithDefaults()
	q := &quarantine{disk: disk, dir: p.QuarantineDir(), now: now}
	log := q // a log elsewhere may be on another file system, and its folder can be renamed on that only
	if dir := path.Join(path.Dir(p.CommitLogDir), path.Base(q.dir)); dir != q.dir {
		log = &quarantine{disk: disk, dir: dir, now: now}
	}
	// What can be built from the log goes before it; what says that something is not to be believed goes behind that. The floors count with the
	// log only: without it a queue would go on where no record of the next log is. So does their backup, which is read without them.
	for _, from := range []string{
		p.CleanStopPath(), p.CheckpointPath(), p.IndexDir(), p.ConsumeQueueDir(), metadata.Backup(p.FloorsPath()), p.FloorsPath(), p.CommitLogDir,
		p.FurtherPath(), p.UnprovenIndexPath(), p.UnprovenQueuesPath(), p.UnprovenPath(),
	} {
		if _, err := disk.Stat(from); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		to := q
		if from == p.CommitLogDir {
			to = log
		}
		if err := to.move(from); err != nil {
			return fmt.Errorf("put the store in %s aside: %w", p.Dir, err)
		}
	}
	return nil
}

func (q *quarantine) move(from string) error {
	if err := q.open(); err != nil {
		return err
	}
	if err := q.disk.Rename(from, path.Join(q.run, path.Base(from))); err != nil {
		return err
	}
	return errors.Join(q.disk.SyncDir(q.run), q.disk.SyncDir(path.Dir(from)))
}
