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
	flag := os.O_RDWR | os.O_CREATE
	if st, err := os.Stat(name); err == nil {
		if isHeld(st) {
			return nil, pathError("lock", name, ErrLocked)
		}
		if st.IsDir() {
			flag = os.O_RDONLY
		}
	}
	f, err := os.OpenFile(name, flag, filePerm)
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
	take := func(fd int) error { return setLock(fd, unix.F_WRLCK) }
	if st.IsDir() {
		take = lockDir
	}
	err = withFD(conn, take)
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, err
	}
	l := &osLock{f: f, conn: conn, dir: st.IsDir(), id: idOf(st)}
	held.files[l.id] = struct{}{}
	return l, nil
}

type osLock struct {
	f    *os.File
	conn syscall.RawConn
	dir  bool
	id   fileID
}

// lockDir locks an open folder. Locks of byte ranges need a file that is open for writing, which a folder can't be; network
// file systems make such locks of these and refuse them.
func lockDir(fd int) error {
	err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EBADF) || errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}

func unlockDir(fd int) error {
	_ = unix.Flock(fd, unix.LOCK_UN) // fails only where it was not locked; closing unlocks too
	return nil
}

// Close unlocks before it closes: a child that is being forked shares the lock until it runs its own program.
func (l *osLock) Close() error {
	held.Lock()
	defer held.Unlock()
	release := func(fd int) error { return setLock(fd, unix.F_UNLCK) }
	if l.dir {
		release = unlockDir
	}
	err := withFD(l.conn, release)
	if errors.Is(err, fs.ErrClosed) {
		return pathError("unlock", l.f.Name(), err)
	}
	delete(held.files, l.id)
	return pathError("unlock", l.f.Name(), errors.Join(err, l.f.Close()))
}
