package memfs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/memfs"
)

// asIs is a disk with a synced file of two pages, and a folder.
func asIs(t *testing.T) *memfs.Disk {
	d := newDisk(t)
	require.NoError(t, d.MkdirAll("/s/folder"))
	require.NoError(t, put(t, d, "/s/f", filled('a', 2*page)).Close())
	return d
}

// change opens the file of the disk for writing, has something done with it and closes it.
func change(t *testing.T, d *memfs.Disk, do func(f vfs.File) error) {
	t.Helper()
	f, err := d.Open("/s/f", true)
	require.NoError(t, err)
	require.NoError(t, do(f))
	require.NoError(t, f.Close())
}

func writing(b byte, n int, off int64) func(vfs.File) error {
	return func(f vfs.File) error {
		_, err := f.WriteAt(filled(b, n), off)
		return err
	}
}

func both(first, then func(vfs.File) error) func(vfs.File) error {
	return func(f vfs.File) error {
		if err := first(f); err != nil {
			return err
		}
		return then(f)
	}
}

func synced(do func(vfs.File) error) func(vfs.File) error { return both(do, vfs.File.DataSync) }

func onFile(do func(vfs.File) error) func(*testing.T, *memfs.Disk) {
	return func(t *testing.T, d *memfs.Disk) { change(t, d, do) }
}

func onDisk(do func(d *memfs.Disk) error) func(*testing.T, *memfs.Disk) {
	return func(t *testing.T, d *memfs.Disk) { require.NoError(t, do(d)) }
}

// differences are what can be done to a disk that a program may see, now or behind a power cut. None of them leaves what another one does.
var differences = map[string]func(*testing.T, *memfs.Disk){
	"a byte is written":                      onFile(writing('b', 1, page)),
	"another byte is written":                onFile(writing('b', 1, page-1)),
	"a byte is synced":                       onFile(synced(writing('b', 1, page))),
	"a byte is synced and written back":      onFile(both(synced(writing('b', 1, page)), writing('a', 1, page))),
	"another one is synced and written back": onFile(both(synced(writing('c', 1, page)), writing('a', 1, page))),
	"zeros are added":                        onFile(func(f vfs.File) error { return f.Truncate(2*page + 1) }),
	"added zeros are synced":                 onFile(synced(func(f vfs.File) error { return f.Truncate(2*page + 1) })),
	"a page of zeros is added":               onFile(func(f vfs.File) error { return f.Truncate(3 * page) }),
	"it is cut":                              onFile(func(f vfs.File) error { return f.Truncate(page) }),
	"the cut is synced":                      onFile(synced(func(f vfs.File) error { return f.Truncate(page) })),
	"it is renamed":                          onDisk(func(d *memfs.Disk) error { return d.Rename("/s/f", "/s/g") }),
	"the new name is synced": func(t *testing.T, d *memfs.Disk) {
		require.NoError(t, d.Rename("/s/f", "/s/g"))
		require.NoError(t, d.SyncDir("/s"))
	},
	"another one has its name": func(t *testing.T, d *memfs.Disk) {
		require.NoError(t, put(t, d, "/s/g", filled('g', page)).Close())
		require.NoError(t, d.Rename("/s/g", "/s/f"))
	},
	"another one has its name, and it was another one": func(t *testing.T, d *memfs.Disk) {
		change(t, d, synced(writing('b', 1, 0)))
		require.NoError(t, put(t, d, "/s/g", filled('g', page)).Close())
		require.NoError(t, d.Rename("/s/g", "/s/f"))
	},
	"it is in the folder": onDisk(func(d *memfs.Disk) error { return d.Rename("/s/f", "/s/folder/f") }),
	"it is removed":       onDisk(func(d *memfs.Disk) error { return d.Remove("/s/f") }),
	"another one is made and removed": func(t *testing.T, d *memfs.Disk) {
		require.NoError(t, makeFile(d, "/s/other", ""))
		require.NoError(t, d.Remove("/s/other"))
	},
	"a folder is made": onDisk(func(d *memfs.Disk) error { return d.Mkdir("/s/another") }),
	"a file is made":   onDisk(func(d *memfs.Disk) error { return makeFile(d, "/s/another", "") }),
	"a written page is given up": func(t *testing.T, d *memfs.Disk) {
		change(t, d, writing('b', 1, page))
		failSyncs(d)
		f, err := d.Open("/s/f", true)
		require.NoError(t, err)
		require.Error(t, f.DataSync())
		require.NoError(t, f.Close())
		d.Inject(nil)
	},
	"the disk has an end": onDisk(func(d *memfs.Disk) error { d.SetCapacity(8 * page); return nil }),
	"it has an end, and room is reserved": func(t *testing.T, d *memfs.Disk) {
		d.SetCapacity(8 * page)
		change(t, d, synced(func(f vfs.File) error { return f.Truncate(3 * page) }))
		change(t, d, func(f vfs.File) error { return f.Allocate(2*page, page) })
	},
	"it has an end, and room is not reserved": func(t *testing.T, d *memfs.Disk) {
		d.SetCapacity(8 * page)
		change(t, d, synced(func(f vfs.File) error { return f.Truncate(3 * page) }))
	},
}

// TestDigestTellsDisksApart that differ in anything.
func TestDigestTellsDisksApart(t *testing.T) {
	seen := map[[32]byte]string{asIs(t).Digest(): "nothing"}
	for name, do := range differences {
		d := asIs(t)
		do(t, d)
		require.NotContains(t, seen, d.Digest(), "%s: as if %s", name, seen[d.Digest()])
		seen[d.Digest()] = name
		require.Equal(t, d.Digest(), d.Clone().Digest(), name)
	}
}

// TestDigestOfEqualDisks is the same, however they have come to be: built again, looked at, written as it was, or behind power cuts that find
// everything synced.
func TestDigestOfEqualDisks(t *testing.T) {
	d := asIs(t)
	want := d.Digest()
	require.Equal(t, want, asIs(t).Digest())
	for seed := range uint64(20) {
		require.Equal(t, want, d.Crash(seed).Digest())
	}
	content(t, d, "/s/f")
	change(t, d, writing('a', 2*page, 0))
	require.Equal(t, want, d.Digest())
	change(t, d, func(f vfs.File) error {
		m, err := f.Map(2*page, vfs.MapShared)
		if err == nil {
			m.Bytes()[5] = 'b'
			require.NotEqual(t, want, d.Digest())
			m.Bytes()[5] = 'a'
			err = m.Unmap()
		}
		return err
	})
	require.Equal(t, want, d.Digest())
	l, err := d.Lock("/s/f")
	require.NoError(t, err)
	require.Equal(t, want, d.Digest())
	require.NoError(t, l.Close())
}
