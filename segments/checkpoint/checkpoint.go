package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
)

const (
	pageBytes   = 4096
	fieldsBytes = 24
	freshSuffix = ".tmp"
	// marginMs is how far recovery looks back behind the oldest value.
	marginMs = 3000
)

// ErrDamaged: the file cannot be a checkpoint (too short, or a negative time).
var ErrDamaged = errors.New("not a checkpoint")

// Values are the store timestamps up to which things are durable; 0: nothing is known.
type Values struct {
	PhysicMs int64 // commit log
	LogicsMs int64 // consume queues
	IndexMs  int64 // index
}

// MinTimestampMs is the time from which recovery must scan the log when the index is left out of account.
func (v Values) MinTimestampMs() int64 { return max(0, min(v.PhysicMs, v.LogicsMs)-marginMs) }

// MinTimestampIndexMs is the same with the index (messageIndexSafe).
func (v Values) MinTimestampIndexMs() int64 { return min(v.MinTimestampMs(), v.IndexMs) }

// Load reads the checkpoint. A missing or empty file gives zero values. A file that cannot be one is a
// *segments.CorruptionError that wraps ErrDamaged, again with zero values: recovery then starts from the first segment.
func Load(disk vfs.Disk, name string) (Values, error) {
	f, err := disk.Open(name, false)
	if errors.Is(err, fs.ErrNotExist) {
		return Values{}, nil
	}
	if err != nil {
		return Values{}, fmt.Errorf("load checkpoint: %w", err)
	}
	v, err := read(f)
	return v, errors.Join(err, f.Close())
}

func read(f vfs.File) (Values, error) {
	var b [fieldsBytes]byte
	n, err := f.ReadAt(b[:], 0)
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return Values{}, nil
	case n < len(b) && errors.Is(err, io.EOF):
		err := fmt.Errorf("%w: %d bytes, must be at least %d", ErrDamaged, n, fieldsBytes)
		return Values{}, &segments.CorruptionError{File: f.Name(), Err: err}
	case n < len(b):
		return Values{}, fmt.Errorf("load checkpoint: %w", err)
	}
	v := decode(b[:])
	for i, ms := range []int64{v.PhysicMs, v.LogicsMs, v.IndexMs} {
		if ms < 0 {
			err := fmt.Errorf("%w: the time %d is negative", ErrDamaged, ms)
			return Values{}, &segments.CorruptionError{File: f.Name(), Offset: int64(i) * 8, Err: err}
		}
	}
	return v, nil
}

func decode(b []byte) Values {
	return Values{
		PhysicMs: int64(binary.BigEndian.Uint64(b)),
		LogicsMs: int64(binary.BigEndian.Uint64(b[8:])),
		IndexMs:  int64(binary.BigEndian.Uint64(b[16:])),
	}
}

func (v Values) encode(b []byte) {
	binary.BigEndian.PutUint64(b, uint64(v.PhysicMs))
	binary.BigEndian.PutUint64(b[8:], uint64(v.LogicsMs))
	binary.BigEndian.PutUint64(b[16:], uint64(v.IndexMs))
}

// Save makes the values durable: when it returns nil they survive a power cut, and when it fails or is cut short the
// old or the new ones are there. The three fields lie in one disk sector and are written at once; the rest of an existing page
// stays. A missing file, or one of a wrong size, is made anew and moved into place.
func Save(disk vfs.Disk, name string, v Values) error {
	done, err := overwrite(disk, name, v)
	if err == nil && !done {
		err = replace(disk, name, v)
	}
	if err == nil {
		err = disk.SyncDir(path.Dir(name)) // also for a name that a killed process left unsynced
	}
	if err != nil {
		return fmt.Errorf("save checkpoint: %w", err)
	}
	return nil
}

// overwrite writes into an existing page; not done: there is none.
func overwrite(disk vfs.Disk, name string, v Values) (done bool, err error) {
	f, err := disk.Open(name, true)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if size, err := f.Size(); err != nil || size != pageBytes {
		return false, err
	}
	var b [fieldsBytes]byte
	v.encode(b[:])
	if _, err := f.WriteAt(b[:], 0); err != nil {
		return false, err
	}
	return true, f.DataSync()
}

// replace makes a new page in the place of what has the name.
func replace(disk vfs.Disk, name string, v Values) error {
	page := make([]byte, pageBytes)
	v.encode(page)
	return replaceWith(disk, name, page)
}

// Replace makes a small file with this content durable in place of what has the name: when it returns nil it survives a power cut, and
// when it fails or is cut short the old content or the new one is there.
func Replace(disk vfs.Disk, name string, content []byte) error {
	err := replaceWith(disk, name, content)
	if err == nil {
		err = disk.SyncDir(path.Dir(name))
	}
	if err != nil {
		return fmt.Errorf("replace %s: %w", name, err)
	}
	return nil
}

// replaceWith makes a new file beside the name and moves it there once it is durable.
func replaceWith(disk vfs.Disk, name string, content []byte) error {
	fresh := name + freshSuffix
	if err := vfs.RemoveIfThere(disk, fresh); err != nil {
		return err
	}
	f, err := disk.Create(fresh)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	if err == nil {
		err = f.DataSync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return disk.Rename(fresh, name)
}
