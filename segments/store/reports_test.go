package store_test

import (
	"encoding/hex"
	"math/rand/v2"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// Faults that users of such stores have met; each test names its report.

// L33: a body whose checksum is 0, or 0 once the top bit is dropped, is a body like any other.
func TestL33ChecksumsThatAreZero(t *testing.T) {
	disk := memfs.New()
	w := newLogWriter(t, disk)
	for _, text := range []string{"9d0ad96d", "6f726465722d313a34708249", "6f726465722d313ae7ffb712"} {
		body, err := hex.DecodeString(text)
		require.NoError(t, err)
		w.put("A", 0, string(body))
	}
	createFile(t, disk, "s/abort", 0)
	c, _ := recovered(t, disk)
	require.Len(t, c.Bodies, 3)
	c.requirePuts(t, w.puts)
}

// L34: wherever the last records are torn, and whatever stands behind, the store opens with all that is in front.
func TestL34TornAnywhereAtTheTail(t *testing.T) {
	disk, w := killed(t, 60)
	rnd := rand.New(rand.NewPCG(34, 0))
	for at := w.puts[57].from; at < w.pos; at += 16 {
		for _, garbage := range []bool{false, true} {
			d := disk.Clone()
			b := zeroBytes(min(w.pos+200, w.pos/testSegment*testSegment+testSegment) - at)
			for i := range b {
				if garbage {
					b[i] = byte(rnd.Uint32())
				}
			}
			patchLog(t, d, at, b)
			c, _ := recovered(t, d)
			for _, p := range w.puts {
				if p.to <= at {
					require.Equal(t, p.body, c.Bodies[messages.PhysicalOffset(p.from)], "torn at %d", at)
				}
			}
		}
	}
}

// L36: one flipped bit costs the record that it is in, wherever that is, and however the store was left.
func TestL36OneFlippedBitCostsOneRecord(t *testing.T) {
	for how, make := range map[string]func(testing.TB, int) (*memfs.Disk, *logWriter){"clean": closed, "killed": killed} {
		disk, w := make(t, 100)
		rnd := rand.New(rand.NewPCG(36, 0))
		for range 60 {
			i := rnd.IntN(99)
			d := disk.Clone()
			at := w.puts[i].from + rnd.Int64N(36) // size, magic, checksum, queue, flag, offsets
			b := fixture.ReadFile(t, d, segmentPath(at))[at%testSegment]
			patchLog(t, d, at, []byte{b ^ 1<<rnd.IntN(8)})
			c, _ := recovered(t, d)
			for k, p := range w.puts {
				if k != i {
					require.Equal(t, p.body, c.Bodies[messages.PhysicalOffset(p.from)], "%s: record %d, bit at %d", how, i, at-w.puts[i].from)
				}
			}
		}
	}
}

// L40: queue offsets that go back, as replicas cut at different places leave them, are reported and keep nothing closed.
func TestL40QueueOffsetsThatGoBack(t *testing.T) {
	disk := memfs.New()
	w := newLogWriter(t, disk)
	key := messages.QueueKey{Topic: "A"}
	for _, at := range []messages.QueueOffset{7, 8, 5, 6, 9} {
		w.next[key] = at
		w.put("A", 0, "x")
	}
	createFile(t, disk, "s/abort", 0)
	c, report := recovered(t, disk)
	require.Len(t, c.Bodies, 5)
	require.NotEmpty(t, report.Events)
	again, _ := recovered(t, disk)
	require.Equal(t, c, again)
}

// L42: every derived file may be noise; what is built equals what was there.
func TestL42NoiseInDerivedFiles(t *testing.T) {
	disk, w := killed(t, 100)
	want, _ := recovered(t, disk.Clone())
	want.requirePuts(t, w.puts)
	rnd := rand.New(rand.NewPCG(42, 0))
	for name, b := range tree(t, disk, "s", "/commitlog/", "lock", "abort") {
		if strings.HasSuffix(name, ".json") {
			continue
		}
		noise := []byte(b)
		for i := range noise {
			noise[i] = byte(rnd.Uint32())
		}
		d := disk.Clone()
		overwrite(t, d, name, 0, noise)
		got, _ := recovered(t, d)
		require.Equal(t, want, got, name)
	}
}

// L30: an index of another, longer log does not keep new keys from being found.
func TestL30IndexOfALongerLog(t *testing.T) {
	long, _ := closed(t, 100)
	disk, w := closed(t, 10)
	removeTree(t, disk, "s/index")
	for name, b := range tree(t, long, "s/index") {
		createFile(t, disk, name, int64(len(b)))
		overwrite(t, disk, name, 0, []byte(b))
	}
	s := open(t, disk)
	c := contentOf(t, s)
	c.requirePuts(t, w.puts)
	require.Contains(t, events(s.Report), store.CutIndex)
	require.NoError(t, s.Close())
}

// L21: a newest queue file without a unit, all zero or empty, is no message: the queue goes on where it was.
func TestL21QueueFilesWithoutAUnit(t *testing.T) {
	for how, make := range map[string]func(testing.TB, int) (*memfs.Disk, *logWriter){"clean": closed, "killed": killed} {
		for _, size := range []int64{0, 19, testQueue} {
			for _, name := range []string{"00000000000000000400", "00000000000000000800"} { // the next one, and one behind a gap
				disk, w := make(t, 100)
				createFile(t, disk, "s/consumequeue/A/0/"+name, size)
				s := open(t, disk)
				require.Equal(t, w.next, s.QueueOffsets, "%s: %d bytes in %s", how, size, name)
				c := contentOf(t, s)
				c.requirePuts(t, w.puts)
				require.NoError(t, s.CloseClean())
				again, _ := recovered(t, disk)
				require.Equal(t, c, again)
			}
		}
	}
}

// L41: what an interrupted copy or merge may leave in the log's folder is told by its name, and never becomes a part of the log: it
// is refused, or left alone; nothing is changed before.
func TestL41FilesThatDoNotBelongIntoTheLog(t *testing.T) {
	for name, size := range map[string]int64{
		segments.Name(2048): testSegment, segments.Name(testSegment): 100, segments.Name(0): testSegment + 1,
		segments.Name(0) + ".tmp": testSegment, "0": testSegment, "-1": testSegment,
	} {
		disk, w := killed(t, 100)
		full := path.Join("s/commitlog", name)
		_, err := disk.Stat(full)
		there := err == nil
		if there {
			truncateFile(t, disk, full, size)
		} else {
			createFile(t, disk, full, size)
		}
		before := tree(t, disk, "s/commitlog")
		s, err := store.Open(disk, testParams(), testOptions())
		if _, bad := segments.ParseName(name); bad == nil {
			require.ErrorContains(t, err, name)
			require.Equal(t, before, tree(t, disk, "s/commitlog"))
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, store.FoundForeign, s.Report.Events[0].What)
		require.Equal(t, full, s.Report.Events[0].Path)
		c := contentOf(t, s)
		c.requirePuts(t, w.puts)
		require.NoError(t, s.Close())
	}
	disk, _ := killed(t, 100)
	require.NoError(t, disk.MkdirAll("s/commitlog/"+segments.Name(testSegment*100)))
	_, err := store.Open(disk, testParams(), testOptions())
	require.ErrorIs(t, err, segments.ErrName)
	require.ErrorContains(t, err, segments.Name(testSegment*100)+" is a folder")
}
