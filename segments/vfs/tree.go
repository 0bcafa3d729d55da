package vfs

import (
	"errors"
	"io/fs"
)

// A disk or file may know more than it has to; SyncTree, DataFrom and Forget make use of it.
type (
	treeSyncer interface {
		SyncTree(dir string) (bool, error)
	}
	dataFinder interface {
		DataFrom(off int64) (int64, error)
	}
	forgetter interface {
		Forget(off, n int64) error
	}
)

// SyncTree makes everything below a folder durable, names and contents, in one go. It is false when the disk cannot do that:
// then nothing has been done.
func SyncTree(disk Disk, dir string) (bool, error) {
	if s, ok := disk.(treeSyncer); ok {
		return s.SyncTree(dir)
	}
	return false, nil
}

// DataFrom returns the first place at or behind off where a file may hold something else than zeros; its length when there is
// none. A disk that cannot tell gives off.
func DataFrom(f File, off int64) (int64, error) {
	if d, ok := f.(dataFinder); ok {
		return d.DataFrom(off)
	}
	size, err := f.Size()
	return min(off, size), err
}

// Forget has the system take back the memory in which it keeps [off, off+n) of a file: what is read there again comes from the disk.
// What is changed and not on the disk yet stays, and so does what is mapped. A disk that cannot do it does nothing.
func Forget(f File, off, n int64) error {
	if d, ok := f.(forgetter); ok {
		return d.Forget(off, n)
	}
	return nil
}

// ListIfThere lists a folder; one that is missing is empty.
func ListIfThere(disk Disk, dir string) ([]Entry, error) {
	entries, err := disk.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

// RemoveIfThere deletes a file or an empty folder; that it is missing is no error. Durable after SyncDir of its folder.
func RemoveIfThere(disk Disk, name string) error {
	if err := disk.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
