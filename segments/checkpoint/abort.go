package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/actormq/actormq/segments/vfs"
)

// HasAbort tells whether the abort marker is there: the store was not closed properly, or is open. Any content counts.
func HasAbort(disk vfs.Disk, name string) (bool, error) {
	_, err := disk.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for abort marker: %w", err)
	}
	return true, nil
}

// SetAbort makes the abort marker. When it returns nil the marker survives a power cut.
func SetAbort(disk vfs.Disk, name string) error {
	f, err := disk.Create(name)
	switch {
	case err == nil:
		err = f.Close()
	case errors.Is(err, fs.ErrExist):
		err = nil
	}
	if err == nil {
		err = disk.SyncDir(path.Dir(name))
	}
	if err != nil {
		return fmt.Errorf("set abort marker: %w", err)
	}
	return nil
}

// ClearAbort removes the abort marker, if it is there. The caller has made everything else durable before: a power cut
// later on finds a store that was closed properly.
func ClearAbort(disk vfs.Disk, name string) error {
	err := vfs.RemoveIfThere(disk, name)
	if err == nil {
		err = disk.SyncDir(path.Dir(name))
	}
	if err != nil {
		return fmt.Errorf("clear abort marker: %w", err)
	}
	return nil
}
