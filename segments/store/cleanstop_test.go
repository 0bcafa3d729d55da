package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/memfs"
)

// left is a store that we have closed properly.
func left(t *testing.T) (*memfs.Disk, *logWriter) {
	t.Helper()
	disk, w := closed(t, 100)
	require.NoError(t, open(t, disk).CloseClean())
	return disk, w
}

// scanned tells from where the log was read when a store was opened; -1: it was not.
func scanned(s *store.Store) messages.PhysicalOffset {
	if s.Report.Plan.ScanFrom == s.Log.End() {
		return -1
	}
	return s.Report.Plan.ScanFrom
}

func TestACleanOpenReadsNoRecords(t *testing.T) {
	disk, w := left(t)
	s := open(t, disk)
	require.EqualValues(t, -1, scanned(s))
	c := contentOf(t, s)
	c.requirePuts(t, w.puts)
	require.Equal(t, w.next, s.QueueOffsets)
	require.Equal(t, testStartMs+99_000, s.Log.StoreTimestampMs())
	require.NoError(t, s.CloseClean())

	opt := testOptions()
	opt.FullScan = true
	s, err := store.Open(disk, testParams(), opt)
	require.NoError(t, err)
	require.Zero(t, scanned(s))
	require.Equal(t, c, contentOf(t, s))
	require.NoError(t, s.Close())

	s = open(t, disk)
	require.NotEqual(t, messages.PhysicalOffset(-1), scanned(s), "it was killed since")
	require.NoError(t, s.Close())
}

// A store may be stopped when its last segment has just been taken and nothing is in it: where a write into that one failed.
func TestACleanStopInFrontOfAnEmptySegment(t *testing.T) {
	disk := memfs.New()
	w := newLogWriter(t, disk)
	w.fill(3)
	w.write(record.AppendBlank(nil, int32(testSegment-w.pos)))
	s := open(t, disk)
	require.EqualValues(t, testSegment, s.Log.End())
	require.NoError(t, s.CloseClean())
	overwrite(t, disk, segmentPath(testSegment), 0, []byte{0})

	s = open(t, disk)
	require.EqualValues(t, testSegment, s.Log.End())
	c := contentOf(t, s)
	c.requirePuts(t, w.puts)
	require.Equal(t, 1, s.Log.View().Len())
	require.NoError(t, s.CloseClean())
	require.EqualValues(t, -1, scanned(open(t, disk)))
}

// TestAStaleManifestIsIgnored: whoever has changed the store since the clean stop, RocketMQ above all, it is read again.
func TestAStaleManifestIsIgnored(t *testing.T) {
	for name, change := range map[string]func(*memfs.Disk, *logWriter){
		"a record more": func(_ *memfs.Disk, w *logWriter) { w.put("A", 0, "by somebody else") },
		"cut, and another one as long": func(_ *memfs.Disk, w *logWriter) {
			last := w.puts[99]
			w.puts, w.pos = w.puts[:99], last.from
			w.next[last.key]--
			w.put(last.key.Topic, last.key.QueueID, strings.Repeat("z", len(last.body)))
		},
		"a queue less": func(disk *memfs.Disk, _ *logWriter) { removeTree(t, disk, "s/consumequeue/B/1") },
		"no queues":    func(disk *memfs.Disk, _ *logWriter) { removeTree(t, disk, "s/consumequeue") },
		"a unit less":  func(disk *memfs.Disk, _ *logWriter) { overwrite(t, disk, queueFile("A", 0), 16*20, zeroBytes(20)) },
		"an index file less": func(disk *memfs.Disk, _ *logWriter) {
			names := indexFiles(t, disk)
			require.NoError(t, disk.Remove(names[len(names)-1]))
		},
		"no index":        func(disk *memfs.Disk, _ *logWriter) { removeTree(t, disk, "s/index") },
		"no manifest":     func(disk *memfs.Disk, _ *logWriter) { require.NoError(t, disk.Remove("s/cleanstop.json")) },
		"half a manifest": func(disk *memfs.Disk, _ *logWriter) { truncateFile(t, disk, "s/cleanstop.json", 30) },
		"a torn last record": func(disk *memfs.Disk, w *logWriter) {
			patchLog(t, disk, w.puts[99].from+88, zeroBytes(5))
			w.puts = w.puts[:99]
		},
	} {
		t.Run(name, func(t *testing.T) {
			disk, w := left(t)
			change(disk, w)
			s := open(t, disk)
			require.NotEqual(t, messages.PhysicalOffset(-1), scanned(s))
			c := contentOf(t, s)
			c.requirePuts(t, w.puts)
			require.Len(t, c.Bodies, len(w.puts))
			require.NoError(t, s.CloseClean())
			s = open(t, disk)
			require.EqualValues(t, -1, scanned(s), "the next clean stop has made a new one")
			require.Equal(t, c, contentOf(t, s))
			require.NoError(t, s.Close())
		})
	}
}

// A file in the middle of the index leaves no other trace than that there is one less.
func TestAMissingIndexFileIsNoticedAtACleanStart(t *testing.T) {
	disk, w := left(t)
	s := open(t, disk)
	want := contentOf(t, s)
	require.NoError(t, s.CloseClean())
	entries, err := disk.List("s/index")
	require.NoError(t, err)
	require.Greater(t, len(entries), 2)
	require.NoError(t, disk.Remove("s/index/"+entries[1].Name))
	s = open(t, disk)
	c := contentOf(t, s)
	c.requirePuts(t, w.puts)
	require.Equal(t, want.Keys, c.Keys)
	require.True(t, slices.ContainsFunc(s.Report.Events, func(e store.Event) bool { return e.What == store.MissingIndex }))
	require.NoError(t, s.CloseClean())
	s = open(t, disk)
	require.EqualValues(t, -1, scanned(s))
	require.NoError(t, s.Close())
}

func TestAnExpiredSegmentMakesTheManifestStale(t *testing.T) {
	disk, _ := left(t)
	require.NoError(t, disk.Remove(segmentPath(0)))
	s := open(t, disk)
	require.NotEqual(t, messages.PhysicalOffset(-1), scanned(s))
	require.NoError(t, s.Close())
}

// requireIndexed opens the store and checks that every key of the log is found, and that the next clean start reads no log.
func requireIndexed(t *testing.T, disk *memfs.Disk, puts []put) {
	t.Helper()
	s := open(t, disk)
	c := contentOf(t, s)
	c.requirePuts(t, puts)
	require.NoError(t, s.CloseClean())
	s = open(t, disk)
	require.EqualValues(t, -1, scanned(s))
	require.Equal(t, c, contentOf(t, s))
	require.NoError(t, s.Close())
}

// What a store without an index has taken is indexed by the next one that has an index, wherever it stands in the log.
func TestTheIndexIsMadeCompleteAfterTimesWithoutOne(t *testing.T) {
	for name, before := range map[string]func(t *testing.T) (*memfs.Disk, *logWriter){
		"an index before": left,
		"none at all": func(t *testing.T) (*memfs.Disk, *logWriter) {
			disk := memfs.New()
			return disk, newLogWriter(t, disk)
		},
	} {
		t.Run(name, func(t *testing.T) {
			disk, w := before(t)
			w.fill(50)
			end := w.pos
			for w.pos-end < 4*testSegment { // no key where a clean start looks
				m := w.message(messages.QueueKey{Topic: "A"}, strings.Repeat("x", 500))
				m.Properties = messages.PropertiesOf(nil)
				w.append(m)
				w.puts[len(w.puts)-1].keys = nil
			}
			p := testParams()
			p.MessageIndex = false
			for range 2 { // the second start finds everything as it was left
				s, err := store.Open(disk, p, testOptions())
				require.NoError(t, err)
				require.NoError(t, s.CloseClean())
			}
			requireIndexed(t, disk, w.puts)
		})
	}
}

// A start on a full disk may have no room for the index: it does without, and the next one makes it complete.
func TestAStartWithoutRoomForTheIndex(t *testing.T) {
	for name, make := range map[string]func(testing.TB, int) (*memfs.Disk, *logWriter){"clean": closed, "killed": killed} {
		for _, made := range []int{0, 1, 2} { // index files that there is room for
			t.Run(fmt.Sprint(name, " ", made), func(t *testing.T) {
				disk, w := make(t, 100)
				removeTree(t, disk, "s/index")
				n := 0
				disk.Inject(func(op memfs.Op) error {
					if op.Kind == memfs.KindAllocate && strings.HasPrefix(op.Name, "s/index") {
						if n++; n > made {
							return vfs.ErrNoSpace
						}
					}
					return nil
				})
				s := open(t, disk)
				require.Nil(t, s.Index)
				require.Contains(t, events(s.Report), store.NoRoom)
				require.NoError(t, s.CloseClean())
				disk.Inject(nil)
				requireIndexed(t, disk, w.puts)
			})
		}
	}
}

// An index that must be cut, and can't be written anew for want of room, keeps nothing that is not known to be whole.
func TestAnIndexThatCannotBeCutForWantOfRoom(t *testing.T) {
	disk, w := killed(t, 100)
	require.NoError(t, disk.Remove("s/checkpoint")) // nothing of the index is trusted
	names := indexFiles(t, disk)
	require.Greater(t, len(names), 3)
	for _, name := range names {
		overwrite(t, disk, name, 40+20*4+5*20, zeroBytes(20)) // an entry in each that a power cut has taken
	}
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindAllocate && strings.HasPrefix(op.Name, "s/index") {
			return vfs.ErrNoSpace
		}
		return nil
	})
	s := open(t, disk)
	require.NoError(t, s.CloseClean())
	disk.Inject(nil)
	requireIndexed(t, disk, w.puts)
}
