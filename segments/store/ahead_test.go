package store_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/golden"
	"github.com/actormq/actormq/testkit/memfs"
)

// outcome is all that an opening leaves behind.
type outcome struct {
	err    string
	report store.Report
	files  map[string]string
}

func outcomeOf(t testing.TB, disk *memfs.Disk, p store.Params, o store.Options) outcome {
	t.Helper()
	d := disk.Clone()
	s, err := store.Open(d, p, o)
	if err != nil {
		return outcome{err: err.Error(), files: tree(t, d, "s")}
	}
	got := outcome{report: s.Report}
	require.NoError(t, s.Close())
	got.files = tree(t, d, "s")
	return got
}

// requireSameAhead opens a store by one walk that looks at each record itself and reads again what the index lacks; then with others
// that look at the log ahead of it, in stretches of several sizes, and with keys kept. All must come to the same: plan, report, files.
func requireSameAhead(t testing.TB, disk *memfs.Disk, p store.Params, what string) {
	t.Helper()
	o := testOptions()
	others := []store.Options{o.Ahead(4, 500, 0), o.Ahead(2, 3000, 60)}
	if p.SegmentBytes == testSegment {
		others = append(others, o.Ahead(1, 0, 0), o.Ahead(2, 150, 0), o.Ahead(2, 1<<20, -1))
	}
	want := outcomeOf(t, disk, p, o.Ahead(1, 0, -1))
	for _, other := range others {
		require.Equal(t, want, outcomeOf(t, disk, p, other), what)
	}
}

// TestReadingAheadFindsTheSame opens damaged stores with and without others that look at the log ahead of the walk.
func TestReadingAheadFindsTheSame(t *testing.T) {
	for name, damage := range damages {
		for how, fill := range map[string]func(testing.TB, int) (*memfs.Disk, *logWriter){"clean": closed, "killed": killed} {
			disk, w := fill(t, 100)
			damage(t, disk, w)
			requireSameAhead(t, disk, testParams(), name+", "+how)
		}
	}
}

func TestReadingAheadFindsTheSameOfDamagedGoldenStores(t *testing.T) {
	scratch, random := t.TempDir(), rand.New(rand.NewPCG(1, 2))
	for _, name := range golden.Names() {
		g := loadGolden(t, name, scratch)
		requireSameAhead(t, g.disk, g.params, name)
		for range 1 + random.IntN(3) {
			b := []byte{byte(random.Uint32()), byte(random.Uint32())}
			damage(t, g.disk, g.files[random.IntN(len(g.files))], random.Uint32(), b[:1+random.IntN(2)])
		}
		requireSameAhead(t, g.disk, g.params, name+", damaged")
	}
}

func TestReadingAheadFindsTheSameAfterFlippedBytes(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	disk, w := killed(t, 100)
	require.NoError(t, disk.Remove("s/checkpoint"))
	for range 60 {
		d := disk.Clone()
		for range 1 + random.IntN(3) {
			at := random.Int64N(w.pos)
			patchLog(t, d, at, []byte{byte(random.Uint32())})
		}
		requireSameAhead(t, d, testParams(), "flipped")
	}
}

// unsynced is a disk on which nothing becomes durable by itself.
type unsynced struct{ vfs.Disk }

type unsyncedFile struct{ vfs.File }

func (unsynced) SyncDir(string) error { return nil }
func (unsyncedFile) DataSync() error  { return nil }
func lazily(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return unsyncedFile{f}, nil
}
func (d unsynced) Open(name string, writable bool) (vfs.File, error) {
	return lazily(d.Disk.Open(name, writable))
}
func (d unsynced) Create(name string) (vfs.File, error) { return lazily(d.Disk.Create(name)) }

func TestReadingAheadFindsTheSameAfterAPowerCut(t *testing.T) {
	disk, w := killed(t, 60)
	lazy := unsynced{disk}
	w.disk = lazy
	w.fill(60)
	s, err := store.Open(lazy, testParams(), testOptions())
	require.NoError(t, err)
	require.NoError(t, s.Close())
	w.fill(10)
	for seed := range uint64(60) {
		requireSameAhead(t, disk.Crash(seed), testParams(), fmt.Sprint("seed ", seed))
	}
}

// A queue may name any place, also one inside a body where something looks like a record: a stretch that begins there does not count.
func TestAStretchThatBeginsInsideABodyDoesNotCount(t *testing.T) {
	disk := memfs.New()
	w := newLogWriter(t, disk)
	w.fill(10)
	outer := w.put("A", 0, strings.Repeat("x", 1500))
	forger := newLogWriter(t, memfs.New())
	at := outer.from + 300 // the body begins 88 behind
	forger.pos = at
	forged := forger.put("A", 0, "forged")
	raw := fixture.ReadFile(t, forger.disk, segmentPath(at))[at%testSegment : forged.to%testSegment]
	m := w.message(messages.QueueKey{Topic: "A"}, strings.Repeat("x", 300-88)+string(raw)+strings.Repeat("y", 600))
	w.pos, w.next[outer.key] = outer.from, outer.at
	w.puts = w.puts[:len(w.puts)-1]
	again := w.append(m)
	require.Equal(t, outer.from, again.from)
	w.fill(30)
	require.NoError(t, open(t, disk).CloseClean())
	createFile(t, disk, "s/abort", 0)
	overwrite(t, disk, queueFile("A", 0), int64(again.at)*20, unitBytes(at, forged.to-forged.from))
	requireSameAhead(t, disk, testParams(), "forged")
}
