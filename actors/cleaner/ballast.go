package cleaner

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync/atomic"

	"github.com/actormq/actormq/segments/vfs"
)

// lowPart of the ballast's size is how little room must be left before it is given up.
const lowPart = 4

// ballast is a file that only takes room. One goroutine at a time uses it.
type ballast struct {
	disk  vfs.Disk
	path  string
	bytes int64 // 0: there is none

	looked   bool         // whether it is there is known
	reserved atomic.Int64 // room that must be left for it while it is not there
}

func newBallast(disk vfs.Disk, name string, bytes int64) *ballast {
	b := &ballast{disk: disk, path: name, bytes: max(bytes, 0)}
	b.reserved.Store(b.bytes)
	return b
}

// keep gives the ballast up when there is little room left, or a part of the store has none, and makes it again when there
// is enough. It says what it has done, empty for nothing.
func (b *ballast) keep(pressed bool) (did string, err error) {
	if b.bytes == 0 {
		return "", nil
	}
	u, err := b.disk.Usage(path.Dir(b.path))
	if err != nil {
		return "", err
	}
	if !b.looked {
		if err := b.look(); err != nil {
			return "", err
		}
	}
	low := b.bytes / lowPart
	switch there := b.reserved.Load() == 0; {
	case there && (pressed || u.FreeBytes < low):
		return "given up", b.remove()
	case !there && !pressed && u.FreeBytes >= b.bytes+low:
		return "made", b.make()
	}
	return "", nil
}

// look finds out whether an earlier run has left the ballast. One of another size is made anew.
func (b *ballast) look() error {
	e, err := b.disk.Stat(b.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case e.Size != b.bytes:
		if err := b.remove(); err != nil {
			return err
		}
	default:
		b.reserved.Store(0)
	}
	b.looked = true
	return nil
}

func (b *ballast) remove() error {
	if err := vfs.RemoveIfThere(b.disk, b.path); err != nil {
		return fmt.Errorf("give up the ballast: %w", err)
	}
	b.reserved.Store(b.bytes)
	return nil
}

func (b *ballast) make() error {
	f, err := b.disk.Create(b.path)
	if err == nil {
		err = errors.Join(f.Allocate(0, b.bytes), f.Close())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("make the ballast: %w", err), b.remove())
	}
	b.reserved.Store(0)
	return nil
}
