//go:build linux || darwin || freebsd

package vfs_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/memfs"
)

// disks are the forms of a disk that must behave alike, each with an empty folder.
func disks() map[string]func(t *testing.T) (vfs.Disk, string) {
	return map[string]func(t *testing.T) (vfs.Disk, string){
		"real":  func(t *testing.T) (vfs.Disk, string) { return vfs.New(), t.TempDir() },
		"memfs": func(t *testing.T) (vfs.Disk, string) { return memfsDisk(t), "/store" },
		"overlay over real": func(t *testing.T) (vfs.Disk, string) {
			return overlay(t, vfs.New()), t.TempDir()
		},
		"overlay over memfs":   func(t *testing.T) (vfs.Disk, string) { return overlay(t, memfsDisk(t)), "/store" },
		"overlay over overlay": func(t *testing.T) (vfs.Disk, string) { return overlay(t, overlay(t, memfsDisk(t))), "/store" },
		"overlay, new folder": func(t *testing.T) (vfs.Disk, string) {
			o := overlay(t, vfs.New())
			dir := path.Join(t.TempDir(), "new", "store")
			require.NoError(t, o.MkdirAll(dir))
			return o, dir
		},
	}
}

func memfsDisk(t *testing.T) vfs.Disk {
	d := memfs.New()
	require.NoError(t, d.MkdirAll("/store"))
	return d
}

func overlay(t *testing.T, base vfs.Disk) *vfs.OverlayDisk {
	o := vfs.Overlay(base)
	t.Cleanup(func() { require.NoError(t, o.Close()) })
	return o
}

// onEach runs one test on every form of a disk.
func onEach(t *testing.T, test func(t *testing.T, d vfs.Disk, dir string)) {
	for name, open := range disks() {
		t.Run(name, func(t *testing.T) {
			d, dir := open(t)
			test(t, d, dir)
		})
	}
}

func put(t *testing.T, d vfs.Disk, name string, content string) {
	t.Helper()
	f, err := d.Create(name)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte(content), 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func get(t *testing.T, d vfs.Disk, name string) string {
	t.Helper()
	f, err := d.Open(name, false)
	require.NoError(t, err)
	defer f.Close()
	return string(all(t, f))
}

func all(t *testing.T, f vfs.File) []byte {
	t.Helper()
	size, err := f.Size()
	require.NoError(t, err)
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	require.NoError(t, err)
	require.Equal(t, int(size), n)
	return b
}

func create(t *testing.T, d vfs.Disk, name string, size int64) vfs.File {
	t.Helper()
	f, err := d.Create(name)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(size))
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func names(t *testing.T, d vfs.Disk, dir string) []string {
	t.Helper()
	entries, err := d.List(dir)
	require.NoError(t, err)
	out := []string{}
	for _, e := range entries {
		out = append(out, e.Name)
	}
	return out
}

// requirePathError checks that an error says what was done to which path.
func requirePathError(t *testing.T, err error, op, name string) {
	t.Helper()
	var pe *fs.PathError
	require.ErrorAs(t, err, &pe)
	require.Contains(t, pe.Op, op)
	require.Equal(t, name, pe.Path)
	var inner *fs.PathError
	require.False(t, errors.As(pe.Err, &inner), "the path is named twice: %v", err)
}

func TestCreateOpenRead(t *testing.T) {
	onEach(t, func(t *testing.T, d vfs.Disk, dir string) {
		name := path.Join(dir, "a")
		put(t, d, name, "hello")
		require.Equal(t, "hello", get(t, d, name))

		_, err := d.Create(name)
		require.ErrorIs(t, err, fs.ErrExist)
		requirePathError(t, err, "create", name)
		require.Equal(t, "hello", get(t, d, name), "a refused create changed the file")

		_, err = d.Open(path.Join(dir, "b"), true)
		require.ErrorIs(t, err, fs.ErrNotExist)
		requirePathError(t, err, "open", path.Join(dir, "b"))
		_, err = d.Create(path.Join(dir, "no folder", "b"))
		require.ErrorIs(t, err, fs.ErrNotExist)
		_, err = d.Create(path.Join(name, "b"))
		require.Error(t, err, "a file is no folder")
		_, err = d.Open(dir, false)
		require.Error(t, err, "a folder is no file")
	})
}

func TestReadAtTheEnd(t *testing.T) {
	onEach(t, func(t *testing.T, d vfs.Disk, dir string) {
		f := create(t, d, path.Join(dir, "a"), 0)
		_, err := f.WriteAt([]byte("0123456789"), 0)
		require.NoError(t, err)
		require.Equal(t, path.Join(dir, "a"), f.Name())
		p := make([]byte, 4)
		n, err := f.ReadAt(p, 8)
		require.True(t, err == io.EOF && n == 2, "%d bytes, %v", n, err) //nolint:errorlint // the bare value is promised
		require.Equal(t, "89", string(p[:n]))
		n, err = f.ReadAt(p, 10)
		require.True(t, err == io.EOF && n == 0, "%d bytes, %v", n, err) //nolint:errorlint // the bare value is promised
		n, err = f.ReadAt(p, 6)
		require.True(t, err == nil && n == 4, "%d bytes, %v", n, err)
		_, err = f.ReadAt(p, -1)
		requirePathError(t, err, "read", f.Name())
		_, err = f.WriteAt(p, -1)
		requirePathError(t, err, "write", f.Name())
	})
}

func TestWriteBehindTheEndLeavesZeros(t *testing.T) {
	onEach(t, func(t *testing.T, d vfs.Disk, dir string) {
		f := create(t, d, path.Join(dir, "a"), 0)
		n, err := f.WriteAt(nil, 5)
		require.NoError(t, err)
		require.Zero(t, n)
		require.Empty(t, all(t, f), "an empty write does not extend")
		_, err = f.WriteAt([]byte("x"), 3)
		require.NoError(t, err)
		require.Equal(t, "\x00\x00\x00x", string(all(t, f)))
	})
}

func TestTruncate(t *testing.T) {
	onEach(t, func(t *testing.T, d vfs.Disk, dir string) {
		f := create(t, d, path.Join(dir, "a"), 0)
		_, err := f.WriteAt(bytes.Repeat([]byte("x"), 5000), 0)
		require.NoError(t, err)
		require.NoError(t, f.Truncate(4097))
		require.NoError(t, f.Truncate(9000))
		want := append(bytes.Repeat([]byte("x"), 4097), make([]byte, 9000-4097)...)
		require.True(t, bytes.Equal(want, all(t, f)))
		requirePathError(t, f.Truncate(-1), "truncate", f.Name())
	})
}

func TestAllocate(t *testing.T) {
	onEach(t, func(t *testing.T, d vfs.Disk, dir string) {
		f := create(t, d, path.Join(dir, "a"), 0)
		_, err := f.WriteAt([]byte("abc"), 0)
		require.NoError(t, err)
		require.NoError(t, f.Allocate(0, 10000))
		require.Equal(t, append([]byte("abc"), make([]byte, 9997)...), all(t, f))
		require.NoError(t, f.Allocate(0, 100))
		require.NoError(t, f.Allocate(20000, 0))
		require.Len(t, all(t, f), 10000, "a file does not shrink, and nothing adds nothing")
		require.NoError(t, f.Allocate(12000, 8))
		require.Len(t, all(t, f), 12008)
		for _, r := range [][2]int64{{-1, 1}, {0, -1}, {1 << 62, 1 << 62}} {
			requirePathError(t, f.Allocate(r[0], r[1]), "allocate", f.Name())
		}
	})
}

func TestSyncAndWriteback(t *testing.T) {
	onEach(t, func(t *testing.T, d vfs.Disk, dir string) {
		f := create(t, d, path.Join(dir, "a"), 8192)
		m, err := f.Map(8192, vfs.MapShared)
		require.NoError(t, err)
		m.Bytes()[5000] = 1
		require.NoError(t, f.StartWriteback(0, 8192))
		require.NoError(t, f.StartWriteback(0, 0))
		requirePathError(t, f.StartWriteback(-1, 1), "start writing", f.Name())
		require.NoError(t, f.DataSync())
		require.NoError(t, d.SyncDir(dir))
		require.NoError(t, m.Unmap())
		require.ErrorIs(t, d.SyncDir(path.Join(dir, "none")), fs.ErrNotExist)
		requirePathError(t, d.SyncDir(f.Name()), "sync folder", f.Name())
	})
}

func TestMapSharedAndFileAreOne(t *testing.T) {
	onEach(t, func(t *testing.T, d vfs.Disk, dir string) {
		f := create(t, d, path.Join(dir, "a"), 3*4096)
		w, err := f.Map(2*4096, vfs.MapShared)
		require.NoError(t, err)
		r, err := f.Map(2*4096, vfs.MapRead)
		require.NoError(t, err)
		require.Len(t, w.Bytes(), 2*4096)
		require.NoError(t, w.Populate(100, 5000))
		require.NoError(t, r.Populate(0, 2*4096))

		w.Bytes()[4100] = 'm'
		_, err = f.WriteAt([]byte("w"), 4101)
		require.NoError(t, err)
		other, err := d.Open(f.Name(), true)
		require.NoError(t, err)
		_, err = other.WriteAt([]byte("o"), 4102)
		require.NoError(t, err)
		for _, got := range [][]byte{w.Bytes()[4100:4103], r.Bytes()[4100:4103], all(t, f)[4100:4103], all(t, other)[4100:4103]} {
			require.Equal(t, "mwo", string(got))
		}

		require.NoError(t, f.Close())
		require.NoError(t, other.Close())
		w.Bytes()[0] = 'z'
		require.Equal(t, byte('z'), r.Bytes()[0], "mappings outlive the file")
		require.NoError(t, w.Unmap())
		require.NoError(t, r.Unmap())
		requirePathError(t, w.Unmap(), "unmap", f.Name())
		require.Equal(t, byte('z'), get(t, d, f.Name())[0])
	})
}

func TestPagesThatAreLetGoKeepTheirContent(t *testing.T) {
	onEach(t, func(t *testing.T, d vfs.Disk, dir string) {
		f := create(t, d, path.Join(dir, "a"), 4*4096)
		for _, mode := range []vfs.MapMode{vfs.MapShared, vfs.MapPrivate} {
			m, err := f.Map(4*4096, mode)
			require.NoError(t, err)
			for i := range m.Bytes() {
				m.Bytes()[i] = byte(mode) + 'a'
			}
			for _, r := range [][2]int64{{0, 4 * 4096}, {100, 5000}, {100, 100}, {4096, 0}} {
				require.NoError(t, m.LetGo(r[0], r[1]))
			}
			require.NoError(t, f.DataSync())
			require.Equal(t, bytes.Repeat([]byte{byte(mode) + 'a'}, 4*4096), m.Bytes())
			requirePathError(t, m.LetGo(1, 4*4096), "let go of", f.Name())
			require.NoError(t, m.Unmap())
		}
		require.Equal(t, bytes.Repeat([]byte{byte(vfs.MapShared) + 'a'}, 4*4096), all(t, f))
		require.NoError(t, f.Close())
	})
}

func TestSyncingAPartOfAFile(t *testing.T) {
	onEach(t, func(t *testing.T, d vfs.Disk, dir string) {
		f := create(t, d, path.Join(dir, "a"), 3*4096)
		m, err := f.Map(3*4096, vfs.MapShared)
		require.NoError(t, err)
		copy(m.Bytes()[4000:], "through the map")
		_, err = f.WriteAt([]byte("by a call"), 8192)
		require.NoError(t, err)
		for _, r := range [][2]int64{{4000, 15}, {8192, 9}, {0, 3 * 4096}, {5, 0}, {3*4096 - 1, 1}} {
			require.NoError(t, m.DataSync(r[0], r[1]), r)
		}
		for _, r := range [][2]int64{{1, 3 * 4096}, {-1, 1}, {3 * 4096, 1}} {
			requirePathError(t, m.DataSync(r[0], r[1]), "sync", f.Name())
		}
		require.Equal(t, "through the map", string(all(t, f)[4000:4015]))
		require.NoError(t, m.Unmap())
		require.NoError(t, f.Close())
	})
}

func TestMapPrivate(t *testing.T) {
	onEach(t, func(t *testing.T, d vfs.Disk, dir string) {
		name := path.Join(dir, "a")
		put(t, d, name, "0123456789")
		f, err := d.Open(name, false)
		require.NoError(t, err)
		m, err := f.Map(10, vfs.MapPrivate)
		require.NoError(t, err)
		require.NoError(t, m.Populate(0, 10))
		require.Equal(t, "0123456789", string(m.Bytes()))
		m.Bytes()[0] = 'p'
		require.Equal(t, "0123456789", string(all(t, f)))
		require.NoError(t, m.Unmap())
		require.Error(t, m.Unmap())
		require.NoError(t, f.Close())
		require.Equal(t, "0123456789", get(t, d, name))
	})
}

func TestMapRefuses(t *testing.T) {
	onEach(t, func(t *testing.T, d vfs.Disk, dir string) {
		f := create(t, d, path.Join(dir, "a"), 100)
		for _, n := range []int64{-1, 0, 101} {
			_, err := f.Map(n, vfs.MapRead)
			require.ErrorIs(t, err, fs.ErrInvalid, "%d bytes", n)
			requirePathError(t, err, "map", f.Name())
		}
		m, err := f.Map(100, vfs.MapShared)
		require.NoError(t, err)
		for _, r := range [][2]int64{{-1, 1}, {0, -1}, {0, 101}, {101, 0}, {1 << 62, 1 << 62}} {
			requirePathError(t, m.Populate(r[0], r[1]), "populate", f.Name())
		}
		require.NoError(t, m.Unmap())
	})
}

func TestGrowWhileMapped(t *testing.T) {
	onEach(t, func(t *testing.T, d vfs.Disk, dir string) {
		f := create(t, d, path.Join(dir, "a"), 4096)
		m, err := f.Map(4096, vfs.MapShared)
		require.NoError(t, err)
		require.NoError(t, f.Truncate(8192))
		_, err = f.WriteAt([]byte("fg"), 4095)
		require.NoError(t, err)
		m.Bytes()[0] = 'm'
		require.Equal(t, byte('f'), m.Bytes()[4095])
		got := all(t, f)
		require.Equal(t, "m", string(got[:1]))
		require.Equal(t, "fg", string(got[4095:4097]))
		require.NoError(t, m.Unmap())
		m, err = f.Map(8192, vfs.MapShared)
		require.NoError(t, err)
		require.True(t, bytes.Equal(got, m.Bytes()))
		require.NoError(t, m.Unmap())
	})
}

func TestReadOnlyHandle(t *testing.T) {
	onEach(t, func(t *testing.T, d vfs.Disk, dir string) {
		name := path.Join(dir, "a")
		put(t, d, name, "hello")
		f, err := d.Open(name, false)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte("x"), 0)
		requirePathError(t, err, "write", name)
		requirePathError(t, f.Truncate(0), "truncate", name)
		requirePathError(t, f.Allocate(0, 100), "allocate", name)
		_, err = f.Map(5, vfs.MapShared)
		require.ErrorIs(t, err, fs.ErrPermission)
		m, err := f.Map(5, vfs.MapRead)
		require.NoError(t, err)
		require.Equal(t, "hello", string(m.Bytes()))
		require.NoError(t, m.Unmap())
		require.NoError(t, f.Close())
		require.Equal(t, "hello", get(t, d, name))
	})
}

func TestAfterClose(t *testing.T) {
	onEach(t, func(t *testing.T, d vfs.Disk, dir string) {
		f := create(t, d, path.Join(dir, "a"), 10)
		require.NoError(t, f.Close())
		_, readErr := f.ReadAt(make([]byte, 1), 0)
		_, writeErr := f.WriteAt(make([]byte, 1), 0)
		_, sizeErr := f.Size()
		_, mapErr := f.Map(10, vfs.MapRead)
		for op, err := range map[string]error{
			"read": readErr, "write": writeErr, "size": sizeErr, "map": mapErr, "close": f.Close(), "truncate": f.Truncate(1),
			"allocate": f.Allocate(0, 1), "sync": f.DataSync(), "writeback": f.StartWriteback(0, 1),
		} {
			require.ErrorIs(t, err, fs.ErrClosed, op)
		}
	})
}

func TestRemove(t *testing.T) {
	onEach(t, func(t *testing.T, d vfs.Disk, dir string) {
		name, sub := path.Join(dir, "a"), path.Join(dir, "sub")
		put(t, d, name, "hello")
		f, err := d.Open(name, true)
		require.NoError(t, err)
		require.NoError(t, d.Remove(name))
		require.Equal(t, "hello", string(all(t, f)), "an open file stays readable")
		_, err = d.Stat(name)
		require.ErrorIs(t, err, fs.ErrNotExist)
		err = d.Remove(name)
		require.ErrorIs(t, err, fs.ErrNotExist)
		requirePathError(t, err, "remove", name)
		put(t, d, name, "again")
		require.NoError(t, f.Close())
		require.Equal(t, "again", get(t, d, name))

		require.NoError(t, d.MkdirAll(sub))
		put(t, d, path.Join(sub, "b"), "")
		require.Error(t, d.Remove(sub), "a folder with a file in it")
		require.NoError(t, d.Remove(path.Join(sub, "b")))
		require.NoError(t, d.Remove(sub))
		require.Equal(t, []string{"a"}, names(t, d, dir))
	})
}

func TestMkdir(t *testing.T) {
	onEach(t, func(t *testing.T, d vfs.Disk, dir string) {
		sub := path.Join(dir, "sub")
		require.NoError(t, d.Mkdir(sub))
		err := d.Mkdir(sub)
		require.ErrorIs(t, err, fs.ErrExist)
		requirePathError(t, err, "mkdir", sub)
		put(t, d, path.Join(sub, "a"), "")
		require.ErrorIs(t, d.Mkdir(path.Join(sub, "a")), fs.ErrExist, "a file of that name")
		require.ErrorIs(t, d.Mkdir(path.Join(dir, "none", "b")), fs.ErrNotExist, "no parent")
		require.Error(t, d.Mkdir(path.Join(sub, "a", "b")), "the parent is a file")
		require.NoError(t, d.Mkdir(path.Join(sub, "b")))
		require.Equal(t, []string{"a", "b"}, names(t, d, sub))
	})
}

func TestRename(t *testing.T) {
	onEach(t, func(t *testing.T, d vfs.Disk, dir string) {
		a, b, sub := path.Join(dir, "a"), path.Join(dir, "b"), path.Join(dir, "sub")
		put(t, d, a, "new")
		put(t, d, b, "old")
		old, err := d.Open(b, false)
		require.NoError(t, err)
		require.NoError(t, d.Rename(a, b))
		require.Equal(t, "old", string(all(t, old)), "who has the old file open keeps it")
		require.NoError(t, old.Close())
		require.Equal(t, "new", get(t, d, b))
		require.Equal(t, []string{"b"}, names(t, d, dir))

		err = d.Rename(a, b)
		require.ErrorIs(t, err, fs.ErrNotExist)
		requirePathError(t, err, "rename", a)
		require.ErrorContains(t, err, b)
		require.NoError(t, d.Rename(b, b))
		require.NoError(t, d.MkdirAll(sub))
		require.ErrorIs(t, d.Rename(b, sub), fs.ErrExist)
		require.NoError(t, d.Rename(b, path.Join(sub, "c")))
		require.Equal(t, "new", get(t, d, path.Join(sub, "c")))

		require.NoError(t, d.Rename(sub, path.Join(dir, "moved")))
		require.Equal(t, "new", get(t, d, path.Join(dir, "moved", "c")))
		require.Equal(t, []string{"moved"}, names(t, d, dir))
		require.Error(t, d.Rename(path.Join(dir, "moved"), path.Join(dir, "moved", "in itself")))
	})
}

func TestListAndStat(t *testing.T) {
	onEach(t, func(t *testing.T, d vfs.Disk, dir string) {
		put(t, d, path.Join(dir, "b"), "12345")
		put(t, d, path.Join(dir, "B"), "")
		put(t, d, path.Join(dir, "10"), "x")
		require.NoError(t, d.MkdirAll(path.Join(dir, "a", "deep")))
		entries, err := d.List(dir)
		require.NoError(t, err)
		want := []vfs.Entry{{Name: "10", Size: 1}, {Name: "B"}, {Name: "a", Dir: true}, {Name: "b", Size: 5}}
		require.Len(t, entries, len(want))
		for i, e := range entries {
			require.False(t, e.ModTime.IsZero(), e.Name)
			e.ModTime = want[i].ModTime
			require.Equal(t, want[i], e)
		}
		st, err := d.Stat(path.Join(dir, "b"))
		require.NoError(t, err)
		require.Equal(t, int64(5), st.Size)
		require.Equal(t, "b", st.Name)
		st, err = d.Stat(path.Join(dir, "a"))
		require.NoError(t, err)
		require.True(t, st.Dir)
		require.Empty(t, names(t, d, path.Join(dir, "a", "deep")))

		_, err = d.List(path.Join(dir, "none"))
		require.ErrorIs(t, err, fs.ErrNotExist)
		_, err = d.List(path.Join(dir, "b"))
		requirePathError(t, err, "list", path.Join(dir, "b"))
		_, err = d.Stat(path.Join(dir, "none"))
		requirePathError(t, err, "stat", path.Join(dir, "none"))
	})
}

func TestMkdirAll(t *testing.T) {
	onEach(t, func(t *testing.T, d vfs.Disk, dir string) {
		deep := path.Join(dir, "a", "b", "c")
		require.NoError(t, d.MkdirAll(deep))
		require.NoError(t, d.MkdirAll(deep))
		put(t, d, path.Join(deep, "f"), "x")
		require.Error(t, d.MkdirAll(path.Join(deep, "f")), "a file is in the way")
		require.Error(t, d.MkdirAll(path.Join(deep, "f", "g")), "a file is in the way")
	})
}

func TestUsage(t *testing.T) {
	onEach(t, func(t *testing.T, d vfs.Disk, dir string) {
		u, err := d.Usage(dir)
		require.NoError(t, err)
		require.Positive(t, u.FreeBytes)
		require.GreaterOrEqual(t, u.TotalBytes, u.FreeBytes+u.UsedBytes)
		require.GreaterOrEqual(t, u.UsedPercent(), 0)
		require.Equal(t, -1, vfs.Usage{}.UsedPercent(), "unknown")
		require.Equal(t, 34, vfs.Usage{TotalBytes: 400, UsedBytes: 100, FreeBytes: 200}.UsedPercent(), "rounded up, the reserve left out")
		_, err = d.Usage(path.Join(dir, "none"))
		require.ErrorIs(t, err, fs.ErrNotExist)
	})
}

// TestConcurrentUse is for the race detector; every goroutine has its own file and page.
func TestConcurrentUse(t *testing.T) {
	onEach(t, func(t *testing.T, d vfs.Disk, dir string) {
		shared := create(t, d, path.Join(dir, "shared"), 8*4096)
		m, err := shared.Map(8*4096, vfs.MapShared)
		require.NoError(t, err)
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() { useDisk(t, d, path.Join(dir, fmt.Sprint(i))) })
			group.Go(func() {
				for k := range 200 {
					m.Bytes()[i*4096+k]++
					if k%50 == 0 {
						requireNoError(t, shared.DataSync())
					}
				}
			})
		}
		group.Wait()
		require.NoError(t, m.Unmap())
		require.Equal(t, []string{"shared"}, names(t, d, dir))
	})
}

func useDisk(t *testing.T, d vfs.Disk, name string) {
	f, err := d.Create(name)
	requireNoError(t, err)
	if err != nil {
		return
	}
	_, err = f.WriteAt(bytes.Repeat([]byte(name), 100), 3000)
	requireNoError(t, err)
	requireNoError(t, f.DataSync())
	_, err = d.List(path.Dir(name))
	requireNoError(t, err)
	requireNoError(t, f.Close())
	requireNoError(t, d.Rename(name, name+"x"))
	requireNoError(t, d.SyncDir(path.Dir(name)))
	requireNoError(t, d.Remove(name+"x"))
}

// requireNoError may be called on any goroutine.
func requireNoError(t *testing.T, err error) {
	if err != nil {
		t.Error(err)
	}
}

// TestDisksAgree runs the same random operations on all forms and compares what can be seen.
func TestDisksAgree(t *testing.T) {
	for seed := range uint64(40) {
		want, first := "", ""
		for name, open := range disks() {
			d, dir := open(t)
			got := history(t, d, dir, seed)
			if first == "" {
				first, want = name, got
			}
			require.Equal(t, want, got, "seed %d: %s and %s differ", seed, first, name)
		}
	}
}

// history runs random operations and writes down how they ended.
func history(t *testing.T, d vfs.Disk, dir string, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 2))
	var log bytes.Buffer
	pick := func() string { return path.Join(dir, []string{"a", "b", "sub/a", "sub/b"}[r.IntN(4)]) }
	for range 40 {
		name, other, off, size := pick(), pick(), r.Int64N(9000), r.IntN(6000)
		var err error
		switch r.IntN(6) {
		case 0:
			var f vfs.File
			if f, err = d.Create(name); err == nil {
				require.NoError(t, f.Close())
			}
		case 1:
			err = d.Remove(name)
		case 2:
			err = d.Rename(name, other)
		case 3:
			err = d.MkdirAll(path.Join(dir, "sub"))
		default:
			err = writeSome(d, name, off, size)
		}
		fmt.Fprintln(&log, err == nil, errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrExist))
	}
	dump(t, d, dir, &log)
	return log.String()
}

// writeSome changes an existing file by a write, a mapping and a new length.
func writeSome(d vfs.Disk, name string, off int64, n int) error {
	f, err := d.Open(name, true)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(bytes.Repeat([]byte{byte(n)}, n), off); err != nil {
		return err
	}
	size, err := f.Size()
	if err != nil || size == 0 {
		return err
	}
	m, err := f.Map(size, vfs.MapShared)
	if err != nil {
		return err
	}
	m.Bytes()[size/2]++
	return errors.Join(m.Unmap(), f.Truncate(size-size/3))
}

func dump(t *testing.T, d vfs.Disk, dir string, log io.Writer) {
	entries, err := d.List(dir)
	require.NoError(t, err)
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		fmt.Fprintln(log, e.Name, e.Size, e.Dir)
		if e.Dir {
			dump(t, d, name, log)
		} else {
			fmt.Fprintf(log, "%x\n", sha256.Sum256([]byte(get(t, d, name))))
		}
	}
}
