//go:build linux || darwin || freebsd

package vfs_test

import (
	"bytes"
	"io/fs"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/memfs"
)

// TestOverlayNeverChangesTheBase runs random operations on an overlay over a filled base.
func TestOverlayNeverChangesTheBase(t *testing.T) {
	bases := map[string]func(t *testing.T) (vfs.Disk, string){
		"real":  func(t *testing.T) (vfs.Disk, string) { return vfs.New(), t.TempDir() },
		"memfs": func(t *testing.T) (vfs.Disk, string) { return memfsDisk(t), "/store" },
	}
	for name, open := range bases {
		t.Run(name, func(t *testing.T) {
			base, dir := open(t)
			history(t, base, dir, 7)
			before := &bytes.Buffer{}
			dump(t, base, dir, before)
			require.Contains(t, before.String(), "sub", "the seed makes an empty base")
			for seed := range uint64(20) {
				o := vfs.Overlay(base)
				history(t, o, dir, seed)
				require.NoError(t, o.Close())
				after := &bytes.Buffer{}
				dump(t, base, dir, after)
				require.Equal(t, before.String(), after.String(), "seed %d", seed)
			}
		})
	}
}

// TestOverlayBehavesLikeACopy compares an overlay over a filled base with a disk that has the same files for itself.
func TestOverlayBehavesLikeACopy(t *testing.T) {
	for seed := range uint64(40) {
		base, own := memfsDisk(t), memfsDisk(t)
		history(t, base, "/store", 7)
		history(t, own, "/store", 7)
		o := overlay(t, base)
		require.Equal(t, history(t, own, "/store", seed), history(t, o, "/store", seed), "seed %d", seed)
	}
}

// opens counts what an overlay does to its base.
func opens(base *memfs.Disk) map[memfs.Kind]int {
	seen := map[memfs.Kind]int{}
	base.Inject(func(op memfs.Op) error {
		seen[op.Kind]++
		return nil
	})
	return seen
}

func filledBase(t *testing.T) *memfs.Disk {
	base := memfs.New()
	require.NoError(t, base.MkdirAll("/store/commitlog"))
	put(t, base, "/store/commitlog/0", "0123456789")
	put(t, base, "/store/lock", "")
	return base
}

func TestOverlayAsksTheBaseForReadingOnly(t *testing.T) {
	base := filledBase(t)
	seen := opens(base)
	o := overlay(t, base)
	history(t, o, "/store", 1)
	for kind := range seen {
		require.False(t, kind.Changes(), "the base was asked to %v", kind)
	}
	require.Positive(t, seen[memfs.KindStat], "the hook saw nothing")
}

func TestOverlayLockLeavesTheBaseAlone(t *testing.T) {
	base := filledBase(t)
	held, err := base.Lock("/store/lock")
	require.NoError(t, err)
	seen := opens(base)
	o := overlay(t, base)
	for range 2 {
		l, err := o.Lock("/store/lock")
		require.NoError(t, err, "who only looks is not locked out")
		require.NoError(t, l.Close())
	}
	require.Empty(t, seen)
	base.Inject(nil)
	require.NoError(t, held.Close())
}

func TestOverlayShowsWhatHappensBelow(t *testing.T) {
	base := filledBase(t)
	o := overlay(t, base)
	require.Equal(t, []string{"0"}, names(t, o, "/store/commitlog"))
	below, err := base.Open("/store/commitlog/0", true)
	require.NoError(t, err)
	above, err := o.Open("/store/commitlog/0", false)
	require.NoError(t, err)

	_, err = below.WriteAt([]byte("abc"), 9)
	require.NoError(t, err)
	require.Equal(t, "012345678abc", string(all(t, above)))
	put(t, base, "/store/commitlog/1", "new")
	require.Equal(t, []string{"0", "1"}, names(t, o, "/store/commitlog"))

	require.NoError(t, base.Remove("/store/commitlog/0"))
	require.Equal(t, "012345678abc", string(all(t, above)), "an open file stays readable")
	require.Equal(t, []string{"1"}, names(t, o, "/store/commitlog"))
	require.NoError(t, above.Close())
	_, err = o.Open("/store/commitlog/0", false)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, below.Close())
}

func TestOverlayKeepsChangesAfterClose(t *testing.T) {
	base := filledBase(t)
	put(t, base, "/store/commitlog/1", "abc")
	o := overlay(t, base)
	f, err := o.Open("/store/commitlog/0", true)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("X"), 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, "X123456789", get(t, o, "/store/commitlog/0"))
	require.Equal(t, "0123456789", get(t, base, "/store/commitlog/0"))

	f, err = o.Open("/store/commitlog/1", true)
	require.NoError(t, err)
	m, err := f.Map(3, vfs.MapShared)
	require.NoError(t, err)
	m.Bytes()[1] = 'M'
	require.NoError(t, m.Unmap())
	require.NoError(t, f.Close())
	require.Equal(t, "aMc", get(t, o, "/store/commitlog/1"), "a mapping is a change too")
	require.NoError(t, o.Remove("/store/commitlog/1"))

	require.NoError(t, base.Remove("/store/commitlog/0"))
	require.Equal(t, "X123456789", get(t, o, "/store/commitlog/0"), "what was changed is the overlay's")
	require.Equal(t, []string{"0"}, names(t, o, "/store/commitlog"))
	st, err := o.Stat("/store/commitlog/0")
	require.NoError(t, err)
	require.Equal(t, int64(10), st.Size)
}

// TestOverlayGivesFilesBack: a look at many files must not keep them all open.
func TestOverlayGivesFilesBack(t *testing.T) {
	base := filledBase(t)
	seen := opens(base)
	o := overlay(t, base)
	f, err := o.Open("/store/commitlog/0", false)
	require.NoError(t, err)
	m, err := f.Map(10, vfs.MapRead)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Zero(t, seen[memfs.KindClose], "the mapping still uses it")
	require.NoError(t, m.Unmap())
	require.Equal(t, seen[memfs.KindOpen], seen[memfs.KindClose])

	require.NoError(t, o.Rename("/store/commitlog/0", "/store/moved"))
	require.Equal(t, "0123456789", get(t, o, "/store/moved"))
	require.Equal(t, seen[memfs.KindOpen], seen[memfs.KindClose])

	f, err = o.Open("/store/moved", true)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(3))
	require.NoError(t, o.Remove("/store/moved"))
	require.NoError(t, f.Close())
	require.Equal(t, seen[memfs.KindOpen], seen[memfs.KindClose], "a removed file")

	f, err = o.Open("/store/lock", true)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(3))
	require.NoError(t, f.Close())
	require.NoError(t, o.Close())
	require.Equal(t, seen[memfs.KindOpen], seen[memfs.KindClose], "Close of the overlay")
	require.Equal(t, 4, seen[memfs.KindOpen])
}

func TestOverlayHidesAndMakesAgain(t *testing.T) {
	o := overlay(t, filledBase(t))
	require.NoError(t, o.Remove("/store/commitlog/0"))
	require.Empty(t, names(t, o, "/store/commitlog"))
	require.NoError(t, o.Remove("/store/commitlog"))
	require.NoError(t, o.MkdirAll("/store/commitlog"))
	require.Empty(t, names(t, o, "/store/commitlog"), "a new folder does not show the old one's files")
	put(t, o, "/store/commitlog/0", "n")
	require.Equal(t, "n", get(t, o, "/store/commitlog/0"))
	require.Equal(t, []string{"commitlog", "lock"}, names(t, o, "/store"))
}

func TestOverlayReportsErrorsOfTheBase(t *testing.T) {
	base := filledBase(t)
	o := overlay(t, base)
	f, err := o.Open("/store/commitlog/0", true)
	require.NoError(t, err)
	base.Inject(func(memfs.Op) error { return fs.ErrPermission })
	_, err = f.ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, fs.ErrPermission)
	_, err = f.WriteAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, fs.ErrPermission)
	_, err = o.List("/store")
	require.ErrorIs(t, err, fs.ErrPermission)
	requirePathError(t, err, "list", "/store")
	_, err = o.Open(path.Join("/store", "lock"), false)
	require.ErrorIs(t, err, fs.ErrPermission)
	base.Inject(nil)
	require.Equal(t, "0123456789", string(all(t, f)), "a failed write left no trace")
	require.NoError(t, f.Close())
}

func TestOverlayRelativeNames(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	put(t, vfs.New(), "a", "hello")
	o := overlay(t, vfs.New())
	require.Equal(t, "hello", get(t, o, "a"))
	require.Equal(t, "hello", get(t, o, "./sub/../a"))
	require.NoError(t, o.MkdirAll("sub/deep"))
	put(t, o, "sub/deep/b", "x")
	require.Equal(t, []string{"a", "sub"}, names(t, o, "."))
	require.Equal(t, []string{"a"}, names(t, vfs.New(), "."))
}
