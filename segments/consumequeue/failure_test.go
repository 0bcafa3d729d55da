package consumequeue

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

func TestFailedWriteLosesNothing(t *testing.T) {
	boom := errors.New("boom")
	for _, kind := range []memfs.Kind{memfs.KindCreate, memfs.KindTruncate, memfs.KindWrite, memfs.KindRename, memfs.KindMkdir, memfs.KindClose} {
		for _, begin := range []int64{0, 3} {
			disk, _, q := newTable(t)
			require.NoError(t, q.Begin(messages.QueueOffset(begin)))
			appendUnits(t, q, begin, 25)
			disk.Inject(func(op memfs.Op) error {
				if op.Kind == kind {
					return memfs.Short(13, boom)
				}
				return nil
			})
			require.ErrorIs(t, q.Write(), boom, kind)
			appendUnits(t, q, 25, 27)
			requireUnits(t, q, begin, 27)
			disk.Inject(nil)
			require.NoError(t, q.Sync())
			require.Zero(t, q.Pending())
			require.Equal(t, []string{"1"}, names(t, disk, dir+"/T"), "nothing is left beside the folder")
			requireUnits(t, reopen(t, disk.Crash(1)), begin, 27)
		}
	}
}

func TestFullDiskHeals(t *testing.T) {
	disk, _, q := newTable(t)
	appendUnits(t, q, 0, 5)
	require.NoError(t, q.Write())
	disk.SetCapacity(4096)
	appendUnits(t, q, 5, 95)
	require.ErrorIs(t, q.Write(), vfs.ErrNoSpace)
	requireUnits(t, q, 0, 95)
	disk.SetCapacity(0)
	require.NoError(t, q.Sync())
	requireUnits(t, reopen(t, disk.Crash(1)), 0, 95)
}

func TestWhatIsWrittenIsDurableAfterSyncWrittenWithItsFolders(t *testing.T) {
	for seed := range uint64(12) {
		disk, _, q := newTable(t)
		appendUnits(t, q, 0, 25)
		require.NoError(t, q.Write())
		appendUnits(t, q, 25, 27)
		require.NoError(t, q.SyncWritten())
		require.EqualValues(t, 2, q.Pending(), "what has come meanwhile is left to the next round")
		requireUnits(t, reopen(t, disk.Crash(seed)), 0, 25)
	}
}

func TestFailedSyncIsFinal(t *testing.T) {
	for _, kind := range []memfs.Kind{memfs.KindDataSync, memfs.KindSyncDir} {
		disk, table, q := newTable(t)
		appendUnits(t, q, 0, 25)
		require.NoError(t, q.Write())
		boom := errors.New("boom")
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == kind {
				return boom
			}
			return nil
		})
		require.ErrorIs(t, q.Sync(), boom)
		disk.Inject(nil)
		require.ErrorIs(t, q.Sync(), boom, "a later sync would succeed without having written anything")
		require.ErrorIs(t, q.SyncWritten(), boom)
		require.ErrorIs(t, table.Sync(), boom)
		requireUnits(t, q, 0, 25)
		require.NoError(t, q.Destroy())
		q, err := table.Create(key)
		require.NoError(t, err)
		appendUnits(t, q, 0, 25)
		require.NoError(t, q.Sync())
	}
}

// TestPowerCut crashes a queue at random moments. What recovery has to do is shown: it cuts at the physical offset that
// is known to be synced, and dispatches from there again.
func TestPowerCut(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		disk, _, q := newTable(t)
		begin := rnd.Int64N(2) * rnd.Int64N(30)
		require.NoError(t, q.Begin(messages.QueueOffset(begin)))
		end, synced := begin, begin
		for range 1 + rnd.IntN(8) {
			n := rnd.Int64N(30)
			appendUnits(t, q, end, end+n)
			end += n
			switch rnd.IntN(4) {
			case 0:
				require.NoError(t, q.Write())
			case 1:
				require.NoError(t, q.Sync())
				synced = end
			case 2:
				end = max(synced, end-rnd.Int64N(10))
				require.NoError(t, q.Truncate(messages.QueueOffset(end)))
			}
		}
		recoverAfterPowerCut(t, disk.Crash(seed), begin, synced, end)
		recoverAfterPowerCut(t, disk.Clone(), begin, synced, end)

		killed := openTable(t, disk.Clone(), small).Lookup(key)
		if killed != nil {
			require.NoError(t, killed.Damaged())
			requireUnits(t, killed, begin, int64(killed.Max()))
			require.LessOrEqual(t, synced, int64(killed.Max()))
		}
	}
}

func recoverAfterPowerCut(t *testing.T, disk *memfs.Disk, begin, synced, end int64) {
	table := openTable(t, disk, small)
	q, err := table.Create(key)
	require.NoError(t, err)
	if q.Max() == 0 {
		require.Equal(t, begin, synced)
		require.NoError(t, q.Destroy()) // what the cut has left may be anything
		q, err = table.Create(key)
		require.NoError(t, err)
		require.NoError(t, q.Begin(messages.QueueOffset(begin)))
	} else {
		require.GreaterOrEqual(t, int64(q.Max()), synced)
		at, err := q.Search(messages.PhysicalOffset(100 * synced))
		require.NoError(t, err)
		require.NoError(t, q.Truncate(at))
	}
	require.NoError(t, q.Damaged())
	requireUnits(t, q, begin, synced)
	appendUnits(t, q, synced, end)
	requireUnits(t, q, begin, end)
	require.NoError(t, q.Sync())
	entries, err := vfs.ListIfThere(disk, dir+"/T")
	require.NoError(t, err)
	for _, e := range entries {
		require.Equal(t, "1", e.Name)
	}
	if end > begin {
		q = reopen(t, disk.Crash(uint64(end)))
		require.NoError(t, q.Damaged())
		requireUnits(t, q, begin, end)
	}
}

// TestCrashAtEveryStep cuts the power and kills the process before each operation that changes the disk.
func TestCrashAtEveryStep(t *testing.T) {
	disk, _, q := newTable(t)
	steps := 0
	synced := int64(0)
	disk.Inject(func(op memfs.Op) error {
		if op.Kind.Changes() {
			for seed := range uint64(6) {
				after := openTable(t, disk.Crash(seed), small).Lookup(key)
				if after == nil {
					require.Zero(t, synced)
				} else {
					require.GreaterOrEqual(t, int64(after.Max()), synced)
				}
			}
			if after := openTable(t, disk.Clone(), small).Lookup(key); after != nil {
				require.NoError(t, after.Damaged())
				requireUnits(t, after, 0, int64(after.Max()))
			}
			steps++
		}
		return nil
	})
	for end := int64(0); end < 35; end += 7 {
		appendUnits(t, q, end, end+7)
		require.NoError(t, q.Write())
		require.NoError(t, q.Sync())
		synced = end + 7
	}
	synced = 12
	require.NoError(t, q.Truncate(12))
	require.NoError(t, q.Sync())
	disk.Inject(nil)
	require.Greater(t, steps, 20)
}

func TestDamage(t *testing.T) {
	full := func(from int64) []byte { return encode(from, from+10) }
	for name, c := range map[string]struct {
		files   map[string][]byte // by file name; padded to the right size unless it ends in short
		end     int64
		damaged error // nil: sound
		left    int   // files after OpenTable
	}{
		"sound":            {map[string][]byte{"00": full(0), "20": encode(10, 13)}, 13, nil, 2},
		"zero last file":   {map[string][]byte{"00": full(0), "20": nil}, 10, nil, 1},
		"filler last file": {map[string][]byte{"00": encode(0, 4), "20": filler.AppendTo(nil)}, 4, nil, 1},
		"two empty files":  {map[string][]byte{"00": encode(0, 4), "20": nil, "40": filler.AppendTo(nil)}, 4, nil, 1},
		"empty last file":  {map[string][]byte{"00": full(0), "20 0": nil}, 10, nil, 1},
		"cut in Truncate":  {map[string][]byte{"00": full(0), "20 60": encode(10, 13)}, 13, nil, 2},
		"cut, next there":  {map[string][]byte{"00 60": encode(0, 3), "20": encode(10, 13)}, 3, ErrUnit, 2},
		"two sizes":        {map[string][]byte{"00 60": encode(0, 3), "20 60": encode(10, 13)}, 0, segments.ErrSize, 2},
		"torn short file":  {map[string][]byte{"00": full(0), "20 65": encode(10, 13)}, 10, segments.ErrSize, 2},
		"short sparse":     {map[string][]byte{"00": full(0), "20 80": encode(10, 13)}, 10, segments.ErrSize, 2},
		"long file":        {map[string][]byte{"00 400": encode(0, 20)}, 0, segments.ErrSize, 1},
		"short first file": {map[string][]byte{"00 100": encode(0, 4), "20": full(10)}, 0, segments.ErrSize, 2},
		"odd place":        {map[string][]byte{"00": full(0), "30": full(10)}, 10, segments.ErrName, 2},
		"missing file":     {map[string][]byte{"00": full(0), "40": full(20)}, 10, ErrGap, 2},
		"hole in the row":  {map[string][]byte{"00": encode(0, 7), "20": full(10)}, 7, ErrUnit, 2},
		"hole in the last": {map[string][]byte{"00": append(append(encode(0, 3), make([]byte, 40)...), encode(5, 7)...)}, 3, ErrUnit, 1},
		"late first unit":  {map[string][]byte{"00": append(make([]byte, 20), encode(1, 3)...)}, 0, ErrUnit, 1},
		"foreign start":    {map[string][]byte{"00": full(0), "20": encode(3, 6)}, 10, ErrUnit, 2},
		"falling":          {map[string][]byte{"00": append(encode(0, 4), encode(2, 3)...)}, 4, ErrUnit, 1},
		"torn unit":        {map[string][]byte{"00": encode(0, 4)[:70]}, 3, ErrUnit, 1},
		"filler inside":    {map[string][]byte{"00": filler.AppendTo(encode(0, 4))}, 4, ErrUnit, 1},
		"filler second":    {map[string][]byte{"00": full(0), "20": append(filler.AppendTo(nil), encode(11, 13)...)}, 10, ErrUnit, 2},
	} {
		t.Run(name, func(t *testing.T) {
			disk := memfs.New()
			for at, b := range c.files {
				size := small.FileBytes
				var start int64
				if n, err := sscan(at, &start, &size); n == 1 {
					require.Error(t, err)
					size = small.FileBytes
				}
				writeFile(t, disk, filePath(start/2), b, size)
			}
			q := reopen(t, disk)
			if c.damaged == nil {
				require.NoError(t, q.Damaged())
			} else {
				require.ErrorIs(t, q.Damaged(), c.damaged)
				var corruption *segments.CorruptionError
				require.ErrorAs(t, q.Damaged(), &corruption)
			}
			requireUnits(t, q, 0, c.end)
			require.Len(t, names(t, disk, dir+"/T/1"), c.left)
			require.NoError(t, q.Truncate(messages.QueueOffset(c.end)))
			require.NoError(t, q.Damaged())
			appendUnits(t, q, c.end, c.end+25)
			require.NoError(t, q.Sync())
			q = reopen(t, disk)
			require.NoError(t, q.Damaged())
			requireUnits(t, q, 0, c.end+25)
		})
	}
}

func TestOpenTableLeavesForeignThingsAlone(t *testing.T) {
	disk, table, q := newTable(t)
	appendUnits(t, q, 0, 15)
	require.NoError(t, table.Sync())
	for _, name := range []string{"/README", "/T/notes", "/T/x/00000000000000000000", "/T/01/00000000000000000000",
		"/T/1/.00000000000000000000.swp", "/T/1/123", "/T/3.new/x"} {
		writeFile(t, disk, dir+name, []byte("hello"), 5)
	}
	writeFile(t, disk, dir+"/T/2.new", []byte("half made"), 200)
	require.NoError(t, disk.MkdirAll(dir+"/Empty"))
	require.NoError(t, disk.MkdirAll(dir+"/T/9"))
	table = openTable(t, disk, small)
	require.Equal(t, 1, table.Len())
	requireUnits(t, table.Lookup(key), 0, 15)
	require.Equal(t, []string{dir + "/README", dir + "/T/01", dir + "/T/1/.00000000000000000000.swp", dir + "/T/1/123",
		dir + "/T/3.new", dir + "/T/notes", dir + "/T/x"}, table.Ignored())
	require.NotContains(t, names(t, disk, dir+"/T"), "2.new")
	require.NoError(t, table.Lookup(key).Destroy())
	require.Equal(t, []string{".00000000000000000000.swp", "123"}, names(t, disk, dir+"/T/1"))
}

func TestFilesThatVanishWhileLoading(t *testing.T) {
	disk, table, q := newTable(t)
	appendUnits(t, q, 0, 45)
	require.NoError(t, table.Sync())
	done := false
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindOpen && !done {
			done = true
			require.NoError(t, q.SetMin(2000))
			_, err := q.DeleteExpired()
			require.NoError(t, err)
		}
		return nil
	})
	again := reopen(t, disk)
	requireUnits(t, again, 20, 45)
	require.NoError(t, again.Damaged())
}

func FuzzRecover(f *testing.F) {
	f.Add(encode(0, 3), uint8(1))
	f.Add(append(filler.AppendTo(nil), encode(1, 9)...), uint8(0))
	f.Add(append(make([]byte, 60), encode(3, 10)...), uint8(1))
	f.Add(append(encode(10, 14), encode(11, 13)...), uint8(1))
	f.Add(encode(0, 11), uint8(2))
	f.Add(encode(10, 13)[:55], uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, how uint8) {
		disk := memfs.New()
		start, size := int64(0), small.FileBytes
		if how&1 != 0 {
			writeFile(t, disk, filePath(0), encode(0, 10), size)
			start = 10
		}
		if how&2 != 0 {
			size = min(int64(len(data)), 2*size)
		}
		writeFile(t, disk, filePath(start), data[:min(int64(len(data)), size)], size)
		first := openTable(t, disk, small).Lookup(key)
		second := openTable(t, disk, small).Lookup(key)
		require.Equal(t, first == nil, second == nil)
		if first == nil {
			return
		}
		requireSame(t, first, second)
		require.NoError(t, first.Verify())
		require.NoError(t, first.Truncate(first.Max()))
		third := openTable(t, disk, small).Lookup(key)
		if third == nil {
			require.Equal(t, first.Min(), first.Max())
			return
		}
		require.NoError(t, third.Damaged())
		first.damaged = nil
		requireSame(t, first, third)
	})
}

func requireSame(t *testing.T, a, b *Queue) {
	require.Equal(t, a.Min(), b.Min())
	require.Equal(t, a.Max(), b.Max())
	require.Equal(t, a.PhysicalEnd(), b.PhysicalEnd())
	require.Equal(t, a.Damaged() == nil, b.Damaged() == nil)
}

// TestPowerCutLeavesNoFillerOnlyFile looks at what RocketMQ would find: fillers without the unit behind them are a phantom
// record of 2 GiB for it (spec/store.md §16, W4).
func TestPowerCutLeavesNoFillerOnlyFile(t *testing.T) {
	disk := memfs.New()
	table := openTable(t, disk, Options{FileBytes: 5000 * UnitBytes})
	q, err := table.Create(key)
	require.NoError(t, err)
	require.NoError(t, q.Begin(1000))
	appendUnits(t, q, 1000, 1003)
	require.NoError(t, q.Write())
	seen := 0
	for seed := range uint64(60) {
		left := disk.Crash(seed)
		if _, err := left.Stat(filePath(0)); err != nil {
			continue
		}
		seen++
		b := fixture.ReadFile(t, left, filePath(0))
		require.Len(t, b, 5000*UnitBytes)
		require.Equal(t, filler, DecodeUnit(b[999*UnitBytes:]))
		require.Equal(t, unit(1002), DecodeUnit(b[1002*UnitBytes:]))
	}
	require.Positive(t, seen)
}

// TestKilledThenPowerCut ends the process before a Sync, goes on from what it wrote, syncs, and cuts the power: what the first
// process had not synced must be durable too.
func TestKilledThenPowerCut(t *testing.T) {
	disk, _, q := newTable(t)
	appendUnits(t, q, 0, 15)
	require.NoError(t, q.Write())
	requireDurable(t, disk.Clone(), 15)

	appendUnits(t, q, 15, 25)
	require.NoError(t, q.Sync())
	require.NoError(t, q.Truncate(20))
	requireDurable(t, disk.Clone(), 20)
}

func requireDurable(t *testing.T, disk *memfs.Disk, end int64) {
	table := openTable(t, disk, small)
	q := table.Lookup(key)
	require.NoError(t, q.Truncate(messages.QueueOffset(end)))
	require.NoError(t, table.Sync())
	for seed := range uint64(30) {
		requireUnits(t, reopen(t, disk.Crash(seed)), 0, end)
	}
}

// TestReadBesideTruncate cuts the queue, and fills it with other units, just before the reader's pread.
func TestReadBesideTruncate(t *testing.T) {
	disk, _, q := newTable(t)
	appendUnits(t, q, 0, 30)
	require.NoError(t, q.Write())
	q.Cool()
	done := false
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindRead && !done {
			done = true
			require.NoError(t, q.Truncate(10))
			_, err := q.Append(unit(77), 10)
			require.NoError(t, err)
			require.NoError(t, q.Write())
		}
		return nil
	})
	_, err := q.Read(10, make([]Unit, 5))
	require.ErrorIs(t, err, ErrChanged)
	var got [5]Unit
	n, err := q.Read(10, got[:])
	require.NoError(t, err)
	require.Equal(t, []Unit{unit(77)}, got[:n])
}

// TestReadersOfAnOldTailKeepIt looks at the memory that a reader may hold while the builder goes on.
func TestReadersOfAnOldTailKeepIt(t *testing.T) {
	_, _, q := newTable(t)
	appendUnits(t, q, 0, 12)
	old := q.tail.Load()
	require.NoError(t, q.Truncate(5))
	_, err := q.Append(unit(77), 5)
	require.NoError(t, err)
	var got [12]Unit
	n, err := q.read(old, 0, got[:])
	require.NoError(t, err)
	for i, u := range got[:n] {
		require.Equal(t, unit(int64(i)), u)
	}
}

// TestWhatCouldNotBeWrittenBackFailsTheSyncOfAll: a system says so just once, and has said it already.
func TestWhatCouldNotBeWrittenBackFailsTheSyncOfAll(t *testing.T) {
	disk, table, q := newTable(t)
	appendUnits(t, q, 0, 5)
	for id := range int32(fewQueues) {
		other, err := table.Create(messages.QueueKey{Topic: "Other", QueueID: id})
		require.NoError(t, err)
		appendUnits(t, other, 0, 1)
	}
	boom := errors.New("boom")
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindWriteback && strings.HasPrefix(op.Name, dir+"/T") {
			return boom
		}
		return nil
	})
	require.ErrorIs(t, table.SyncAll(0), boom)
	require.ErrorIs(t, table.SyncAll(0), boom)
}

// TestExpiredFilesGoAfterWhatFollowsThemIsDurable: a power cut may take the new file, or its content, and the queue with it, whose next message
// would then be the first again.
func TestExpiredFilesGoAfterWhatFollowsThemIsDurable(t *testing.T) {
	for seed := range uint64(60) {
		disk, _, q := newTable(t)
		appendUnits(t, q, 0, 10)
		require.NoError(t, q.Sync())
		appendUnits(t, q, 10, 11)
		if seed%2 == 0 {
			require.NoError(t, q.Write())
		}
		require.NoError(t, q.SetMin(1000))
		n, err := q.DeleteExpired()
		require.NoError(t, err)
		left := openTable(t, disk.Crash(seed), small).Lookup(key)
		require.NotNil(t, left, "seed %d, %d files deleted", seed, n)
		require.GreaterOrEqual(t, left.Max(), messages.QueueOffset(10), "seed %d", seed)
	}
}

// TestExpiredFilesGoOnAFullDisk: they are what makes room. Only units whose records have gone must be in the files before.
func TestExpiredFilesGoOnAFullDisk(t *testing.T) {
	for _, written := range []int64{11, 12, 13} {
		for seed := range uint64(20) {
			disk, _, q := newTable(t)
			appendUnits(t, q, 0, written)
			require.NoError(t, q.Write())
			appendUnits(t, q, written, 14)
			require.NoError(t, q.SetMin(1200))
			disk.Inject(func(op memfs.Op) error {
				if op.Kind == memfs.KindWrite {
					return vfs.ErrNoSpace
				}
				return nil
			})
			n, err := q.DeleteExpired()
			if written < 12 {
				require.ErrorIs(t, err, vfs.ErrNoSpace)
				require.Zero(t, n)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.NoError(t, q.SyncWritten())
			disk.Inject(nil)
			requireUnits(t, q, 12, 14)
			left := reopen(t, disk.Crash(seed))
			require.NoError(t, left.SetMin(1200))
			requireUnits(t, left, 12, written)
			require.NoError(t, q.Sync())
			left = reopen(t, disk.Crash(seed))
			require.NoError(t, left.SetMin(1200))
			requireUnits(t, left, 12, 14)
		}
	}
}
