package memfs_test

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/memfs"
)

var errInjected = errors.New("injected")

// operations are one of each kind on a disk with the files a and b; f is a, open, and m a mapping of it.
func operations(d *memfs.Disk, f vfs.File, m vfs.Mapping) []struct {
	op  memfs.Op
	run func() error
} {
	second := func(_ any, err error) error { return err }
	return []struct {
		op  memfs.Op
		run func() error
	}{
		{memfs.Op{Kind: memfs.KindOpen, Name: "/s/b"}, func() error { return second(d.Open("/s/b", false)) }},
		{memfs.Op{Kind: memfs.KindCreate, Name: "/s/c"}, func() error { return second(d.Create("/s/c")) }},
		{memfs.Op{Kind: memfs.KindRemove, Name: "/s/b"}, func() error { return d.Remove("/s/b") }},
		{memfs.Op{Kind: memfs.KindRename, Name: "/s/b", To: "/s/d"}, func() error { return d.Rename("/s/b", "/s/d") }},
		{memfs.Op{Kind: memfs.KindMkdir, Name: "/s/e"}, func() error { return d.MkdirAll("/s/e") }},
		{memfs.Op{Kind: memfs.KindMkdir, Name: "/s/f"}, func() error { return d.Mkdir("/s/f") }},
		{memfs.Op{Kind: memfs.KindList, Name: "/s"}, func() error { return second(d.List("/s")) }},
		{memfs.Op{Kind: memfs.KindStat, Name: "/s"}, func() error { return second(d.Stat("/s")) }},
		{memfs.Op{Kind: memfs.KindStat, Name: "/s/a"}, func() error { return second(f.Size()) }},
		{memfs.Op{Kind: memfs.KindSyncDir, Name: "/s"}, func() error { return d.SyncDir("/s") }},
		{memfs.Op{Kind: memfs.KindLock, Name: "/s/lock"}, func() error { return second(d.Lock("/s/lock")) }},
		{memfs.Op{Kind: memfs.KindUsage, Name: "/s"}, func() error { return second(d.Usage("/s")) }},
		{memfs.Op{Kind: memfs.KindRead, Name: "/s/a", Off: 2, N: 3}, func() error { return second(f.ReadAt(make([]byte, 3), 2)) }},
		{memfs.Op{Kind: memfs.KindWrite, Name: "/s/a", Off: 2, N: 3}, func() error { return second(f.WriteAt([]byte("xyz"), 2)) }},
		{memfs.Op{Kind: memfs.KindTruncate, Name: "/s/a", Off: 9}, func() error { return f.Truncate(9) }},
		{memfs.Op{Kind: memfs.KindAllocate, Name: "/s/a", Off: 1, N: 99}, func() error { return f.Allocate(1, 99) }},
		{memfs.Op{Kind: memfs.KindWriteback, Name: "/s/a", Off: 1, N: 2}, func() error { return f.StartWriteback(1, 2) }},
		{memfs.Op{Kind: memfs.KindMap, Name: "/s/a", N: 4}, func() error { return second(f.Map(4, vfs.MapShared)) }},
		{memfs.Op{Kind: memfs.KindLockPages, Name: "/s/a", N: int64(len(m.Bytes()))}, m.Lock},
		{memfs.Op{Kind: memfs.KindPopulate, Name: "/s/a", Off: 1, N: 2}, func() error { return m.Populate(1, 2) }},
		{memfs.Op{Kind: memfs.KindDataSync, Name: "/s/a"}, f.DataSync},
		{memfs.Op{Kind: memfs.KindClose, Name: "/s/a"}, f.Close},
	}
}

func TestInjectSeesAndFailsEveryOperation(t *testing.T) {
	d := newDisk(t)
	f := put(t, d, "/s/a", filled('a', 50))
	put(t, d, "/s/b", nil)
	m, err := f.Map(50, vfs.MapShared)
	require.NoError(t, err)
	before := picture(t, d, "/")

	var got []memfs.Op
	fail := errInjected
	hook := func(op memfs.Op) error {
		got = append(got, op)
		return fail
	}
	kinds := map[memfs.Kind]bool{}
	for _, o := range operations(d, f, m) {
		d.Inject(hook)
		err := o.run()
		require.ErrorIs(t, err, errInjected, "%v", o.op)
		var pe *fs.PathError
		require.ErrorAs(t, err, &pe)
		require.Equal(t, o.op.Name, pe.Path)
		require.Contains(t, err.Error(), o.op.Kind.String())
		require.Equal(t, []memfs.Op{o.op}, got)
		got = nil
		kinds[o.op.Kind] = true
		d.Inject(nil)
		require.Equal(t, before, picture(t, d, "/"), "%v failed and happened", o.op)
	}
	require.Len(t, kinds, int(memfs.KindClose)+1, "a kind is not tested")
	require.ErrorIs(t, f.Close(), fs.ErrClosed, "a failed close closes")
	require.Empty(t, got, "a hook was called after its end")
}

func TestOperationsWorkWithAHookThatLetsThem(t *testing.T) {
	d := newDisk(t)
	f := put(t, d, "/s/a", filled('a', 50))
	put(t, d, "/s/b", nil)
	put(t, d, "/s/d", nil)
	m, err := f.Map(50, vfs.MapShared)
	require.NoError(t, err)
	d.Inject(func(memfs.Op) error { return nil })
	for _, o := range operations(d, f, m) {
		if o.op.Kind == memfs.KindRename {
			continue // b is gone by then
		}
		require.NoError(t, o.run(), "%v", o.op)
	}
}

func TestShortWrite(t *testing.T) {
	d := newDisk(t)
	f := put(t, d, "/s/a", filled('o', 10))
	d.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindWrite {
			return memfs.Short(3, syscall.EIO)
		}
		return nil
	})
	n, err := f.WriteAt([]byte("nnnnn"), 1)
	require.Equal(t, 3, n)
	require.ErrorIs(t, err, syscall.EIO)
	require.ErrorContains(t, err, "after 3 bytes")
	require.Equal(t, "onnnoooooo", string(content(t, d, "/s/a")))
	n, err = f.WriteAt([]byte("x"), 0)
	require.Equal(t, 1, n)
	require.Error(t, err)
}

// TestStalledOperation: one operation that hangs does not hold up others.
func TestStalledOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t)
		f := put(t, d, "/s/a", filled('o', 10))
		release := make(chan struct{})
		d.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindDataSync {
				<-release
			}
			return nil
		})
		done := false
		go func() {
			requireNoError(t, f.DataSync())
			done = true
		}()
		synctest.Wait()
		write(t, f, []byte("n"), 0)
		require.NotNil(t, d.Crash(1))
		require.False(t, done, "the sync did not stall")
		close(release)
		synctest.Wait()
		require.True(t, done)
	})
}

func requireNoError(t *testing.T, err error) {
	if err != nil {
		t.Error(err)
	}
}

// TestCrashAtEveryPoint is the loop that the hook is made for: a file is replaced by way of a temporary one, and after
// whatever operation the power fails, the old or the new content is there.
func TestCrashAtEveryPoint(t *testing.T) {
	replace := func(d *memfs.Disk) error {
		_ = d.Remove("/s/a.tmp")
		return errors.Join(makeFile(d, "/s/a.tmp", "new"), d.Rename("/s/a.tmp", "/s/a"), d.SyncDir("/s"))
	}
	for point := 0; ; point++ {
		d := newDisk(t)
		put(t, d, "/s/a", []byte("old"))
		count := 0
		var cut *memfs.Disk
		d.Inject(func(op memfs.Op) error {
			if op.Kind.Changes() {
				if count == point {
					cut = d.Clone()
				}
				count++
			}
			return nil
		})
		require.NoError(t, replace(d))
		if cut == nil {
			require.Equal(t, 6, count, "remove, create, write, sync, rename, sync folder")
			break
		}
		for seed := range uint64(100) {
			require.Contains(t, []string{"old", "new"}, string(content(t, cut.Crash(seed), "/s/a")), "point %d seed %d", point, seed)
		}
	}
}

func failSyncs(d *memfs.Disk) {
	d.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindDataSync {
			return syscall.EIO
		}
		return nil
	})
}

// TestFailedSyncIsNotRepeatable: who only syncs again, as many programs did, loses the data.
func TestFailedSyncIsNotRepeatable(t *testing.T) {
	for _, way := range []string{"write", "map"} {
		d := newDisk(t)
		f := put(t, d, "/s/a", filled('o', 2*page))
		m, err := f.Map(2*page, vfs.MapShared)
		require.NoError(t, err)
		if way == "map" {
			copy(m.Bytes(), filled('n', page))
		} else {
			require.NoError(t, m.Unmap())
			write(t, f, filled('n', page), 0)
		}
		failSyncs(d)
		require.ErrorIs(t, f.DataSync(), syscall.EIO)
		d.Inject(nil)
		write(t, f, filled('x', page), page)
		require.NoError(t, f.DataSync())
		require.Equal(t, byte('n'), content(t, d, "/s/a")[0], "programs see what was written")
		seen := outcomes(d, func(after *memfs.Disk) string { return shape(t, content(t, after, "/s/a")) })
		requireOutcomes(t, seen, "ox", "nx", "Tx")
		seen = outcomes(syncedClone(t, d), func(after *memfs.Disk) string { return shape(t, content(t, after, "/s/a")) })
		requireOutcomes(t, seen, "ox", "nx", "Tx")

		write(t, f, filled('n', page), 0)
		require.NoError(t, f.DataSync())
		seen = outcomes(d, func(after *memfs.Disk) string { return shape(t, content(t, after, "/s/a")) })
		requireOutcomes(t, seen, "nx")
	}
}

// syncedClone is what a program does that was killed after a failed sync and syncs when it starts again.
func syncedClone(t *testing.T, d *memfs.Disk) *memfs.Disk {
	t.Helper()
	c := d.Clone()
	f, err := c.Open("/s/a", true)
	require.NoError(t, err)
	require.NoError(t, f.DataSync())
	return c
}

func TestKind(t *testing.T) {
	require.Equal(t, "close", memfs.KindClose.String())
	require.Equal(t, "kind 99", memfs.Kind(99).String())
	require.False(t, memfs.KindRead.Changes())
	require.True(t, memfs.KindWrite.Changes())
}
