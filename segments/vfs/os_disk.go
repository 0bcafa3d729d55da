//go:build linux || darwin || freebsd

package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Rights of what is made: messages are not for everybody on the machine.
const (
	filePerm = 0o640
	dirPerm  = 0o750
)

// osDisk is the machine's file system. It has no state.
type osDisk struct{}

// New returns the machine's file system. On Linux space is reserved by fallocate, data synced by fdatasync, pages made
// present by MADV_POPULATE_WRITE, and the lock is an open-file-description lock; elsewhere slower calls stand in: files
// are only extended, fsync after msync, touched pages, a lock of the process. An error is an *fs.PathError that names the
// operation and the path; a call that a signal interrupts is made again.
func New() Disk { return osDisk{} }

// Open waits for nobody: without O_NONBLOCK, which means nothing for a regular file, a named pipe would keep it until it has a writer.
func (osDisk) Open(name string, writable bool) (File, error) {
	flag := os.O_RDONLY
	if writable {
		flag = os.O_RDWR
	}
	flag |= syscall.O_NONBLOCK
	f, err := os.OpenFile(name, flag, 0)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		_ = f.Close()
		return nil, pathError("open", name, err)
	}
	return newOSFile(f, name)
}

func (osDisk) Create(name string) (File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, filePerm)
	if err != nil {
		return nil, pathError("create", name, err)
	}
	return newOSFile(f, name)
}

func (osDisk) copyMode(from, to string) error {
	st, err := os.Stat(from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return pathError("stat", from, err)
	}
	has, err := os.Stat(to)
	if err != nil || has.Mode().Perm() == st.Mode().Perm() { // some file systems have the same for all, and change none
		return pathError("stat", to, err)
	}
	return pathError("chmod", to, os.Chmod(to, st.Mode().Perm()))
}

func (osDisk) Remove(name string) error { return pathError("remove", name, os.Remove(name)) }

func (osDisk) Rename(oldName, newName string) error {
	return pathError("rename to "+newName+" from", oldName, os.Rename(oldName, newName))
}

// MkdirAll syncs the parent of each folder before it makes the next one in it. A folder that was there may come from a
// process that died before its sync, so its name is synced too.
func (d osDisk) MkdirAll(dir string) error {
	dir = filepath.Clean(dir)
	parent := filepath.Dir(dir)
	switch st, err := os.Stat(dir); {
	case err == nil && !st.IsDir():
		return pathError("mkdir", dir, syscall.ENOTDIR)
	case err == nil:
		return d.syncFound(parent)
	case !errors.Is(err, fs.ErrNotExist) || parent == dir:
		return pathError("mkdir", dir, err)
	}
	if err := d.MkdirAll(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, dirPerm); err != nil && !errors.Is(err, fs.ErrExist) {
		return pathError("mkdir", dir, err)
	}
	return d.SyncDir(parent)
}

func (osDisk) Mkdir(dir string) error { return pathError("mkdir", dir, os.Mkdir(dir, dirPerm)) }

// syncFound syncs a folder that this process may not be allowed to write, and then has made nothing in.
func (d osDisk) syncFound(dir string) error {
	err := d.SyncDir(dir)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return err
}

// List leaves out what vanishes while it reads.
func (osDisk) List(dir string) ([]Entry, error) {
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil, pathError("list", dir, err)
	}
	entries := make([]Entry, 0, len(found))
	for _, f := range found {
		st, err := infoOf(dir, f)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, pathError("list", filepath.Join(dir, f.Name()), err)
		}
		entries = append(entries, entryOf(f.Name(), st))
	}
	return entries, nil
}

// infoOf follows a symbolic link: a store may have a folder on another disk.
func infoOf(dir string, f fs.DirEntry) (fs.FileInfo, error) {
	if f.Type()&fs.ModeSymlink != 0 {
		return os.Stat(filepath.Join(dir, f.Name()))
	}
	return f.Info()
}

func entryOf(name string, st fs.FileInfo) Entry {
	e := Entry{Name: name, Dir: st.IsDir(), ModTime: st.ModTime()}
	e.Other = !e.Dir && !st.Mode().IsRegular()
	if !e.Dir {
		e.Size = st.Size()
	}
	return e
}

func (osDisk) Stat(name string) (Entry, error) {
	st, err := os.Stat(name)
	if err != nil {
		return Entry{}, pathError("stat", name, err)
	}
	return entryOf(filepath.Base(name), st), nil
}

func (osDisk) SyncDir(dir string) error {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return pathError("sync folder", dir, err)
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return pathError("sync folder", dir, err)
}

func (osDisk) Usage(dir string) (Usage, error) {
	var st unix.Statfs_t
	if err := retry(func() error { return unix.Statfs(dir, &st) }); err != nil {
		return Usage{}, pathError("usage", dir, err)
	}
	block := blockBytes(&st)
	return Usage{ //nolint:unconvert // differs by platform
		TotalBytes: int64(st.Blocks) * block, UsedBytes: int64(st.Blocks-st.Bfree) * block, FreeBytes: int64(st.Bavail) * block,
	}, nil
}

// retry makes a system call again while a signal interrupts it; the Go runtime's own pre-emption signals do that.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// withFD runs a system call on the file's descriptor, which is not closed meanwhile.
func withFD(conn syscall.RawConn, call func(fd int) error) error {
	var err error
	// Control itself fails only on a closed file.
	if conn.Control(func(fd uintptr) { err = retry(func() error { return call(int(fd)) }) }) != nil {
		return fs.ErrClosed
	}
	return err
}

func newOSFile(f *os.File, name string) (File, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		_ = f.Close()
		return nil, pathError("open", name, fmt.Errorf("no descriptor: %w", err))
	}
	return &osFile{f: f, conn: conn, name: name}, nil
}
