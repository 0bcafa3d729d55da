package memfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/memfs"
)

const page = 4096

// seeds are enough for every outcome that the tests wait for.
const seeds = 400

func newDisk(t *testing.T) *memfs.Disk {
	d := memfs.New()
	require.NoError(t, d.MkdirAll("/s"))
	return d
}

// put makes a file whose content and name are durable.
func put(t *testing.T, d *memfs.Disk, name string, content []byte) vfs.File {
	t.Helper()
	f, err := d.Create(name)
	require.NoError(t, err)
	write(t, f, content, 0)
	require.NoError(t, f.DataSync())
	require.NoError(t, d.SyncDir(path.Dir(name)))
	return f
}

func write(t *testing.T, f vfs.File, p []byte, off int64) {
	t.Helper()
	n, err := f.WriteAt(p, off)
	require.NoError(t, err)
	require.Equal(t, len(p), n)
}

// content reads a whole file; missing files are nil.
func content(t *testing.T, d vfs.Disk, name string) []byte {
	t.Helper()
	f, err := d.Open(name, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	size, err := f.Size()
	require.NoError(t, err)
	b := make([]byte, size)
	_, err = f.ReadAt(b, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return b
}

// picture is everything on a disk, for comparing.
func picture(t *testing.T, d vfs.Disk, dir string) string {
	t.Helper()
	entries, err := d.List(dir)
	require.NoError(t, err)
	out := ""
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		out += fmt.Sprintln(name, e.Dir, e.Size)
		if e.Dir {
			out += picture(t, d, name)
		} else {
			out += fmt.Sprintf("%x\n", content(t, d, name))
		}
	}
	return out
}

func filled(b byte, n int) []byte { return bytes.Repeat([]byte{b}, n) }

// outcomes runs look on what many crashes leave and counts its answers.
func outcomes(d *memfs.Disk, look func(after *memfs.Disk) string) map[string]int {
	seen := map[string]int{}
	for seed := range uint64(seeds) {
		seen[look(d.Crash(seed))]++
	}
	return seen
}

// requireOutcomes checks that the wanted outcomes, and no others, came up.
func requireOutcomes(t *testing.T, seen map[string]int, want ...string) {
	t.Helper()
	for _, w := range want {
		require.Positive(t, seen[w], "%q never came up: %v", w, seen)
	}
	require.Len(t, seen, len(want), "%v", seen)
}

func TestSyncedDataSurvives(t *testing.T) {
	d := newDisk(t)
	want := append(filled('a', 3*page), filled('b', 100)...)
	f := put(t, d, "/s/a", want)
	m, err := f.Map(int64(len(want)), vfs.MapShared)
	require.NoError(t, err)
	m.Bytes()[page] = 'm'
	want[page] = 'm'
	require.NoError(t, f.DataSync())
	m.Bytes()[2*page] = 'n' // not synced
	for seed := range uint64(seeds) {
		got := content(t, d.Crash(seed), "/s/a")
		require.Len(t, got, len(want))
		require.True(t, bytes.Equal(want[:2*page], got[:2*page]), "seed %d", seed)
		require.True(t, bytes.Equal(want[2*page+1:], got[2*page+1:]), "seed %d", seed)
	}
}

func TestUnsyncedPagesAreOldOrNew(t *testing.T) {
	for _, way := range []string{"write", "map"} {
		t.Run(way, func(t *testing.T) {
			d := newDisk(t)
			const pages = 4
			f := put(t, d, "/s/a", filled('o', pages*page))
			m, err := f.Map(pages*page, vfs.MapShared)
			require.NoError(t, err)
			if way == "map" {
				copy(m.Bytes(), filled('n', pages*page))
			} else {
				write(t, f, filled('n', pages*page), 0)
			}
			require.NoError(t, f.StartWriteback(0, pages*page))
			combined := outcomes(d, func(after *memfs.Disk) string { return shape(t, content(t, after, "/s/a")) })
			require.Positive(t, combined["oooo"], "%v", combined)
			require.Positive(t, combined["nnnn"], "%v", combined)
			torn, mixed := 0, 0
			for s, n := range combined {
				count := bytes.Count([]byte(s), []byte("T"))
				require.LessOrEqual(t, count, 1, "two torn pages: %s", s)
				torn += n * count
				if bytes.ContainsAny([]byte(s), "o") && bytes.ContainsAny([]byte(s), "n") {
					mixed += n
				}
			}
			require.Greater(t, torn, seeds/10, "%v", combined)
			require.Greater(t, mixed, seeds/10, "%v", combined)
		})
	}
}

// shape names each page by its letter, T when it is torn, and requires that sectors are whole.
func shape(t *testing.T, b []byte) string {
	t.Helper()
	out := ""
	for ; len(b) > 0; b = b[page:] {
		letter := string(b[:1])
		for s := 0; s < page; s += 512 {
			require.True(t, bytes.Equal(filled(b[s], 512), b[s:s+512]), "a sector is torn")
			if b[s] != b[0] {
				letter = "T"
			}
		}
		out += letter
	}
	return out
}

func TestEverySyncSeesAMapping(t *testing.T) {
	d := newDisk(t)
	f := put(t, d, "/s/a", filled('0', 2*page))
	m, err := f.Map(2*page, vfs.MapShared)
	require.NoError(t, err)
	for _, b := range []byte("123") {
		copy(m.Bytes()[page:], filled(b, page))
		if b == '3' {
			require.NoError(t, m.Unmap())
		}
		require.NoError(t, f.DataSync())
		requireOutcomes(t, outcomes(d, func(after *memfs.Disk) string { return shape(t, content(t, after, "/s/a")) }), "0"+string(b))
	}
}

func TestASyncOfAPartCoversItsPagesOnly(t *testing.T) {
	d := newDisk(t)
	f := put(t, d, "/s/a", filled('0', 3*page))
	m, err := f.Map(3*page, vfs.MapShared)
	require.NoError(t, err)
	copy(m.Bytes(), filled('1', page))
	write(t, f, filled('1', 2*page), page)
	require.NoError(t, m.DataSync(page+10, 1))
	requireOutcomes(t, outcomes(d, func(after *memfs.Disk) string {
		got := content(t, after, "/s/a")
		require.Equal(t, filled('1', page), got[page:2*page])
		return string(got[:1]) + string(got[3*page-1:])
	}), "00", "01", "10", "11")

	d.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindDataSync && op.Off == 0 {
			return errors.New("broken")
		}
		return nil
	})
	require.ErrorContains(t, m.DataSync(0, page), "broken")
	require.NoError(t, m.DataSync(page, 2*page))
	require.NoError(t, m.DataSync(1, 3*page-1))
	requireOutcomes(t, outcomes(d, func(after *memfs.Disk) string { return shape(t, content(t, after, "/s/a")) }), "011", "111", "T11")
	require.NoError(t, m.Unmap())
}

func TestWhatWasCutOffDoesNotComeBack(t *testing.T) {
	d := newDisk(t)
	f := put(t, d, "/s/a", filled('o', page))
	require.NoError(t, f.Truncate(10))
	cut := 0
	for seed := range uint64(seeds) {
		after := d.Crash(seed)
		f, err := after.Open("/s/a", true)
		require.NoError(t, err)
		if size, _ := f.Size(); size != 10 {
			continue
		}
		cut++
		require.NoError(t, f.Truncate(page))
		for again := range uint64(6) {
			got := content(t, after.Crash(again), "/s/a")
			require.Empty(t, bytes.Trim(got[10:], "\x00"), "seeds %d, %d", seed, again)
		}
	}
	require.Positive(t, cut)

	require.NoError(t, f.Truncate(page))
	require.NoError(t, f.DataSync())
	require.Equal(t, append(filled('o', 10), make([]byte, page-10)...), content(t, d.Crash(1), "/s/a"))
}

func TestOnlyTheLastSyncCounts(t *testing.T) {
	d := newDisk(t)
	f := put(t, d, "/s/a", filled('1', page))
	write(t, f, filled('2', page), 0)
	write(t, f, filled('1', page), 0)
	requireOutcomes(t, outcomes(d, func(after *memfs.Disk) string { return shape(t, content(t, after, "/s/a")) }), "1")
}

func TestUnsyncedLengthIsOldOrNew(t *testing.T) {
	tests := map[string]struct {
		change func(f vfs.File) error
		want   []string
	}{
		"grown by truncate":  {func(f vfs.File) error { return f.Truncate(3 * page) }, []string{"4096", "12288"}},
		"grown by allocate":  {func(f vfs.File) error { return f.Allocate(0, 3*page) }, []string{"4096", "12288"}},
		"shrunk":             {func(f vfs.File) error { return f.Truncate(10) }, []string{"4096", "10"}},
		"shrunk and grown":   {func(f vfs.File) error { return errors.Join(f.Truncate(0), f.Truncate(page)) }, []string{"4096"}},
		"grown, then synced": {func(f vfs.File) error { return errors.Join(f.Truncate(3*page), f.DataSync()) }, []string{"12288"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := newDisk(t)
			f := put(t, d, "/s/a", filled('o', page))
			require.NoError(t, tt.change(f))
			requireOutcomes(t, outcomes(d, func(after *memfs.Disk) string {
				got := content(t, after, "/s/a")
				require.Empty(t, bytes.Trim(got[:min(page, len(got))], "o\x00"), "what was there is old or zero")
				require.Empty(t, bytes.Trim(got[min(page, len(got)):], "\x00"), "what was added is zero")
				return fmt.Sprint(len(got))
			}), tt.want...)
		})
	}
}

func TestAppendedPagesAreZeroOrWritten(t *testing.T) {
	d := newDisk(t)
	f := put(t, d, "/s/a", filled('o', page))
	write(t, f, filled('n', page), page)
	seen := outcomes(d, func(after *memfs.Disk) string {
		return string(bytes.Trim([]byte(shape(t, content(t, after, "/s/a"))), "T"))
	})
	// "o" is also the longer file with a torn page.
	requireOutcomes(t, seen, "o", "on", "o\x00")
}

// names are the given files that exist, with their content.
func names(files ...string) func(t *testing.T, after *memfs.Disk) string {
	return func(t *testing.T, after *memfs.Disk) string {
		out := ""
		for _, n := range files {
			if got := content(t, after, n); got != nil {
				out += path.Base(n) + "=" + string(got) + " "
			}
		}
		return out
	}
}

func folderIsThere(_ *testing.T, after *memfs.Disk) string {
	_, err := after.Stat("/s/x")
	return fmt.Sprint(err == nil)
}

// nameTests change names on a disk where "a" and "b" are durable, with their names as content, and tell what a power cut
// may leave.
var nameTests = map[string]struct {
	change func(d *memfs.Disk) error
	look   func(t *testing.T, after *memfs.Disk) string
	want   []string
}{
	"create": {
		func(d *memfs.Disk) error { return makeFile(d, "/s/c", "c") },
		names("/s/a", "/s/c"), []string{"a=a ", "a=a c=c "},
	},
	"create, synced": {
		func(d *memfs.Disk) error { return errors.Join(makeFile(d, "/s/c", "c"), d.SyncDir("/s")) },
		names("/s/a", "/s/c"), []string{"a=a c=c "},
	},
	"the wrong folder synced": {
		func(d *memfs.Disk) error { return errors.Join(makeFile(d, "/s/c", "c"), d.SyncDir("/")) },
		names("/s/c"), []string{"", "c=c "},
	},
	"remove": {
		func(d *memfs.Disk) error { return d.Remove("/s/a") },
		names("/s/a", "/s/b"), []string{"b=b ", "a=a b=b "},
	},
	"remove, synced": {
		func(d *memfs.Disk) error { return errors.Join(d.Remove("/s/a"), d.SyncDir("/s")) },
		names("/s/a", "/s/b"), []string{"b=b "},
	},
	"rename over another is atomic": {
		func(d *memfs.Disk) error { return d.Rename("/s/a", "/s/b") },
		names("/s/a", "/s/b"), []string{"a=a b=b ", "b=a "},
	},
	"rename of a new file": {
		func(d *memfs.Disk) error { return errors.Join(makeFile(d, "/s/c", "c"), d.Rename("/s/c", "/s/b")) },
		names("/s/b", "/s/c"), []string{"b=b ", "b=b c=c ", "b=c "},
	},
	"rename into another folder, synced there": {
		func(d *memfs.Disk) error {
			return errors.Join(d.MkdirAll("/s/sub"), d.Rename("/s/a", "/s/sub/a"), d.SyncDir("/s/sub"))
		},
		names("/s/a", "/s/sub/a"), []string{"a=a "},
	},
	"two changes are independent": {
		func(d *memfs.Disk) error { return errors.Join(d.Remove("/s/a"), makeFile(d, "/s/c", "c")) },
		names("/s/a", "/s/c"), []string{"", "a=a ", "a=a c=c ", "c=c "},
	},
	"replaced by remove and create": {
		func(d *memfs.Disk) error { return errors.Join(d.Remove("/s/a"), makeFile(d, "/s/a", "A")) },
		names("/s/a"), []string{"a=a ", "", "a=A "},
	},
	"a name used again after a rename": {
		func(d *memfs.Disk) error { return errors.Join(d.Rename("/s/a", "/s/b"), makeFile(d, "/s/a", "A")) },
		names("/s/a", "/s/b"), []string{"a=a b=b ", "b=a ", "a=A b=a "},
	},
	"folders are durable": {
		func(d *memfs.Disk) error {
			return errors.Join(d.MkdirAll("/s/x/y"), makeFile(d, "/s/x/y/c", "c"), d.SyncDir("/s/x/y"))
		},
		names("/s/x/y/c"), []string{"c=c "},
	},
	"a removed folder": {
		func(d *memfs.Disk) error { return errors.Join(d.MkdirAll("/s/x"), d.Remove("/s/x")) },
		folderIsThere, []string{"true", "false"},
	},
}

func TestNamesNeedSyncDir(t *testing.T) {
	for name, tt := range nameTests {
		t.Run(name, func(t *testing.T) {
			d := newDisk(t)
			put(t, d, "/s/a", []byte("a"))
			put(t, d, "/s/b", []byte("b"))
			require.NoError(t, tt.change(d))
			requireOutcomes(t, outcomes(d, func(after *memfs.Disk) string { return tt.look(t, after) }), tt.want...)
		})
	}
}

// makeFile makes a file with synced content, but not its name.
func makeFile(d *memfs.Disk, name, content string) error {
	f, err := d.Create(name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(content), 0)
	return errors.Join(err, f.DataSync(), f.Close())
}

// busy makes a disk with much that is not synced.
func busy(t *testing.T) *memfs.Disk {
	d := newDisk(t)
	for i := range 8 {
		f := put(t, d, fmt.Sprintf("/s/%d", i), filled('o', 5*page))
		write(t, f, filled('n', 3*page), int64(i)*500)
	}
	for i := range 4 {
		require.NoError(t, makeFile(d, fmt.Sprintf("/s/new%d", i), "new"))
		require.NoError(t, d.Remove(fmt.Sprintf("/s/%d", i)))
	}
	return d
}

func TestCrashIsRepeatable(t *testing.T) {
	d, same := busy(t), busy(t)
	before := picture(t, d, "/")
	pictures := map[string]bool{}
	for seed := range uint64(50) {
		p := picture(t, d.Crash(seed), "/")
		require.Equal(t, p, picture(t, d.Crash(seed), "/"), "seed %d", seed)
		require.Equal(t, p, picture(t, same.Crash(seed), "/"), "seed %d on an equal disk", seed)
		require.Equal(t, p, picture(t, d.Clone().Crash(seed), "/"), "seed %d on a clone", seed)
		pictures[p] = true
	}
	require.Greater(t, len(pictures), 30, "the seeds look alike")
	require.Equal(t, before, picture(t, d, "/"), "a crash changed the disk itself")
}

func TestWhatACrashLeavesIsDurable(t *testing.T) {
	d := busy(t)
	for seed := range uint64(20) {
		after := d.Crash(seed)
		want := picture(t, after, "/")
		for again := range uint64(5) {
			require.Equal(t, want, picture(t, after.Crash(again), "/"), "seeds %d, %d", seed, again)
		}
	}
}

func TestCrashedDiskCanBeUsed(t *testing.T) {
	d := busy(t)
	after := d.Crash(3)
	f, err := after.Open("/s/7", true)
	require.NoError(t, err)
	write(t, f, filled('z', page), 0)
	require.NoError(t, f.DataSync())
	require.Equal(t, filled('z', page), content(t, after.Crash(1), "/s/7")[:page])
	require.NotContains(t, string(content(t, d, "/s/7")), "z", "the disks share pages")
	require.NotContains(t, string(content(t, d.Crash(3), "/s/7")), "z", "the disks share synced pages")
}

func TestCloneKeepsAllThatWasWritten(t *testing.T) {
	d := busy(t)
	f, err := d.Open("/s/5", true)
	require.NoError(t, err)
	m, err := f.Map(page, vfs.MapShared)
	require.NoError(t, err)
	m.Bytes()[0] = 'm'
	c := d.Clone()
	require.Equal(t, picture(t, d, "/"), picture(t, c, "/"))
	m.Bytes()[0] = 'x'
	require.Equal(t, byte('m'), content(t, c, "/s/5")[0], "the clone shares memory with the disk")
	write(t, f, filled('y', page), page)
	require.NotContains(t, string(content(t, c, "/s/5")), "y")
}

func TestCloneIsNotLocked(t *testing.T) {
	d := newDisk(t)
	l, err := d.Lock("/s/lock")
	require.NoError(t, err)
	for _, after := range []*memfs.Disk{d.Clone(), d.Crash(1)} {
		l, err := after.Lock("/s/lock")
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
	_, err = d.Lock("/s/lock")
	require.ErrorIs(t, err, vfs.ErrLocked)
	require.NoError(t, l.Close())
}

// TestCrashBesideWriters is for the race detector: a store is cut off while it writes and syncs through mappings.
func TestCrashBesideWriters(t *testing.T) {
	d := newDisk(t)
	f := put(t, d, "/s/a", filled('0', 8*page))
	m, err := f.Map(8*page, vfs.MapShared)
	require.NoError(t, err)
	stop := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				copy(m.Bytes()[i%8*page:], filled(byte('1'+i%9), 100))
			}
		}
	})
	for seed := range uint64(50) {
		require.NoError(t, f.DataSync())
		require.Len(t, content(t, d.Crash(seed), "/s/a"), 8*page)
		require.Len(t, content(t, d.Clone(), "/s/a"), 8*page)
	}
	close(stop)
	group.Wait()
	require.NoError(t, m.Unmap())
}
