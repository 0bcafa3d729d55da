package index

import (
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// specFile is the index file of spec/store.md §17.8: 10 slots, 20 entries, 480 bytes.
const specFile = `0000018bcfe5687b 0000018bcfe5687b 0000000000000000 00000000000004bc 00000004 00000007
	00000000 00000004 00000000 00000000 00000002 00000005 00000000 00000006 00000000 00000000
	0000000000000000000000000000000000000000
	6b65a4f200000000000000000000000000000000
	0029e6a800000000000000000000000000000001
	0029e6a900000000000000000000000000000000
	0029e3fd00000000000001a30000000000000000
	41045cb300000000000003fa0000000000000003
	0029e42100000000000004bc0000000000000000`

// Rolled files of the same section: 4 slots, 4 entries, a record every 5 s.
const (
	rolledFirst = `0000018bcfe5687b0000018bcfe58f8b000000000000000000000000000000ca0000000300000004
		00000001 00000002 00000003 00000000
		0000000000000000000000000000000000000000
		0026bfb400000000000000000000000000000000 0026bfb500000000000000650000000500000000
		0026bfb600000000000000ca0000000a00000000`
	rolledSecondHead = `0000018bcfe5a3130000018bcfe5ca23000000000000012f00000000000001f90000000300000004
		00000002 00000003 00000000 00000001
		0000000000000000000000000000000000000000`
	rolledSecondRest = `0026bfb800000000000001940000000500000000 0026bfb900000000000001f90000000a00000000`
	theirFirstEntry  = `0026bfb7000000000000012f0000000500000000`
	ourFirstEntry    = `0026bfb7000000000000012f0000000000000000`
)

func specRecords() []messages.DispatchRequest {
	r := func(topic string, at messages.PhysicalOffset, uniq, keys string) messages.DispatchRequest {
		return messages.DispatchRequest{
			Queue: messages.QueueKey{Topic: topic}, PhysicalOffset: at, StoreTimestampMs: start,
			UniqKey: []byte(uniq), Keys: []byte(keys),
		}
	}
	rollback := r("TopicTest", 0x400, "never", "never")
	rollback.SysFlag = messages.SysFlagTransactionRollback
	return []messages.DispatchRequest{
		r("TopicTest", 0, "0A010203000018B4AAC206E2D6190000", "k1 k2"), r("TopicTest", 167, "", ""),
		r("TopicTest", 0x1a3, "U0", " "), r("RMQ_SYS_TRANS_HALF_TOPIC", 0x3fa, "UT", ""), rollback,
		r("TopicTest", 0x4bc, "UT", ""),
	}
}

func TestFileIsThatOfTheSpecification(t *testing.T) {
	oneByOne := func(s *Set) {
		for _, r := range specRecords() {
			require.NoError(t, s.BuildFrom(&r))
		}
	}
	together := func(s *Set) {
		n, err := s.Build(specRecords())
		require.NoError(t, err)
		require.Len(t, specRecords(), n)
	}
	for _, build := range []func(*Set){oneByOne, together} {
		theSpecifiedFile(t, build)
	}
}

func theSpecifiedFile(t *testing.T, build func(*Set)) {
	disk, s := newSet(t, params(10, 20))
	require.Equal(t, messages.PhysicalOffset(-1), s.EndPhysical())
	build(s)
	require.NoError(t, s.Flush())
	require.Equal(t, start, s.FlushedTimestampMs())
	require.Equal(t, messages.PhysicalOffset(0x4bc), s.EndPhysical())
	require.Equal(t, []string{"20261129153309587"}, names(t, disk, dir))
	want := unhex(t, specFile)
	require.Equal(t, append(want, make([]byte, 480-len(want))...), fixture.ReadFile(t, disk, dir+"/20261129153309587"))

	for key, want := range map[string][]messages.PhysicalOffset{
		"k1": {0}, "k2": {0}, "0A010203000018B4AAC206E2D6190000": {0}, "U0": {0x1a3}, "UT": {0x4bc}, "k3": nil, "": nil,
	} {
		found, err := s.Query("TopicTest", key, 64, start, start)
		require.NoError(t, err)
		require.Equal(t, want, found, key)
	}
	for _, r := range specRecords()[:5] { // dispatched again: nothing new
		require.NoError(t, s.BuildFrom(&r))
	}
	require.Equal(t, int32(7), s.list()[0].head.count)
}

func TestRolledFiles(t *testing.T) {
	disk, s := newSet(t, params(4, 4))
	for i := range 6 {
		at := messages.PhysicalOffset(101 * i)
		require.NoError(t, s.Put("T", []byte("k"+strconv.Itoa(i)), at, start+int64(i)*5000))
	}
	require.NoError(t, s.Flush())
	list := names(t, disk, dir)
	require.Len(t, list, 2)
	require.Equal(t, unhex(t, rolledFirst), fixture.ReadFile(t, disk, dir+"/"+list[0]))
	require.Equal(t, unhex(t, rolledSecondHead+ourFirstEntry+rolledSecondRest), fixture.ReadFile(t, disk, dir+"/"+list[1]))

	theirs := memfs.New()
	fixture.WriteFile(t, theirs, dir+"/20231114221320123", unhex(t, rolledFirst))
	fixture.WriteFile(t, theirs, dir+"/20231114221335123", unhex(t, rolledSecondHead+theirFirstEntry+rolledSecondRest))
	for _, s := range []*Set{s, openSet(t, theirs, params(4, 4))} {
		require.Equal(t, messages.PhysicalOffset(0x1f9), s.EndPhysical())
		for i := range 6 {
			at := start + int64(i)*5000
			for _, window := range [][2]int64{{0, ever}, {at, at}, {at - 4000, at}, {at, at + 4000}} {
				found, err := s.Query("T", "k"+strconv.Itoa(i), 64, window[0], window[1])
				require.NoError(t, err)
				require.Equal(t, offsets(messages.PhysicalOffset(101*i)), found, "k%d in %v", i, window)
			}
			for _, window := range [][2]int64{{at + 1000, ever}, {0, at - 1000}} {
				found, err := s.Query("T", "k"+strconv.Itoa(i), 64, window[0], window[1])
				require.NoError(t, err)
				require.Empty(t, found, "k%d in %v", i, window)
			}
		}
	}
}

func TestHash(t *testing.T) {
	require.Equal(t, int32(2746024), hashOf([]byte("TopicTest#k1")))
	require.Equal(t, int32(0), hashOf([]byte("polygenelubricants")), "no absolute value")
	require.Equal(t, int32(646394), hashOf([]byte("中文")))
}

func TestSecondsAfter(t *testing.T) {
	for _, c := range []struct {
		begin, at int64
		want      int32
	}{{0, 5000, 0}, {-1, 5000, 0}, {1000, 1999, 0}, {1000, 2000, 1}, {5000, 1000, 0}, {1, math.MaxInt64, math.MaxInt32}} {
		require.Equal(t, c.want, secondsAfter(c.begin, c.at), c)
	}
}

func TestParams(t *testing.T) {
	err := Params{}.Validate()
	require.ErrorIs(t, err, ErrParams)
	require.ErrorContains(t, err, "Slots is 0")
	require.ErrorContains(t, err, "Entries is 0")
	_, err = Open(memfs.New(), dir, Params{Slots: 1, Entries: 1})
	require.ErrorIs(t, err, ErrParams)
	require.Equal(t, int64(420_000_040), Params{Slots: 5_000_000, Entries: 20_000_000}.FileBytes())
	_, err = Open(memfs.New(), dir, Params{Slots: 1, Entries: 2})
	require.NoError(t, err)
}

func TestNewestFirstAndAtMostMax(t *testing.T) {
	_, s := newSet(t, params(3, 8))
	var want []messages.PhysicalOffset
	for i := range 40 {
		require.NoError(t, s.Put("T", []byte("same"), messages.PhysicalOffset(100*i), start+int64(i)*1000))
		want = append(offsets(messages.PhysicalOffset(100*i)), want...)
	}
	require.Equal(t, want, query(t, s, "same"))
	for _, n := range []int{0, 1, 7, 8, 39, 40} {
		found, err := s.Query("T", "same", n, 0, ever)
		require.NoError(t, err)
		require.Equal(t, want[:n], append(make([]messages.PhysicalOffset, 0), found...))
	}
	found, err := s.Query("T", "same", -1, 0, ever)
	require.NoError(t, err)
	require.Empty(t, found)
	require.Empty(t, query(t, s, "other"))
}

// TestQueryModel compares with a list, times included.
func TestQueryModel(t *testing.T) {
	type stored struct {
		key    string
		at, ms int64
	}
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		disk, s := newSet(t, params(1+rnd.Int32N(9), 2+rnd.Int32N(30)))
		var all []stored
		for at, ms := int64(0), start; at < 300; at++ {
			ms += rnd.Int64N(3000)
			m := stored{"k" + strconv.Itoa(rnd.IntN(12)), at * 100, ms}
			all = append(all, m)
			require.NoError(t, s.Put("T", []byte(m.key), messages.PhysicalOffset(m.at), m.ms))
		}
		if seed%2 == 0 {
			require.NoError(t, s.Close())
			s = openSet(t, disk, s.params)
		}
		for range 50 {
			key := "k" + strconv.Itoa(rnd.IntN(12))
			begin := start + rnd.Int64N(600_000)
			end := begin + rnd.Int64N(200_000)
			var must, may []messages.PhysicalOffset
			for i := len(all) - 1; i >= 0; i-- {
				m := all[i]
				if m.key == key && m.ms >= begin && m.ms <= end {
					must = append(must, messages.PhysicalOffset(m.at))
				}
				if m.key == key && m.ms >= begin-1000 && m.ms <= end+1000 {
					may = append(may, messages.PhysicalOffset(m.at))
				}
			}
			found, err := s.Query("T", key, 1000, begin, end)
			require.NoError(t, err)
			require.Subset(t, found, must, "seed %d", seed)
			require.Subset(t, may, found, "seed %d", seed)
		}
	}
}

func TestCollisionsAreReturned(t *testing.T) {
	_, s := newSet(t, params(1, 10))
	require.NoError(t, s.Put("T", []byte("Aa"), 0, start))
	require.NoError(t, s.Put("T", []byte("BB"), 100, start))
	require.NoError(t, s.Put("T", []byte("xx"), 200, start))
	require.Equal(t, offsets(100, 0), query(t, s, "Aa"), "Aa and BB have one hash")
	require.Equal(t, offsets(200), query(t, s, "xx"))
}

func TestRecordThatIsIndexedTwiceIsFoundOnce(t *testing.T) {
	disk, s := newSet(t, params(2, 50))
	r := record(0)
	r.Keys, r.UniqKey = []byte("a b a"), []byte("u")
	require.NoError(t, s.BuildFrom(&r))
	s = openSet(t, disk.Clone(), s.params)
	require.NoError(t, s.BuildFrom(&r), "the last one is taken again")
	require.Equal(t, int32(9), s.list()[0].head.count)
	for _, key := range []string{"a", "b", "u"} {
		require.Equal(t, offsets(0), query(t, s, key), key)
	}
}

// TestFoundIsToldOfWhatQueriesFind: each place once, as the query goes on, and nothing of other keys.
func TestFoundIsToldOfWhatQueriesFind(t *testing.T) {
	var told []messages.PhysicalOffset
	p := params(7, 4)
	p.Found = func(at messages.PhysicalOffset) { told = append(told, at) }
	s := openSet(t, memfs.New(), p)
	for i := range 9 { // six files
		require.NoError(t, s.Put("T", []byte("k"), messages.PhysicalOffset(i/2*100), start))
		require.NoError(t, s.Put("T", []byte("other"), messages.PhysicalOffset(i*100+50), start))
	}
	require.Equal(t, offsets(400, 300, 200, 100, 0), query(t, s, "k"))
	require.Equal(t, offsets(400, 300, 200, 100, 0), told)
	told = nil
	require.Empty(t, query(t, s, "none"))
	require.Empty(t, told)
}

// W17: what is in the last file is there again.
func TestReopenGoesOn(t *testing.T) {
	disk, s := newSet(t, params(5, 20))
	put(t, s, 0, 50)
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Put("T", []byte("x"), 0, start), ErrClosed)
	require.ErrorIs(t, s.Flush(), ErrClosed)
	require.NoError(t, s.Close())
	require.Empty(t, query(t, s, keyOf(1)))
	s = openSet(t, disk.Crash(1), params(5, 20))
	require.Zero(t, s.FlushedTimestampMs(), "nothing is known before the first Flush")
	put(t, s, 0, 90)
	requireKeys(t, s, 0, 90, 100)
	require.Equal(t, 5, s.Len())
	require.NoError(t, s.Flush())
	require.Equal(t, start+89_000, s.FlushedTimestampMs())
}

func TestNames(t *testing.T) {
	now := time.Date(2026, 11, 29, 15, 32, 9, 999_000_000, time.UTC)
	disk, s := newSet(t, Params{Slots: 1, Entries: 2, Now: func() time.Time { return now }})
	put(t, s, 0, 2)
	now = now.Add(-time.Hour)
	put(t, s, 2, 3)
	now = now.Add(2 * time.Hour)
	put(t, s, 3, 4)
	require.Equal(t, []string{"20261129153209999", "20261129153210000", "20261129153210001", "20261129163209999"},
		names(t, disk, dir))
	requireKeys(t, s, 0, 4, 10)
	require.Equal(t, []string{"index"}, names(t, disk, "/store"))
}

func TestDeleteBelow(t *testing.T) {
	disk, s := newSet(t, params(5, 11))
	put(t, s, 0, 45) // files of 10 records: 0-9, 10-19 ...
	for _, c := range []struct {
		least messages.PhysicalOffset
		gone  int
		from  int
	}{{0, 0, 0}, {900, 0, 0}, {901, 1, 10}, {2901, 2, 30}, {1 << 40, 1, 40}, {1 << 40, 0, 40}} {
		n, err := s.DeleteBelow(c.least)
		require.NoError(t, err)
		require.Equal(t, c.gone, n, c.least)
		requireKeys(t, s, c.from, 45, 50)
		require.Len(t, names(t, disk, dir), s.Len())
	}
	require.NoError(t, s.Flush())
	require.Len(t, names(t, disk.Crash(0), dir), 1)
}

// L31: however often it fails.
func TestFailedMakingOfAFileLeavesNothing(t *testing.T) {
	kinds := []memfs.Kind{memfs.KindMkdir, memfs.KindCreate, memfs.KindAllocate, memfs.KindMap, memfs.KindPopulate, memfs.KindRename}
	for _, kind := range kinds {
		disk, s := newSet(t, params(5, 11))
		put(t, s, 0, 10)
		boom := errors.New("boom")
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == kind {
				return boom
			}
			return nil
		})
		for range 100 {
			require.ErrorIs(t, s.Put("T", []byte("x"), 5000, start), boom, kind)
		}
		disk.Inject(nil)
		require.Equal(t, []string{"index"}, names(t, disk, "/store"))
		require.Len(t, names(t, disk, dir), 1)
		require.Equal(t, messages.PhysicalOffset(900), s.EndPhysical())
		put(t, s, 10, 13)
		requireKeys(t, s, 0, 13, 20)
	}
}

func TestFailedSyncIsFinal(t *testing.T) {
	for _, kind := range []memfs.Kind{memfs.KindDataSync, memfs.KindSyncDir} {
		disk, s := newSet(t, params(5, 11))
		put(t, s, 0, 5)
		boom := errors.New("boom")
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == kind {
				return boom
			}
			return nil
		})
		require.ErrorIs(t, s.Flush(), boom)
		disk.Inject(nil)
		require.ErrorIs(t, s.Flush(), ErrFailed)
		require.ErrorIs(t, s.Put("T", []byte("x"), 5000, start), ErrFailed)
		require.ErrorIs(t, s.Truncate(0), ErrFailed)
		require.Zero(t, s.FlushedTimestampMs())
		requireKeys(t, s, 0, 5, 10)
	}
}

// TestBuildTellsHowFarItCame: over new files, and when the disk is full in front of one; the rest then follows without a gap or a double.
func TestBuildTellsHowFarItCame(t *testing.T) {
	disk, s := newSet(t, params(10, 20))
	var all []messages.DispatchRequest
	for i := range 100 {
		all = append(all, record(i))
	}
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindCreate && s.Len() == 2 {
			return vfs.ErrNoSpace
		}
		return nil
	})
	done, err := s.Build(all)
	require.ErrorIs(t, err, vfs.ErrNoSpace)
	require.Equal(t, 2*19, done, "two files are full")
	disk.Inject(nil)
	more, err := s.Build(all[done:])
	require.NoError(t, err)
	require.Len(t, all, done+more)
	for i := range 100 {
		at, err := s.Query("T", keyOf(i), 10, 0, math.MaxInt64)
		require.NoError(t, err)
		require.Equal(t, []messages.PhysicalOffset{all[i].PhysicalOffset}, at)
	}
}
