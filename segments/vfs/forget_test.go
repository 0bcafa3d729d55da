//go:build linux && !vfsportable

package vfs_test

import (
	"bytes"
	"path"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/actormq/actormq/segments/vfs"
)

// inMemory counts the pages of a map that are in memory.
func inMemory(t *testing.T, b []byte) int {
	t.Helper()
	pages := make([]byte, (len(b)+4095)/4096)
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(unsafe.Pointer(&pages[0])))
	require.Zero(t, errno)
	return len(pages) - bytes.Count(pages, []byte{0})
}

func TestWhatIsForgottenIsReadFromTheDisk(t *testing.T) {
	dir := t.TempDir()
	var fs unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &fs))
	if fs.Type == unix.TMPFS_MAGIC {
		t.Skip("the folder is in memory")
	}
	const size = 4 << 20
	f := create(t, vfs.New(), path.Join(dir, "a"), size)
	m, err := f.Map(size, vfs.MapShared)
	require.NoError(t, err)
	for i := range m.Bytes() {
		m.Bytes()[i] = byte(i >> 12)
	}
	require.NoError(t, f.DataSync())
	require.NoError(t, m.LetGo(0, size))
	require.NoError(t, vfs.Forget(f, 0, size/2))
	require.Equal(t, size/2/4096, inMemory(t, m.Bytes()), "the half that is not forgotten")
	for i, b := range m.Bytes() {
		require.Equal(t, byte(i>>12), b)
	}
	_, err = f.WriteAt([]byte("not synced"), 0)
	require.NoError(t, err)
	require.NoError(t, m.LetGo(0, size))
	require.NoError(t, vfs.Forget(f, 0, size))
	require.Equal(t, "not synced", string(m.Bytes()[:10]))
	require.NoError(t, vfs.Forget(f, 5, 0))
	requirePathError(t, vfs.Forget(f, -1, 4096), "forget", f.Name())
	require.NoError(t, m.Unmap())
	require.NoError(t, f.Close())
}
