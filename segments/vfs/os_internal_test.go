//go:build linux || darwin || freebsd

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPathErrorMarksAFullDisk(t *testing.T) {
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		err := rangeError("write", "/store/a", 4096, 12, &fs.PathError{Op: "write", Path: "/store/a", Err: cause})
		require.ErrorIs(t, err, ErrNoSpace)
		require.ErrorIs(t, err, cause)
		require.Equal(t, "write /store/a: 12 bytes at 4096: no space left on the disk: "+cause.Error(), err.Error())
		require.Equal(t, err.Error(), pathError("write", "/store/a", err).Error(), "marked or named twice")
	}
	err := pathError("sync", "/store/a", syscall.EIO)
	require.NotErrorIs(t, err, ErrNoSpace)
	require.Equal(t, "sync /store/a: input/output error", err.Error())
	require.NoError(t, pathError("sync", "/store/a", nil))
	require.NoError(t, rangeError("sync", "/store/a", 0, 0, nil))
}

func TestAMappingThatFailsNamesTheLimit(t *testing.T) { // L11
	require.ErrorIs(t, explainMap(syscall.ENOMEM), syscall.ENOMEM)
	require.ErrorContains(t, explainMap(syscall.ENOMEM), "vm.max_map_count")
	require.Equal(t, syscall.EACCES, explainMap(syscall.EACCES))
}

func TestRetry(t *testing.T) {
	calls := 0
	err := retry(func() error {
		if calls++; calls < 3 {
			return &os.SyscallError{Syscall: "fsync", Err: syscall.EINTR}
		}
		return syscall.EIO
	})
	require.Equal(t, syscall.EIO, err)
	require.Equal(t, 3, calls)
}

// TestTouch: the way of making pages present that old kernels and other systems need.
func TestTouch(t *testing.T) {
	page := int64(os.Getpagesize())
	name := filepath.Join(t.TempDir(), "a")
	f, err := New().Create(name)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(3*page+1))
	_, err = f.WriteAt([]byte("abcdefgh"), page)
	require.NoError(t, err)
	for _, mode := range []MapMode{MapRead, MapShared, MapPrivate} {
		m, err := f.Map(3*page+1, mode)
		require.NoError(t, err)
		require.NoError(t, touch(m.Bytes(), mode != MapRead))
		require.Equal(t, "abcdefgh", string(m.Bytes()[page:page+8]))
		require.NoError(t, f.Truncate(2*page))
		require.ErrorIs(t, touch(m.Bytes(), mode != MapRead), ErrFault)
		require.NoError(t, f.Truncate(3*page+1))
		require.NoError(t, m.Unmap())
	}
	require.NoError(t, f.Close())
}

func TestExtendAndShrink(t *testing.T) {
	f, err := New().Create(filepath.Join(t.TempDir(), "a"))
	require.NoError(t, err)
	file, ok := f.(*osFile)
	require.True(t, ok)
	size := func() int64 {
		n, err := f.Size()
		require.NoError(t, err)
		return n
	}
	require.NoError(t, file.extend(0, 100))
	require.Equal(t, int64(100), size())
	require.NoError(t, file.extend(100, 50))
	require.Equal(t, int64(100), size(), "extending never shortens")
	require.NoError(t, file.shrink(40))
	require.Equal(t, int64(40), size())
	require.NoError(t, file.shrink(100))
	require.Equal(t, int64(40), size(), "shrinking never extends")
	require.NoError(t, f.Close())
}

func TestListFollowsLinksAndBearsDeadOnes(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(dir, "commitlog")))
	require.NoError(t, os.Symlink(filepath.Join(dir, "none"), filepath.Join(dir, "dead")))
	entries, err := New().List(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, "commitlog", entries[0].Name)
	require.True(t, entries[0].Dir)
}

func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	for _, name := range []string{t.TempDir(), os.DevNull} {
		_, err := New().Open(name, false)
		require.ErrorIs(t, err, errNotRegular)
	}
}

// TestMkdirAllUnderAClosedFolder: a folder above the store may be searched but not read.
func TestMkdirAllUnderAClosedFolder(t *testing.T) {
	top := t.TempDir()
	store := filepath.Join(top, "closed", "store")
	require.NoError(t, os.MkdirAll(store, 0o700))
	require.NoError(t, os.Chmod(filepath.Dir(store), 0o100))
	t.Cleanup(func() { require.NoError(t, os.Chmod(filepath.Dir(store), 0o700)) })
	require.NoError(t, New().MkdirAll(store))
	require.NoError(t, New().MkdirAll(filepath.Join(store, "commitlog")))
}

func TestFailedAllocateKeepsTheLength(t *testing.T) {
	f, err := New().Create(filepath.Join(t.TempDir(), "a"))
	require.NoError(t, err)
	require.NoError(t, f.Truncate(10))
	// More than any disk has: either refused for room or for the size.
	if err := f.Allocate(0, 1<<61); err == nil {
		t.Skip("space cannot be reserved here, so nothing can fail")
	} else if !errors.Is(err, ErrNoSpace) {
		require.ErrorIs(t, err, syscall.EFBIG)
	}
	n, err := f.Size()
	require.NoError(t, err)
	require.Equal(t, int64(10), n)
	require.NoError(t, f.Close())
}

// TestANamedPipeIsRefused: what reads a store must not wait for somebody to write into it.
func TestANamedPipeIsRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "00000000000000000000")
	require.NoError(t, syscall.Mkfifo(name, 0o600))
	for _, writable := range []bool{false, true} {
		_, err := New().Open(name, writable)
		require.ErrorIs(t, err, errNotRegular)
		require.ErrorContains(t, err, name)
	}
	e, err := New().Stat(name)
	require.NoError(t, err)
	require.True(t, e.Other, "who copies a folder passes over it")
}
