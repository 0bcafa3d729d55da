package consumequeue

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
)

// TestReadersSeeWhatQueuesHave: a reader that goes on, or elsewhere, never differs from Read, whatever happens to the queue meanwhile.
func TestReadersSeeWhatQueuesHave(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		_, table, q := newTable(t)
		var r Reader
		end, at := int64(0), int64(0)
		for range 150 {
			switch rnd.IntN(12) {
			case 0, 1, 2:
				n := rnd.Int64N(120)
				appendUnits(t, q, end, end+n)
				end += n
			case 3:
				require.NoError(t, q.Sync())
				q.Cool()
			case 4: // what is appended at the same offsets then is something else
				end = int64(q.Min()) + rnd.Int64N(end-int64(q.Min())+1)
				require.NoError(t, q.Truncate(messages.QueueOffset(end)))
				_, err := q.Append(Unit{PhysicalOffset: messages.PhysicalOffset(100*end + 1), Size: 99, TagsCode: rnd.Int64()}, messages.QueueOffset(end))
				require.NoError(t, err)
				end++
			case 5:
				require.NoError(t, q.SetMin(messages.PhysicalOffset(100*(int64(q.Min())+rnd.Int64N(5)))))
				require.NoError(t, q.Sync())
				_, err := q.DeleteExpired()
				require.NoError(t, err)
			case 6:
				at = int64(q.Min()) - 1 + rnd.Int64N(end-int64(q.Min())+3)
			}
			at = requireSameAsRead(t, &r, q, at, 1+rnd.IntN(40))
		}
		require.Same(t, q, r.Lookup(table, key))
		require.NoError(t, q.Destroy())
		_, err := r.Read(q, 0, 1)
		require.ErrorIs(t, err, ErrDestroyed)
		require.Nil(t, r.Lookup(table, key))
		q, err = table.Create(key)
		require.NoError(t, err)
		require.Same(t, q, r.Lookup(table, key))
	}
}

// requireSameAsRead reads and returns where to go on.
func requireSameAsRead(t *testing.T, r *Reader, q *Queue, at int64, want int) int64 {
	t.Helper()
	expected := make([]Unit, want)
	n, expectedErr := q.Read(messages.QueueOffset(at), expected)
	got, err := r.Read(q, messages.QueueOffset(at), want)
	if expectedErr != nil {
		require.Equal(t, expectedErr, err)
		require.Empty(t, got)
		return at
	}
	require.NoError(t, err)
	require.Equal(t, expected[:n], append([]Unit{}, got...))
	require.LessOrEqual(t, r.known, r.have)
	r.Fetch(make([]byte, 5000), messages.PhysicalOffset(50*at), 36)
	require.GreaterOrEqual(t, r.asked, r.known)
	return at + int64(len(got))
}

// TestReadersThatGoOnKnowWhatFollows: and ask for the head of each record once.
func TestReadersThatGoOnKnowWhatFollows(t *testing.T) {
	_, _, q := newTable(t)
	appendUnits(t, q, 0, 1000)
	var r Reader
	for at := int64(0); at < 1000; at += 32 {
		got, err := r.Read(q, messages.QueueOffset(at), 33)
		require.NoError(t, err)
		require.Equal(t, unit(at), got[0])
		asked, known := r.first+int64(r.asked), r.first+int64(r.known)
		switch {
		case at == 0:
			require.EqualValues(t, []int64{0, 33}, []int64{asked, known}, "nobody knows whether it goes on")
		case at > 32:
			require.Equal(t, []int64{min(at+33-32+readerLead, 1000), min(at+33+readerLead, 1000)}, []int64{asked, known})
		}
		r.Fetch(make([]byte, 100), 0, 36)
	}
}

// TestAReaderGoesOnInWhatItHasBegun: units that it has, and such of a queue that was cut meanwhile, are never one answer.
func TestAReaderGoesOnInWhatItHasBegun(t *testing.T) {
	_, _, q := newTable(t)
	appendUnits(t, q, 0, 100)
	r, before := Reader{}, q.tail.Load()
	require.NoError(t, r.fill(q, before, 60))
	require.NoError(t, q.Truncate(50))
	for at := int64(50); at < 100; at++ {
		_, err := q.Append(Unit{PhysicalOffset: messages.PhysicalOffset(100*at + 1), Size: 99}, messages.QueueOffset(at))
		require.NoError(t, err)
	}
	require.NoError(t, r.fill(q, before, 100))
	for at := range int64(100) {
		require.Equal(t, unit(at), r.units[at])
	}
	got, err := r.Read(q, 60, 1)
	require.NoError(t, err)
	require.EqualValues(t, 6001, got[0].PhysicalOffset, "what was cut is read no more")
}

// TestAReaderOfAQueueThatIsGoneIsToldSo: and not that a file is missing, which was deleted before it was opened.
func TestAReaderOfAQueueThatIsGoneIsToldSo(t *testing.T) {
	_, _, q := newTable(t)
	appendUnits(t, q, 0, 25)
	require.NoError(t, q.Sync())
	q.Cool()
	before := q.tail.Load()
	require.NoError(t, q.Destroy())
	_, err := q.readFrom(before, 0, make([]Unit, 5))
	require.ErrorIs(t, err, ErrChanged)
}

// TestFetchIsHarmless: places before and behind what is there, and nothing at all.
func TestFetchIsHarmless(t *testing.T) {
	units := []Unit{{PhysicalOffset: -1}, {PhysicalOffset: math.MinInt64}, {PhysicalOffset: math.MaxInt64}, {}, {PhysicalOffset: 65}, {PhysicalOffset: 64}}
	for _, log := range [][]byte{nil, make([]byte, 35), make([]byte, 36), make([]byte, 100)} {
		for _, from := range []messages.PhysicalOffset{0, -5, 3, math.MinInt64, math.MaxInt64} {
			fetchHeads(units, log, from, 36)
			fetchHeads(nil, log, from, 36)
			fetchHeads(units, log, from, 0)
		}
	}
}

// TestWhoReadsOnReadsAMapping: and is told of damage, and of a file that has become shorter, as ever.
func TestWhoReadsOnReadsAMapping(t *testing.T) {
	table, err := OpenTable(vfs.New(), t.TempDir(), Options{FileBytes: 6000 * UnitBytes})
	require.NoError(t, err)
	defer func() { require.NoError(t, table.Close()) }()
	q, err := table.Create(key)
	require.NoError(t, err)
	appendUnits(t, q, 0, 5000)
	require.NoError(t, q.Sync())
	q.Cool()
	var r Reader
	for at := int64(0); at < 4000; at += 33 {
		got, err := r.Read(q, messages.QueueOffset(at), 33)
		require.NoError(t, err)
		require.Len(t, got, 33)
		require.Equal(t, unit(at+32), got[32])
	}
	f, err := table.files.acquire(q, 0)
	require.NoError(t, err)
	defer table.files.release(f)
	require.NotNil(t, f.mapped.Load(), "who reads on for long reads a mapping")
	_, err = f.WriteAt(make([]byte, UnitBytes), 10*UnitBytes)
	require.NoError(t, err)
	buf := make([]Unit, 33)
	n, err := q.Read(0, buf)
	require.NoError(t, err)
	require.Equal(t, 10, n, "what stands before the damage")
	var damage *segments.CorruptionError
	_, err = q.Read(10, buf)
	require.ErrorAs(t, err, &damage)
	require.EqualValues(t, 10*UnitBytes, damage.Offset)
}

// TestAMappedFileThatWasCutIsDamage: it is told, so that the next start repairs it, as where nobody has mapped it.
func TestAMappedFileThatWasCutIsDamage(t *testing.T) {
	table, err := OpenTable(vfs.New(), t.TempDir(), Options{FileBytes: 6000 * UnitBytes})
	require.NoError(t, err)
	defer func() { require.NoError(t, table.Close()) }()
	var told error
	table.OnDamage(func(_ messages.QueueKey, damage error) { told = damage })
	q, err := table.Create(key)
	require.NoError(t, err)
	appendUnits(t, q, 0, 5000)
	require.NoError(t, q.Sync())
	q.Cool()
	buf := make([]Unit, 1000)
	for at := range int64(4) {
		_, err := q.Read(messages.QueueOffset(1000*at), buf)
		require.NoError(t, err)
	}
	f, err := table.files.acquire(q, 0)
	require.NoError(t, err)
	defer table.files.release(f)
	require.NotNil(t, f.mapped.Load())
	require.NoError(t, os.Truncate(f.Name(), 0))
	_, err = q.Read(4500, buf)
	var damage *segments.CorruptionError
	require.ErrorAs(t, err, &damage)
	require.EqualValues(t, 4500*UnitBytes, damage.Offset)
	require.Equal(t, err, told)
}
