package store_test

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/testkit/golden"
	"github.com/actormq/actormq/testkit/memfs"
)

// goldenDisk is a golden store on a simulated disk, in the folder "s", with its files.
type goldenDisk struct {
	disk   *memfs.Disk
	params store.Params
	files  []string
}

func loadGolden(t testing.TB, name, scratch string) goldenDisk {
	t.Helper()
	dir, p := goldenStoreIn(t, name, filepath.Join(scratch, name))
	p.Dir = "s"
	g := goldenDisk{disk: memfs.New(), params: p}
	require.NoError(t, filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		to := path.Join("s", filepath.ToSlash(rel))
		if e.IsDir() {
			return g.disk.MkdirAll(to)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		g.files = append(g.files, to)
		f, err := g.disk.Create(to)
		if err != nil {
			return err
		}
		_, err = f.WriteAt(content, 0)
		return errors.Join(err, f.DataSync(), f.Close(), g.disk.SyncDir(path.Dir(to)))
	}))
	return g
}

// FuzzGoldenRecovery damages a file of any golden store: it opens, or is refused for a reason that has a name, and
// opening it again gives the same. A checkpoint that is ahead of the log has the first recovery look less far back than the next one,
// which then finds what the first one had no reason to look at; the one after that finds the same. After a
// clean stop queues are not looked through: who reads a damaged unit is told, and the next recovery mends it.
func FuzzGoldenRecovery(f *testing.F) {
	names, scratch := golden.Names(), f.TempDir()
	disks := make([]goldenDisk, len(names))
	for i, name := range names {
		disks[i] = loadGolden(f, name, scratch)
		f.Add(uint8(i), uint8(i*7), uint32(i*1000), []byte{0xff}, i%2 == 0)
		f.Add(uint8(i), uint8(0), uint32(0), []byte{}, i%3 == 0)
	}
	f.Fuzz(func(t *testing.T, number, file uint8, off uint32, bytes []byte, clean bool) {
		g := disks[int(number)%len(disks)]
		d := g.disk.Clone()
		damage(t, d, g.files[int(file)%len(g.files)], off, bytes)
		if _, err := d.Stat("s/abort"); err == nil && clean {
			require.NoError(t, d.Remove("s/abort"))
		}
		first, err := store.Open(d, g.params, testOptions())
		if err != nil {
			require.True(t, errors.Is(err, store.ErrNewerLog) || errors.Is(err, segments.ErrSize) || errors.Is(err, segments.ErrName),
				"%s: %v", names[int(number)%len(names)], err)
			return
		}
		if unsound := first.Queues.Verify(); first.Report.Plan.Clean && len(unsound) > 0 {
			for _, err := range unsound {
				require.ErrorAs(t, err, new(*segments.CorruptionError))
			}
			require.NoError(t, first.Close())
			first, err = store.Open(d, g.params, testOptions())
			require.NoError(t, err)
		}
		want, from := contentOf(t, first), first.Report.Plan.ScanFrom
		require.NoError(t, first.Close())
		again := func() (content, messages.PhysicalOffset) {
			s, err := store.Open(d, g.params, testOptions())
			require.NoError(t, err)
			got := contentOf(t, s)
			require.NoError(t, s.Close())
			return got, s.Report.Plan.ScanFrom
		}
		got, further := again()
		if further < from {
			want.Queues, want.Next = got.Queues, got.Next
			third, _ := again()
			require.Equal(t, got.Queues, third.Queues)
			require.Equal(t, got.Next, third.Next)
		}
		require.Equal(t, want.Bodies, got.Bodies)
		require.Equal(t, want.Queues, got.Queues)
		require.Equal(t, want.Next, got.Next)
	})
}

func damage(t *testing.T, d *memfs.Disk, name string, off uint32, bytes []byte) {
	t.Helper()
	f, err := d.Open(name, true)
	require.NoError(t, err)
	size, err := f.Size()
	require.NoError(t, err)
	if at := int64(off) % max(size, 1); size > 0 && len(bytes) > 0 {
		_, err = f.WriteAt(bytes[:min(int64(len(bytes)), size-at)], at)
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
}
