package index

import (
	"errors"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

func TestTruncate(t *testing.T) {
	for end := 0; end <= 45; end++ {
		disk, s := newSet(t, params(7, 11))
		put(t, s, 0, 45)
		require.NoError(t, s.Truncate(messages.PhysicalOffset(100*end)))
		requireKeys(t, s, 0, end, 50)
		last := messages.PhysicalOffset(-1)
		if end > 0 {
			last = messages.PhysicalOffset(100 * (end - 1))
		}
		require.Equal(t, last, s.EndPhysical())
		require.NoError(t, s.Flush())
		s = openSet(t, disk.Crash(1), params(7, 11))
		requireKeys(t, s, 0, end, 50)
		put(t, s, end, 45)
		requireKeys(t, s, 0, 45, 50)
	}
}

func TestTruncateLeavesAWholeFileAlone(t *testing.T) {
	disk, s := newSet(t, params(7, 11))
	put(t, s, 0, 25)
	require.NoError(t, s.Flush())
	before := slices.Clone(s.list())
	disk.Inject(func(op memfs.Op) error {
		if op.Kind.Changes() {
			return errors.New("nothing may change")
		}
		return nil
	})
	require.NoError(t, s.Truncate(2500))
	require.Equal(t, before, s.list())
}

func TestTruncatedFileIsAsIfNeverLonger(t *testing.T) {
	cutDisk, cut := newSet(t, params(7, 31))
	put(t, cut, 0, 25)
	require.NoError(t, cut.Truncate(1700))
	disk, s := newSet(t, params(7, 31))
	put(t, s, 0, 17)
	require.NoError(t, s.Flush())
	require.NoError(t, cut.Flush())
	name := names(t, disk, dir)[0]
	require.Equal(t, fixture.ReadFile(t, disk, dir+"/"+name), fixture.ReadFile(t, cutDisk, dir+"/"+name))
}

// TestPowerCut crashes at random moments. Recovery cuts at what was synced and indexes again from there.
func TestPowerCut(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		p := params(1+rnd.Int32N(300), 2+rnd.Int32N(400))
		disk, s := newSet(t, p)
		end, synced := 0, 0
		for range 1 + rnd.IntN(8) {
			n := rnd.IntN(60)
			put(t, s, end, end+n)
			end += n
			switch rnd.IntN(3) {
			case 0:
				require.NoError(t, s.Flush())
				synced = end
			case 1:
				end = synced + rnd.IntN(end-synced+1)
				require.NoError(t, s.Truncate(messages.PhysicalOffset(100*end)))
			}
		}
		for _, left := range []*memfs.Disk{disk.Crash(seed), disk.Clone()} {
			s := openSet(t, left, p)
			require.NoError(t, s.DropDamaged())
			require.NoError(t, s.Truncate(messages.PhysicalOffset(100*synced)))
			from := int(s.EndPhysical()+100) / 100
			require.Equal(t, synced, from, "seed %d", seed)
			requireKeys(t, s, 0, synced, end)
			put(t, s, synced, end)
			requireKeys(t, s, 0, end, end+5)
			require.NoError(t, s.Flush())
			requireKeys(t, openSet(t, left.Crash(seed), p), 0, end, end+5)
		}
		requireKeys(t, openSet(t, disk.Clone(), p), 0, end, end+5)
	}
}

// TestCrashAtEveryStep cuts the power before each operation that changes the disk, cutting a file included.
func TestCrashAtEveryStep(t *testing.T) {
	p := params(50, 21)
	disk, s := newSet(t, p)
	steps, synced := 0, 0
	disk.Inject(func(op memfs.Op) error {
		if !op.Kind.Changes() {
			return nil
		}
		steps++
		for seed := range uint64(8) {
			s := openSet(t, disk.Crash(seed), p)
			require.NoError(t, s.DropDamaged())
			require.NoError(t, s.Truncate(messages.PhysicalOffset(100*synced)))
			requireKeys(t, s, 0, synced, 80)
		}
		return nil
	})
	for end := 0; end < 65; end += 13 {
		put(t, s, end, end+13)
		require.NoError(t, s.Flush())
		synced = end + 13
	}
	synced = 31
	require.NoError(t, s.Truncate(3100))
	require.NoError(t, s.Flush())
	disk.Inject(nil)
	require.Greater(t, steps, 20)
}

func TestDamage(t *testing.T) {
	p := params(10, 20)
	good := make([]byte, 480)
	copy(good, unhex(t, specFile))
	changed := func(at int, b ...byte) []byte {
		c := slices.Clone(good)
		copy(c[at:], b)
		return c
	}
	for name, c := range map[string]struct {
		content []byte
		err     error
	}{
		"short":            {good[:400], segments.ErrSize},
		"empty":            {nil, segments.ErrSize},
		"long":             {append(slices.Clone(good), 0), segments.ErrSize},
		"count too large":  {changed(36, 0, 0, 0, 21), ErrHeader},
		"count negative":   {changed(36, 0xff), ErrHeader},
		"slots too many":   {changed(32, 0, 0, 0, 11), ErrHeader},
		"slots negative":   {changed(32, 0x80), ErrHeader},
		"begin time":       {changed(0, 0x40), ErrHeader},
		"end time":         {changed(8, 0xff), ErrHeader},
		"begin negative":   {changed(16, 0x80), ErrHeader},
		"end before begin": {changed(16, 0, 0, 0, 0, 0, 0, 5), ErrHeader},
	} {
		t.Run(name, func(t *testing.T) {
			disk := memfs.New()
			fixture.WriteFile(t, disk, dir+"/20231114221320100", good)
			fixture.WriteFile(t, disk, dir+"/20231114221320200", c.content)
			fixture.WriteFile(t, disk, dir+"/20231114221320300", good)
			s := openSet(t, disk, p)
			require.Equal(t, 2, s.Len())
			require.Len(t, s.Damaged(), 1)
			require.Equal(t, dir+"/20231114221320200", s.Damaged()[0].Path)
			require.ErrorIs(t, s.Damaged()[0].Err, c.err)
			require.Equal(t, len(c.content), len(fixture.ReadFile(t, disk, dir+"/20231114221320200")), "never grown")
			require.NoError(t, s.DropDamaged())
			require.Equal(t, []string{"20231114221320100"}, names(t, disk, dir))
			require.Equal(t, 1, s.Len())
			require.Empty(t, s.Damaged())
		})
	}
}

func TestFileWithoutEntries(t *testing.T) {
	disk := memfs.New()
	full := unhex(t, rolledFirst)
	fixture.WriteFile(t, disk, dir+"/20231114221320100", full)
	fixture.WriteFile(t, disk, dir+"/20231114221320200", make([]byte, len(full)))
	s := openSet(t, disk, params(4, 4))
	require.Empty(t, s.Damaged())
	require.Equal(t, messages.PhysicalOffset(0xca), s.EndPhysical())
	require.NoError(t, s.Put("T", []byte("x"), 1000, start+20_000))
	require.Equal(t, 2, s.Len())
	require.Equal(t, offsets(1000), query(t, s, "x"))
	require.Equal(t, offsets(0), query(t, s, "k0"))
}

func TestForeignFilesAreLeftAlone(t *testing.T) {
	disk, s := newSet(t, params(5, 11))
	put(t, s, 0, 5)
	require.NoError(t, s.Flush())
	fixture.WriteFile(t, disk, dir+"/notes.txt", []byte("hello"))
	fixture.WriteFile(t, disk, dir+"/20231114221320300x", []byte("hello"))
	fixture.WriteFile(t, disk, dir+".new", []byte("half made"))
	s = openSet(t, disk, params(5, 11))
	require.Equal(t, []string{dir + "/20231114221320300x", dir + "/notes.txt"}, s.Ignored())
	require.Empty(t, s.Damaged())
	require.Equal(t, []string{"index"}, names(t, disk, "/store"))
}

// TestFaultIsAnError takes the file away under the mapping.
func TestFaultIsAnError(t *testing.T) {
	root := path.Join(t.TempDir(), "index")
	s, err := Open(vfs.New(), root, params(1000, 2000))
	require.NoError(t, err)
	put(t, s, 0, 3)
	require.NoError(t, s.Flush())
	require.NoError(t, os.Truncate(path.Join(root, s.list()[0].name), 0))
	_, err = s.Query("T", keyOf(1), 10, 0, ever)
	require.ErrorIs(t, err, vfs.ErrFault)
	require.ErrorIs(t, s.Put("T", []byte("x"), 1000, start), vfs.ErrFault)
	require.ErrorIs(t, s.Truncate(100), vfs.ErrFault)
	require.NoError(t, s.releaseAll())
}

func FuzzOpen(f *testing.F) {
	f.Add(unhex(f, specFile), "k1")
	f.Add(unhex(f, rolledFirst), "k2")
	f.Add(make([]byte, 500), "")
	f.Fuzz(func(t *testing.T, data []byte, key string) {
		p := params(10, 20)
		disk := memfs.New()
		file := make([]byte, 480)
		copy(file, data)
		fixture.WriteFile(t, disk, dir+"/20231114221320100", file)
		s := openSet(t, disk, p)
		found, err := s.Query("TopicTest", key, 64, 0, ever)
		require.NoError(t, err)
		require.Less(t, len(found), 20)
		require.NoError(t, s.DropDamaged())
		require.NoError(t, s.Truncate(messages.PhysicalOffset(1<<40)))
		first := snapshot(t, disk)
		require.NoError(t, s.Truncate(messages.PhysicalOffset(1<<40)))
		require.Equal(t, first, snapshot(t, disk), "doing it twice changes nothing")
		require.NoError(t, s.Put("TopicTest", []byte(key), 1<<41, start))
		found, err = s.Query("TopicTest", key, 64, 0, ever)
		require.NoError(t, err)
		require.Equal(t, messages.PhysicalOffset(1<<41), found[0])
	})
}

func snapshot(t *testing.T, disk vfs.Disk) map[string][]byte {
	all := map[string][]byte{}
	for _, name := range names(t, disk, dir) {
		all[name] = fixture.ReadFile(t, disk, dir+"/"+name)
	}
	return all
}

// TestRace has one builder that puts, rolls, cuts and deletes, and readers that never see a wrong record.
func TestRace(t *testing.T) {
	_, s := newSet(t, params(50, 200))
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			good := 0
			for i := 0; !stop.Load() || good == 0; i++ {
				found, err := s.Query("T", keyOf(i%1500), 10, 0, ever)
				require.NoError(t, err)
				for _, at := range found {
					require.Equal(t, messages.PhysicalOffset(100*(i%1500)), at)
					good++
				}
				_, _, _ = s.EndPhysical(), s.FlushedTimestampMs(), s.Len()
			}
		})
	}
	for i, cuts := 0, 0; i < 3000; i++ {
		r := record(i % 1500)
		if i == 1500 {
			require.NoError(t, s.Truncate(0))
		}
		require.NoError(t, s.BuildFrom(&r))
		switch {
		case i%400 == 399 && cuts < 6:
			cuts++
			require.NoError(t, s.Truncate(r.PhysicalOffset-5000))
			i -= 51
		case i%300 == 299:
			require.NoError(t, s.Flush())
		case i == 1200:
			_, err := s.DeleteBelow(50_000)
			require.NoError(t, err)
		}
	}
	stop.Store(true)
	wg.Wait()
	requireKeys(t, s, 0, 1500, 1500)
}

// TestKilledThenPowerCut ends the process before a Flush, flushes what it wrote, and cuts the power.
func TestKilledThenPowerCut(t *testing.T) {
	p := params(7, 11)
	disk, s := newSet(t, p)
	put(t, s, 0, 25)
	left := disk.Clone()
	s = openSet(t, left, p)
	require.NoError(t, s.Flush())
	require.Equal(t, start+24_000, s.FlushedTimestampMs())
	for seed := range uint64(30) {
		requireKeys(t, openSet(t, left.Crash(seed), p), 0, 25, 30)
	}
}

func TestChainThatDoesNotFallEnds(t *testing.T) {
	for _, before := range []byte{1, 2, 3, 0xff} {
		content := make([]byte, 480)
		copy(content, unhex(t, specFile))
		content[40+10*4+2*20+19] = before // entry 2, #k1
		disk := memfs.New()
		fixture.WriteFile(t, disk, dir+"/20231114221320100", content)
		found, err := openSet(t, disk, params(10, 20)).Query("TopicTest", "k1", 1000, 0, ever)
		require.NoError(t, err)
		require.Equal(t, offsets(0), found)
	}
}

func TestTruncateDropsAFileWhoseFirstEntryIsNotItsOwn(t *testing.T) {
	content := make([]byte, 480)
	copy(content, unhex(t, specFile))
	content[23] = 91 // beginPhyOffset; the first entry says 0
	disk := memfs.New()
	fixture.WriteFile(t, disk, dir+"/20231114221320100", content)
	s := openSet(t, disk, params(10, 20))
	require.NoError(t, s.Truncate(1<<40))
	require.Zero(t, s.Len())
	require.Equal(t, messages.PhysicalOffset(-1), s.EndPhysical())
}
