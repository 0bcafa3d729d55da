//go:build linux && !vfsportable

package vfs

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mappings is what a file must know of its mappings to sync them: on Linux nothing, fdatasync writes their pages too.
type mappings struct{}

func (mappings) add(*osMapping)    {}
func (mappings) remove(*osMapping) {}

func (f *osFile) dataSync() error { return withFD(f.conn, unix.Fdatasync) }

// dataSync is fdatasync for a part of the file: pages elsewhere that are changed, or being written, are neither written nor waited for.
func (m *osMapping) dataSync(off, n int64) error {
	start := off - off%int64(os.Getpagesize())
	return retry(func() error { return unix.Msync(m.b[start:off+n], unix.MS_SYNC) })
}

// SyncTree syncs the whole file system that holds the folder.
func (osDisk) SyncTree(dir string) (bool, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return true, pathError("sync tree", dir, err)
	}
	err = retry(func() error { return unix.Syncfs(int(f.Fd())) })
	return true, pathError("sync tree", dir, errors.Join(err, f.Close()))
}

// DataFrom asks the file system, which knows its holes and, mostly, what was reserved and never written.
func (f *osFile) DataFrom(off int64) (int64, error) {
	size, err := f.Size()
	if err != nil || off >= size {
		return size, err
	}
	at := off
	err = withFD(f.conn, func(fd int) (err error) {
		at, err = unix.Seek(fd, off, unix.SEEK_DATA)
		return err
	})
	switch {
	case errors.Is(err, unix.ENXIO): // nothing behind
		return size, nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
		return off, nil
	}
	return at, rangeError("look for data in", f.name, off, size-off, err)
}

// Forget drops whole pages only, and those that are clean and not mapped.
func (f *osFile) Forget(off, n int64) error {
	err := checkSpan(off, n, 1<<62)
	if err == nil && n > 0 {
		err = withFD(f.conn, func(fd int) error { return unix.Fadvise(fd, off, n, unix.FADV_DONTNEED) })
	}
	return rangeError("forget", f.name, off, n, err)
}

func blockBytes(st *unix.Statfs_t) int64 {
	if st.Frsize > 0 {
		return int64(st.Frsize) //nolint:unconvert // differs by platform
	}
	return int64(st.Bsize) //nolint:unconvert // differs by platform
}

func reserve(fd int, off, n int64) error {
	err := unix.Fallocate(fd, 0, off, n)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return errCannotReserve
	}
	return err
}

func startWriteback(fd int, off, n int64) error {
	err := unix.SyncFileRange(fd, off, n, unix.SYNC_FILE_RANGE_WRITE)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

// populate asks the kernel for all pages in one call. Kernels before 5.14 do not know it, and answer EINVAL.
func populate(b []byte, writable bool) error {
	advice := unix.MADV_POPULATE_READ
	if writable {
		advice = unix.MADV_POPULATE_WRITE
	}
	err := retry(func() error { return unix.Madvise(b, advice) })
	switch {
	case errors.Is(err, unix.EINVAL):
		return touch(b, writable)
	case errors.Is(err, unix.EFAULT), errors.Is(err, unix.EHWPOISON):
		return fmt.Errorf("%w: %w", ErrFault, err)
	}
	return err
}

// letGo passes what is changed in the pages on to the page cache; only a private mapping would lose it. Locked pages stay (EINVAL).
func letGo(b []byte) error {
	err := retry(func() error { return unix.Madvise(b, unix.MADV_DONTNEED) })
	if errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}

// setLock uses a lock of the open file, which no other close in this process can drop. It conflicts with the locks that
// Java takes. Where the kernel does not know it (EINVAL) a lock of the process must do.
func setLock(fd int, kind int16) error {
	lock := unix.Flock_t{Type: kind, Whence: unix.SEEK_SET, Start: 0, Len: 1}
	err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &lock)
	if errors.Is(err, unix.EINVAL) {
		err = unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &lock)
	}
	return err
}
