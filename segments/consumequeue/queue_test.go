package consumequeue

import (
	"errors"
	"math/rand/v2"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

func TestFilesAreThoseOfTheSpecification(t *testing.T) {
	disk := vfs.New()
	root := t.TempDir()
	table, err := OpenTable(disk, root, Options{})
	require.NoError(t, err)
	for key, units := range specUnits {
		q, err := table.Create(key)
		require.NoError(t, err)
		for i, text := range units {
			ok, err := q.Append(DecodeUnit(unhex(t, text)), messages.QueueOffset(i))
			require.NoError(t, err)
			require.True(t, ok)
		}
	}
	require.NoError(t, table.Sync())
	require.NoError(t, table.Close())
	for key, units := range specUnits {
		folder := path.Join(root, key.Topic, string('0'+byte(key.QueueID)))
		if key.QueueID == 17 {
			folder = path.Join(root, key.Topic, "17")
		}
		require.Equal(t, []string{"00000000000000000000"}, names(t, disk, folder))
		want := make([]byte, 0, 6_000_000)
		for _, text := range units {
			want = append(want, unhex(t, text)...)
		}
		require.Equal(t, want[:6_000_000], fixture.ReadFile(t, disk, path.Join(folder, "00000000000000000000")))
	}
}

func TestAppendReadReopen(t *testing.T) {
	disk, _, q := newTable(t)
	requireUnits(t, q, 0, 0)
	require.Equal(t, messages.PhysicalOffset(-1), q.PhysicalEnd())
	appendUnits(t, q, 0, 5)
	requireUnits(t, q, 0, 5)
	require.Equal(t, int64(5), q.Pending())
	_, err := disk.Stat(dir)
	require.Error(t, err, "nothing is on the disk before Write")

	require.NoError(t, q.Write())
	require.Zero(t, q.Pending())
	requireUnits(t, q, 0, 5)
	q.Cool()
	require.Nil(t, q.tail.Load().list())
	requireUnits(t, q, 0, 5)
	appendUnits(t, q, 5, 37)
	requireUnits(t, q, 0, 37)
	require.NoError(t, q.Sync())
	require.Equal(t, []string{segments.Name(0), segments.Name(200), segments.Name(400), segments.Name(600)}, names(t, disk, dir+"/T/1"))
	for i := range int64(4) {
		want := encode(10*i, min(10*i+10, 37))
		require.Equal(t, append(want, make([]byte, 200-len(want))...), fixture.ReadFile(t, disk, filePath(10*i)))
	}
	q = reopen(t, disk.Crash(1))
	requireUnits(t, q, 0, 37)
	require.NoError(t, q.Damaged())
	appendUnits(t, q, 37, 41)
	requireUnits(t, q, 0, 41)
}

func TestAppendIsIdempotentAndNeverMisaligned(t *testing.T) {
	_, _, q := newTable(t)
	appendUnits(t, q, 0, 5)
	for i := range int64(5) {
		ok, err := q.Append(unit(i), messages.QueueOffset(i))
		require.NoError(t, err)
		require.False(t, ok)
	}
	_, err := q.Append(unit(7), 7)
	require.ErrorIs(t, err, ErrGap)
	var place *PlaceError
	require.ErrorAs(t, err, &place)
	require.Equal(t, PlaceError{Queue: key, At: 7, Max: 5, Physical: 700, PhysicalEnd: 500, Err: ErrGap}, *place)
	_, err = q.Append(unit(9), 3)
	require.ErrorIs(t, err, ErrOrder, "a new record for an offset that is taken")
	_, err = q.Append(unit(2), 5)
	require.ErrorIs(t, err, ErrOrder, "a record from further back")
	for _, u := range []Unit{{}, filler, {PhysicalOffset: 900}} {
		_, err = q.Append(u, 5)
		require.Error(t, err)
		_, err = q.Append(u, 3)
		require.ErrorIs(t, err, ErrUnit)
	}
	_, err = q.Append(unit(9), -1)
	require.Error(t, err)
	requireUnits(t, q, 0, 5)
}

func TestQueueBeginsInALaterFile(t *testing.T) {
	disk, _, q := newTable(t)
	ok, err := q.Append(unit(23), 23)
	require.NoError(t, err)
	require.True(t, ok)
	require.Error(t, q.Begin(30))
	requireUnits(t, q, 23, 24)
	require.NoError(t, q.Write())
	require.Equal(t, []string{"00000000000000000400"}, names(t, disk, dir+"/T/1"))
	want := append(filler.AppendTo(filler.AppendTo(filler.AppendTo(nil))), encode(23, 24)...)
	require.Equal(t, append(want, make([]byte, 200-len(want))...), fixture.ReadFile(t, disk, filePath(20)))
	q = reopen(t, disk)
	appendUnits(t, q, 24, 45)
	requireUnits(t, q, 23, 45)
	require.NoError(t, q.Sync())
	q = reopen(t, disk)
	requireUnits(t, q, 23, 45)
	require.NoError(t, q.SetMin(0))
	require.Equal(t, messages.QueueOffset(23), q.Min(), "fillers do not count")
}

func TestBeginSetsAFloor(t *testing.T) {
	_, _, q := newTable(t)
	require.Error(t, q.Begin(-1))
	require.NoError(t, q.Begin(40))
	requireUnits(t, q, 40, 40)
	_, err := q.Append(unit(41), 41)
	require.ErrorIs(t, err, ErrGap)
	appendUnits(t, q, 40, 60)
	requireUnits(t, q, 40, 60)
	require.Error(t, q.Begin(60))
}

func TestChunksGrowAndLeaveTheMemory(t *testing.T) {
	disk := memfs.New()
	table := openTable(t, disk, Options{FileBytes: 5000 * UnitBytes})
	q, err := table.Create(key)
	require.NoError(t, err)
	appendUnits(t, q, 0, 1)
	require.Len(t, q.cur.buf, minChunkUnits*UnitBytes)
	appendUnits(t, q, 1, 12_000)
	require.Len(t, q.cur.buf, maxChunkUnits*UnitBytes)
	require.Greater(t, len(q.tail.Load().list()), 5)
	requireUnits(t, q, 0, 12_000)
	require.NoError(t, q.Write())
	require.Len(t, q.tail.Load().list(), 2)
	requireUnits(t, q, 0, 12_000)
	appendUnits(t, q, 12_000, 20_000)
	requireUnits(t, q, 0, 20_000)
	q.Cool()
	require.Greater(t, len(q.tail.Load().list()), 2, "not written yet")
	requireUnits(t, q, 0, 20_000)
}

// W28: a minimum is found by a binary search over all files of a queue.
func TestSearchSetMinDeleteExpired(t *testing.T) {
	disk, _, q := newTable(t)
	appendUnits(t, q, 0, 45)
	require.NoError(t, q.Write())
	q.Cool()
	appendUnits(t, q, 45, 48)
	for physical, want := range map[messages.PhysicalOffset]messages.QueueOffset{
		-5: 0, 0: 0, 1: 1, 100: 1, 1999: 20, 2000: 20, 4401: 45, 4700: 47, 4701: 48, 4800: 48, 1 << 60: 48,
	} {
		got, err := q.Search(physical)
		require.NoError(t, err)
		require.Equal(t, want, got, physical)
	}
	require.NoError(t, q.SetMin(2050))
	requireUnits(t, q, 21, 48)
	require.NoError(t, q.SetMin(500), "never back")
	requireUnits(t, q, 21, 48)
	n, err := q.DeleteExpired()
	require.NoError(t, err)
	require.Equal(t, 2, n)
	requireUnits(t, q, 21, 48)
	require.NoError(t, q.Sync())
	requireUnits(t, reopen(t, disk.Crash(3)), 20, 48)

	require.NoError(t, q.SetMin(1<<40))
	requireUnits(t, q, 48, 48)
	n, err = q.DeleteExpired()
	require.NoError(t, err)
	require.Equal(t, 2, n, "never the last file")
	require.Equal(t, []string{segments.Name(800)}, names(t, disk, dir+"/T/1"))
	appendUnits(t, q, 48, 61)
	requireUnits(t, q, 48, 61)
}

func TestTruncate(t *testing.T) {
	for _, cool := range []bool{false, true} {
		for to := range int64(46) {
			disk, _, q := newTable(t)
			appendUnits(t, q, 0, 40)
			require.NoError(t, q.Write())
			if cool {
				q.Cool()
			}
			appendUnits(t, q, 40, 45)
			require.ErrorIs(t, q.Truncate(46), ErrAboveMax)
			if to > 45 {
				continue
			}
			require.NoError(t, q.Truncate(messages.QueueOffset(to)))
			requireUnits(t, q, 0, to)
			if to == 0 {
				require.Equal(t, messages.PhysicalOffset(-1), q.PhysicalEnd())
			}
			require.NoError(t, q.Sync())
			if to == 0 {
				require.Nil(t, openTable(t, disk.Crash(1), small).Lookup(key))
			} else {
				requireUnits(t, reopen(t, disk.Crash(1)), 0, to)
			}
			appendUnits(t, q, to, 50)
			requireUnits(t, q, 0, 50)
			require.NoError(t, q.Sync())
			requireUnits(t, reopen(t, disk.Crash(1)), 0, 50)
		}
	}
}

func TestTruncateLeavesNoFillerOnlyFile(t *testing.T) {
	disk, _, q := newTable(t)
	appendUnitsFrom(t, q, 23, 28)
	require.NoError(t, q.Write())
	require.ErrorIs(t, q.Truncate(22), ErrBelowMin)
	require.NoError(t, q.Truncate(23))
	require.Empty(t, names(t, disk, dir+"/T/1"))
	requireUnits(t, q, 23, 23)
	appendUnits(t, q, 23, 32)
	require.NoError(t, q.Write())
	requireUnits(t, reopen(t, disk), 23, 32)
}

func appendUnitsFrom(t testing.TB, q *Queue, from, to int64) {
	require.NoError(t, q.Begin(messages.QueueOffset(from)))
	appendUnits(t, q, from, to)
}

func TestKilledInsideTruncateIsMended(t *testing.T) {
	disk, _, q := newTable(t)
	appendUnits(t, q, 0, 17)
	require.NoError(t, q.Write())
	boom := errors.New("killed")
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindTruncate && op.Off == small.FileBytes {
			return boom
		}
		return nil
	})
	require.ErrorIs(t, q.Truncate(13), boom)
	require.ErrorIs(t, q.Damaged(), boom)
	disk.Inject(nil)
	again := reopen(t, disk)
	requireUnits(t, again, 0, 13)
	require.NoError(t, again.Damaged())
	require.Len(t, fixture.ReadFile(t, disk, filePath(10)), int(small.FileBytes))
	require.NoError(t, q.Truncate(13), "or the process goes on")
	require.NoError(t, q.Damaged())
}

func TestDestroy(t *testing.T) {
	disk, table, q := newTable(t)
	appendUnits(t, q, 0, 33)
	require.NoError(t, q.Sync())
	other, err := table.Create(messages.QueueKey{Topic: "T", QueueID: 2})
	require.NoError(t, err)
	require.Equal(t, 2, table.Len())
	require.NoError(t, q.Destroy())
	require.Nil(t, table.Lookup(key))
	require.Equal(t, 1, table.Len())
	require.Equal(t, other, table.Lookup(other.Key()))
	_, err = q.Read(0, make([]Unit, 1))
	require.ErrorIs(t, err, ErrDestroyed)
	_, err = q.Append(unit(0), 0)
	require.ErrorIs(t, err, ErrDestroyed)
	_, err = q.Append(unit(9), 9)
	require.ErrorIs(t, err, ErrDestroyed)
	require.ErrorIs(t, q.Truncate(0), ErrDestroyed)
	require.ErrorIs(t, q.Begin(0), ErrDestroyed)
	require.NoError(t, q.Sync())
	require.NoError(t, q.Destroy())
	crashed := disk.Crash(2)
	require.Empty(t, names(t, crashed, dir+"/T"))
	q, err = table.Create(key)
	require.NoError(t, err)
	appendUnits(t, q, 0, 3)
	requireUnits(t, q, 0, 3)
}

// TestModel runs random operations and compares with what a list of offsets says.
func TestModel(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		disk, table, q := newTable(t)
		least, end := int64(0), int64(0)
		first := int64(0) // of the oldest file
		for range 120 {
			switch rnd.IntN(10) {
			case 0, 1, 2, 3:
				n := rnd.Int64N(25)
				appendUnits(t, q, end, end+n)
				end += n
			case 4:
				require.NoError(t, q.Write())
			case 5:
				require.NoError(t, q.Sync())
			case 6:
				q.Cool()
			case 7:
				end = least + rnd.Int64N(end-least+1)
				require.NoError(t, q.Truncate(messages.QueueOffset(end)))
			case 8:
				least += rnd.Int64N(end - least + 1)
				require.NoError(t, q.SetMin(messages.PhysicalOffset(100*least)))
				n, err := q.DeleteExpired()
				require.NoError(t, err)
				first += int64(n) * 10
			case 9:
				if end <= first {
					continue // no file is left; the queue would begin anew
				}
				require.NoError(t, q.Write())
				require.NoError(t, table.Close())
				table = openTable(t, disk, small)
				q = table.Lookup(key)
				require.NotNil(t, q, "seed %d", seed)
				require.NoError(t, q.SetMin(messages.PhysicalOffset(100*least)))
			}
			require.NoError(t, q.Damaged())
			if least == end {
				least, _ := q.Range()
				require.Equal(t, end, int64(least), "seed %d", seed)
				continue
			}
			requireUnits(t, q, least, end)
		}
	}
}
