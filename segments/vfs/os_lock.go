//go:build linux || darwin || freebsd

package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// fileID is what a file is, whatever its name.
type fileID struct{ device, inode uint64 }

// held are the files that this process has locked: a process does not conflict with its own locks everywhere.
var held = struct {
	sync.Mutex
	files map[fileID]struct{}
}{files: map[fileID]struct{}{}}

// Lock looks at the process's own locks before it opens the file, because where locks belong to the process, closing the
// second descriptor would drop the first lock.
func (osDisk) Lock(name string) (io.Closer, error) {
	held.Lock()
	defer held.Unlock()
	if st, err := os.Stat(name); err == nil && isHeld(st) {
		return nil, pathError("lock", name, ErrLocked)
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, filePerm)
	if err != nil {
		return nil, pathError("lock", name, err)
	}
	l, err := lockFile(f)
	if err != nil {
		_ = f.Close()
		return nil, pathError("lock", name, err)
	}
	return l, nil
}

func isHeld(st fs.FileInfo) bool {
	_, ok := held.files[idOf(st)]
	return ok
}

func idOf(st fs.FileInfo) fileID {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}
	}
	return fileID{device: uint64(sys.Dev), inode: uint64(sys.Ino)} //nolint:unconvert // differs by platform
}

func lockFile(f *os.File) (*osLock, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if isHeld(st) {
		return nil, ErrLocked
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	err = withFD(conn, func(fd int) error { return setLock(fd, unix.F_WRLCK) })
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, err
	}
	l := &osLock{f: f, conn: conn, id: idOf(st)}
	held.files[l.id] = struct{}{}
	return l, nil
}

type osLock struct {
	f    *os.File
	conn syscall.RawConn
	id   fileID
}

// Close unlocks before it closes: a child that is being forked shares the lock until it runs its own program.
func (l *osLock) Close() error {
	held.Lock()
	defer held.Unlock()
	err := withFD(l.conn, func(fd int) error { return setLock(fd, unix.F_UNLCK) })
	if errors.Is(err, fs.ErrClosed) {
		return pathError("unlock", l.f.Name(), err)
	}
	delete(held.files, l.id)
	return pathError("unlock", l.f.Name(), errors.Join(err, l.f.Close()))
}
