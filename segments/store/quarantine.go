package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
)

// errFull: quarantine/ holds as much as it may.
var errFull = errors.New("quarantine is full")

// quarantine keeps copies of what is cut off the log:
//
//	quarantine/20261129T181500.000Z/commitlog-<physical offset of the first byte, 20 digits>
type quarantine struct {
	disk  vfs.Disk
	dir   string // quarantine/
	limit int64  // bytes
	now   time.Time

	run  string // folder of this run, empty before the first copy
	used int64  // bytes in all runs
}

// keep copies a piece of a segment; when it returns nil the copy survives a power cut.
func (q *quarantine) keep(seg *segments.Segment, span Span) error {
	b := seg.Data()[int64(span.From)-seg.Start() : int64(span.To)-seg.Start()]
	if err := q.open(); err != nil {
		return fmt.Errorf("quarantine: %w", err)
	}
	if q.used+int64(len(b)) > q.limit {
		return fmt.Errorf("%w: %d bytes are there, %d more, limit %d", errFull, q.used, len(b), q.limit)
	}
	f, err := q.disk.Create(path.Join(q.run, "commitlog-"+segments.Name(int64(span.From))))
	if err != nil {
		return fmt.Errorf("quarantine: %w", err)
	}
	err = vfs.Guard(seg.Path(), func() error {
		_, err := f.WriteAt(b, 0)
		return err
	})
	if err == nil {
		err = f.DataSync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = q.disk.SyncDir(q.run)
	}
	if err != nil {
		return fmt.Errorf("quarantine: %w", err)
	}
	q.used += int64(len(b))
	return nil
}

// open makes the folder of this run and counts what earlier ones hold.
func (q *quarantine) open() error {
	if q.run != "" {
		return nil
	}
	used, err := usedBelow(q.disk, q.dir)
	if err != nil {
		return err
	}
	run, err := q.freeName()
	if err != nil {
		return err
	}
	if err := q.disk.MkdirAll(run); err != nil {
		return err
	}
	q.run, q.used = run, used
	return nil
}

func (q *quarantine) freeName() (string, error) {
	base := path.Join(q.dir, q.now.UTC().Format("20060102T150405.000Z"))
	for name, n := base, 2; ; n++ {
		_, err := q.disk.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
		name = fmt.Sprintf("%s-%d", base, n)
	}
}

// usedBelow adds up the files in the folders of a folder.
func usedBelow(disk vfs.Disk, dir string) (int64, error) {
	runs, err := vfs.ListIfThere(disk, dir)
	if err != nil {
		return 0, err
	}
	used := int64(0)
	for _, run := range runs {
		files, err := vfs.ListIfThere(disk, path.Join(dir, run.Name))
		if err != nil && run.Dir {
			return 0, err
		}
		for _, f := range files {
			used += f.Size
		}
	}
	return used, nil
}
