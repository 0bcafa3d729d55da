package commitlog_test

import (
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/memfs"
)

const size = 4096

func add(t *testing.T, disk vfs.Disk, l *commitlog.Log, start int64) *segments.Segment {
	t.Helper()
	s, err := segments.Create(disk, path.Join("log", segments.Name(start)), start, size)
	require.NoError(t, err)
	l.Add(s)
	return s
}

func newLog(t *testing.T, disk vfs.Disk) *commitlog.Log {
	t.Helper()
	require.NoError(t, disk.MkdirAll("log"))
	l, foreign, err := commitlog.Open(disk, "log", size)
	require.NoError(t, err)
	require.Empty(t, foreign)
	return l
}

func TestReadingUpToTheEnd(t *testing.T) {
	disk := memfs.New()
	l := newLog(t, disk)
	require.EqualValues(t, -1, l.Min(), "no segment: -1 and 0, as the original answers")
	require.EqualValues(t, 0, l.End())
	_, err := l.ReadFrom(0)
	require.ErrorIs(t, err, commitlog.ErrNotInLog)

	s := add(t, disk, l, size)
	copy(s.Data(), "hello, world")
	_, err = l.ReadFrom(size)
	require.ErrorIs(t, err, commitlog.ErrNotInLog, "not published yet")
	l.Publish(s, 5, 77)
	require.EqualValues(t, size, l.Min())
	require.EqualValues(t, size+5, l.End())
	require.EqualValues(t, 77, l.StoreTimestampMs())
	got, err := l.ReadFrom(size + 1)
	require.NoError(t, err)
	require.Equal(t, "ello", string(got.Bytes))
	require.EqualValues(t, 1, got.Offset())
	got.Release()
	got, err = l.Read(size, 5)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got.Bytes))
	require.Equal(t, 5, cap(got.Bytes), "nobody can append into the log")
	got.Release()
	for _, c := range []struct {
		off messages.PhysicalOffset
		n   int
	}{{size, 6}, {size + 5, 1}, {size, -1}, {size - 1, 1}, {-1, 1}, {1 << 50, 1}} {
		l.Fetch(c.off, int64(c.n))
		_, err := l.Read(c.off, c.n)
		require.ErrorIs(t, err, commitlog.ErrNotInLog, "%d bytes at %d", c.n, c.off)
	}
	require.NoError(t, l.Close())
}

func TestReadDoesNotAllocate(t *testing.T) {
	disk := memfs.New()
	l := newLog(t, disk)
	l.Publish(add(t, disk, l, 0), 100, 0)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		s, err := l.Read(10, 50)
		if err != nil {
			panic(err)
		}
		s.Release()
	}))
	require.NoError(t, l.Close())
}

func TestOpenReportsWhatIsNoSegment(t *testing.T) { // L41
	disk := memfs.New()
	l := newLog(t, disk)
	for start := int64(0); start < 3*size; start += size {
		l.Publish(add(t, disk, l, start), size, 0)
	}
	require.NoError(t, l.Close())
	require.NoError(t, disk.MkdirAll("log/folder"))
	for name, n := range map[string]int64{segments.Name(3 * size): 17, segments.Name(5): size, "note.tmp": 1, segments.Name(4 * size): 0} {
		f, err := disk.Create("log/" + name)
		require.NoError(t, err)
		require.NoError(t, f.Truncate(n))
		require.NoError(t, f.Close())
	}
	l, foreign, err := commitlog.Open(disk, "log", size)
	require.NoError(t, err)
	require.Equal(t, 3, l.View().Len())
	require.EqualValues(t, 3*size, l.End())
	var names []string
	for _, f := range foreign {
		names = append(names, f.Name)
		require.ErrorContains(t, f.Reason, f.Name, "the reason names the file")
	}
	require.ElementsMatch(t, []string{segments.Name(3 * size), segments.Name(5), "note.tmp", segments.Name(4 * size), "folder"}, names)
	require.NoError(t, l.Close())
}

func TestCutTo(t *testing.T) {
	for _, c := range []struct {
		end        messages.PhysicalOffset
		keep, gone int
	}{{0, 0, 3}, {1, 1, 2}, {size, 1, 2}, {size + 7, 2, 1}, {3 * size, 3, 0}} {
		disk := memfs.New()
		l := newLog(t, disk)
		for start := int64(0); start < 3*size; start += size {
			l.Publish(add(t, disk, l, start), size, 9)
		}
		gone := l.CutTo(c.end, 5)
		require.Len(t, gone, c.gone, "cut to %d", c.end)
		require.Equal(t, c.keep, l.View().Len())
		require.Equal(t, c.end, l.End())
		require.EqualValues(t, 5, l.StoreTimestampMs())
		if c.end > 0 {
			s, err := l.ReadFrom(c.end - 1)
			require.NoError(t, err)
			require.Len(t, s.Bytes, 1)
			s.Release()
		}
		_, err := l.ReadFrom(c.end)
		require.ErrorIs(t, err, commitlog.ErrNotInLog)
		for _, s := range gone {
			s.Retire(nil)
		}
		require.NoError(t, l.Close())
	}
}
