package store_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
)

// shrinking is a disk on which a file of the log, or of the index, loses its content, but for so many bytes, just after it was mapped:
// what a failing disk does to a map.
type shrinking struct {
	vfs.Disk
	part string
	keep int64
}

func (d shrinking) Open(name string, writable bool) (vfs.File, error) {
	f, err := d.Disk.Open(name, writable)
	if err != nil || !strings.Contains(name, d.part) {
		return f, err
	}
	return shrunk{f, d.keep}, nil
}

type shrunk struct {
	vfs.File
	keep int64
}

func (f shrunk) Map(n int64, mode vfs.MapMode) (vfs.Mapping, error) {
	m, err := f.File.Map(n, mode)
	if err == nil {
		err = os.Truncate(f.Name(), f.keep)
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
			s, err := store.Open(shrinking{Disk: disk, part: part}, testParams(), testOptions())
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

// TestAFaultBehindSoundRecordsEndsAWalk: each record in front of the fault is met once, the one in which it is not at all, and the error
// says where. In the first segment, and in one that does not begin at 0.
func TestAFaultBehindSoundRecordsEndsAWalk(t *testing.T) {
	page := int64(os.Getpagesize())
	size := 16 * page
	for _, start := range []int64{0, size} {
		t.Chdir(t.TempDir())
		disk := vfs.New()
		require.NoError(t, disk.MkdirAll("log"))
		name := "log/" + segments.Name(start)
		f, err := disk.Create(name)
		require.NoError(t, err)
		require.NoError(t, f.Truncate(size))
		m := newLogWriter(t, disk).message(messages.QueueKey{Topic: "A"}, strings.Repeat("x", 300))
		var ends []messages.PhysicalOffset
		for pos := int64(0); pos < 8*page; {
			raw, err := record.Append(nil, &m)
			require.NoError(t, err)
			record.SetPlace(raw, messages.QueueOffset(len(ends)), messages.PhysicalOffset(start+pos), testStartMs)
			_, err = f.WriteAt(raw, pos)
			require.NoError(t, err)
			pos += int64(len(raw))
			ends = append(ends, messages.PhysicalOffset(start+pos))
		}
		require.NoError(t, f.Close())
		log, foreign, err := commitlog.Open(shrinking{Disk: disk, part: "log/", keep: 4 * page}, "log", size)
		require.NoError(t, err)
		require.Empty(t, foreign)
		w := store.Walk{Log: log, CheckCRC: true}
		met := 0
		_, _, err = w.Run(messages.PhysicalOffset(start), func(it *store.Item) error {
			if met == len(ends) || it.To != ends[met] {
				return errors.New("an item that is not in front of the fault")
			}
			met++
			return nil
		})
		require.ErrorIs(t, err, vfs.ErrFault)
		require.ErrorContains(t, err, name)
		require.Positive(t, met)
		require.LessOrEqual(t, int64(ends[met-1])-start, 4*page)
		require.NoError(t, log.Close())
	}
}
