package memfs_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/memfs"
)

func limited(t *testing.T, pages int64) *memfs.Disk {
	d := newDisk(t)
	d.SetCapacity(pages * page)
	return d
}

func free(t *testing.T, d *memfs.Disk) int64 {
	t.Helper()
	u, err := d.Usage("/s")
	require.NoError(t, err)
	return u.FreeBytes / page
}

func TestWriteRunsOutOfRoom(t *testing.T) {
	d := limited(t, 3)
	f, err := d.Create("/s/a")
	require.NoError(t, err)
	write(t, f, filled('a', 10), 100)
	require.Equal(t, int64(2), free(t, d))
	n, err := f.WriteAt(filled('b', 4*page), 50)
	require.ErrorIs(t, err, vfs.ErrNoSpace)
	require.ErrorContains(t, err, "write /s/a")
	require.Equal(t, 3*page-50, n, "a short write ends where room ends")
	require.Len(t, content(t, d, "/s/a"), 3*page)
	write(t, f, filled('c', 3*page), 0)
	_, err = f.WriteAt([]byte("x"), 3*page)
	require.ErrorIs(t, err, vfs.ErrNoSpace)
	require.Zero(t, free(t, d))
}

func TestAllocateReserves(t *testing.T) {
	d := limited(t, 4)
	f, err := d.Create("/s/a")
	require.NoError(t, err)
	require.ErrorIs(t, f.Allocate(0, 5*page), vfs.ErrNoSpace)
	require.Empty(t, content(t, d, "/s/a"), "all or nothing")
	require.Equal(t, int64(4), free(t, d))
	require.NoError(t, f.Allocate(0, 4*page))
	require.NoError(t, f.Allocate(0, 4*page))
	require.Zero(t, free(t, d))

	other, err := d.Create("/s/b")
	require.NoError(t, err)
	_, err = other.WriteAt([]byte("x"), 0)
	require.ErrorIs(t, err, vfs.ErrNoSpace)
	write(t, f, filled('x', 4*page), 0)
	require.NoError(t, f.DataSync())
}

func TestRoomComesBack(t *testing.T) {
	d := limited(t, 4)
	f, err := d.Create("/s/a")
	require.NoError(t, err)
	write(t, f, filled('a', 4*page), 0)
	require.NoError(t, f.Truncate(page+1))
	require.Equal(t, int64(2), free(t, d))
	require.NoError(t, d.Remove("/s/a"))
	require.Equal(t, int64(2), free(t, d), "the file is still open")
	m, err := f.Map(page, vfs.MapShared)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, int64(2), free(t, d), "the file is still mapped")
	require.NoError(t, m.Unmap())
	require.Equal(t, int64(4), free(t, d))

	require.NoError(t, makeFile(d, "/s/b", "b"))
	require.NoError(t, makeFile(d, "/s/c", "c"))
	require.NoError(t, d.Rename("/s/b", "/s/c"))
	require.Equal(t, int64(3), free(t, d), "the replaced file is gone")
}

func TestSparseFilesTakeRoomWhenWritten(t *testing.T) {
	d := limited(t, 2)
	f := put(t, d, "/s/a", nil)
	require.NoError(t, f.Truncate(100*page))
	require.Equal(t, int64(2), free(t, d))
	m, err := f.Map(100*page, vfs.MapShared)
	require.NoError(t, err)
	m.Bytes()[0], m.Bytes()[50*page], m.Bytes()[99*page] = 1, 1, 1
	require.ErrorIs(t, f.DataSync(), vfs.ErrNoSpace)
	require.Zero(t, free(t, d))
	got := content(t, d.Crash(0), "/s/a")
	require.Equal(t, []byte{1, 1}, []byte{got[0], got[50*page]}, "what has room is synced")

	d.SetCapacity(3 * page)
	require.NoError(t, f.DataSync(), "nothing was given up")
	for seed := range uint64(20) {
		require.Equal(t, byte(1), content(t, d.Crash(seed), "/s/a")[99*page])
	}
	require.ErrorIs(t, m.Populate(10*page, 1), vfs.ErrFault, "as on Linux")
	require.NoError(t, m.Populate(50*page, 1))
}

func TestRoomAfterACrash(t *testing.T) {
	d := limited(t, 10)
	f := put(t, d, "/s/a", filled('a', 2*page))
	require.NoError(t, f.Allocate(0, 4*page))
	require.NoError(t, f.DataSync())
	require.NoError(t, makeFile(d, "/s/new", "new"))
	for seed := range uint64(50) {
		after := d.Crash(seed)
		want := int64(6)
		if bytes.Equal(content(t, after, "/s/new"), []byte("new")) {
			want = 5
		}
		require.Equal(t, want, free(t, after), "seed %d", seed)
	}
	require.Equal(t, int64(5), free(t, d.Clone()))
}

func TestUsageWithoutALimit(t *testing.T) {
	d := newDisk(t)
	put(t, d, "/s/a", filled('a', page))
	u, err := d.Usage("/s")
	require.NoError(t, err)
	require.Equal(t, int64(page), u.TotalBytes-u.FreeBytes)
}
