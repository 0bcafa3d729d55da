package consumequeue

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/memfs"
)

const dir = "/store/consumequeue"

var (
	key   = messages.QueueKey{Topic: "T", QueueID: 1}
	small = Options{FileBytes: 10 * UnitBytes, MaxOpenFiles: 3}
)

func openTable(t testing.TB, disk vfs.Disk, opt Options) *Table {
	table, err := OpenTable(disk, dir, opt)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, table.Close()) })
	return table
}

func newTable(t testing.TB) (*memfs.Disk, *Table, *Queue) {
	disk := memfs.New()
	table := openTable(t, disk, small)
	q, err := table.Create(key)
	require.NoError(t, err)
	return disk, table, q
}

// reopen opens the folder again and returns the queue, which must be there.
func reopen(t testing.TB, disk vfs.Disk) *Queue {
	q := openTable(t, disk, small).Lookup(key)
	require.NotNil(t, q)
	return q
}

// unit is the unit that the tests give queue offset i: records of 100 bytes, one after the other.
func unit(i int64) Unit {
	return Unit{PhysicalOffset: messages.PhysicalOffset(100 * i), Size: 100, TagsCode: 7 * i}
}

func appendUnits(t testing.TB, q *Queue, from, to int64) {
	for i := from; i < to; i++ {
		ok, err := q.Append(unit(i), messages.QueueOffset(i))
		require.NoError(t, err)
		require.True(t, ok)
	}
}

// requireUnits reads the queue in several ways and compares with the units [from, to).
func requireUnits(t testing.TB, q *Queue, from, to int64) {
	least, end := q.Range()
	require.Equal(t, [2]int64{from, to}, [2]int64{int64(least), int64(end)})
	for _, step := range []int{1, 3, 7, 1000} {
		buf := make([]Unit, step)
		for at := from; at < to; {
			n, err := q.Read(messages.QueueOffset(at), buf)
			require.NoError(t, err)
			require.Positive(t, n)
			for i, u := range buf[:n] {
				if want := unit(at + int64(i)); u != want { // most are, and there are very many
					require.Equal(t, want, u)
				}
			}
			at += int64(n)
		}
		require.NoError(t, q.Verify())
	}
	n, err := q.Read(messages.QueueOffset(to), make([]Unit, 5))
	require.NoError(t, err)
	require.Zero(t, n)
	_, err = q.Read(messages.QueueOffset(to+1), make([]Unit, 5))
	require.ErrorIs(t, err, ErrAboveMax)
	_, err = q.Read(messages.QueueOffset(from-1), make([]Unit, 5))
	require.ErrorIs(t, err, ErrBelowMin)
	if to > from {
		require.Equal(t, messages.PhysicalOffset(100*to), q.PhysicalEnd())
	}
}

func filePath(start int64) string { return path.Join(dir, "T/1", segments.Name(start*UnitBytes)) }

func writeFile(t testing.TB, disk vfs.Disk, name string, b []byte, size int64) {
	require.NoError(t, disk.MkdirAll(path.Dir(name)))
	if err := disk.Remove(name); err != nil {
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	f, err := disk.Create(name)
	require.NoError(t, err)
	_, err = f.WriteAt(b, 0)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(size))
	require.NoError(t, f.DataSync())
	require.NoError(t, f.Close())
	require.NoError(t, disk.SyncDir(path.Dir(name)))
}

// encode returns the file form of the units [from, to).
func encode(from, to int64) []byte {
	var b []byte
	for i := from; i < to; i++ {
		b = unit(i).AppendTo(b)
	}
	return b
}

func names(t testing.TB, disk vfs.Disk, folder string) []string {
	entries, err := disk.List(folder)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name)
	}
	return out
}

// sscan reads a start and, perhaps, a size.
func sscan(text string, start, size *int64) (int, error) {
	return fmt.Sscanf(text, "%d %d", start, size)
}

// isReadError tells whether a reader may meet the error while the queue is cut or deleted.
func isReadError(err error) bool {
	for _, allowed := range []error{ErrBelowMin, ErrAboveMax, ErrChanged, ErrDestroyed} {
		if errors.Is(err, allowed) {
			return true
		}
	}
	return false
}
