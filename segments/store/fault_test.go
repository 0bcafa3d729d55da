package store_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
)

// shrinking is a disk on which a file of the log, or of the index, loses its content just after it was mapped: what a failing disk does
// to a map.
type shrinking struct {
	vfs.Disk
	part string
}

func (d shrinking) Open(name string, writable bool) (vfs.File, error) {
	f, err := d.Disk.Open(name, writable)
	if err != nil || !strings.Contains(name, d.part) {
		return f, err
	}
	return shrunk{f}, nil
}

type shrunk struct{ vfs.File }

func (f shrunk) Map(n int64, mode vfs.MapMode) (vfs.Mapping, error) {
	m, err := f.File.Map(n, mode)
	if err == nil {
		err = os.Truncate(f.Name(), 0)
	}
	return m, err
}

// TestAFaultInTheMapDuringRecovery: a log that can't be read is refused with its name, an index is made again; the process goes on.
func TestAFaultInTheMapDuringRecovery(t *testing.T) {
	for _, part := range []string{"/commitlog/", "/index/"} {
		for _, damaged := range []bool{false, true} {
			disk := vfs.New()
			t.Chdir(t.TempDir())
			w := newLogWriter(t, disk)
			w.fill(100)
			require.NoError(t, open(t, disk).Close())
			lost := []int(nil)
			if damaged {
				patchLog(t, disk, w.puts[50].from, zeroBytes(60))
				removeTree(t, disk, "s/consumequeue")
				lost = []int{50}
			}
			s, err := store.Open(shrinking{disk, part}, testParams(), testOptions())
			if part == "/commitlog/" {
				require.ErrorIs(t, err, vfs.ErrFault)
				require.ErrorContains(t, err, segmentPath(0))
				continue
			}
			require.NoError(t, err)
			require.Contains(t, events(s.Report), store.DroppedIndex)
			c := contentOf(t, s)
			c.requirePuts(t, without(w.puts, lost))
			require.NoError(t, s.Close())
		}
	}
}
