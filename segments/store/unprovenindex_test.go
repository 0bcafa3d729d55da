package store_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/memfs"
)

const indexMarker = "s/unprovenindex"

// indexLosses are what an index of several files can have lost.
var indexLosses = map[string]func(*testing.T, *memfs.Disk){
	"all":        func(t *testing.T, d *memfs.Disk) { removeTree(t, d, "s/index") },
	"first file": func(t *testing.T, d *memfs.Disk) { removeIndexFile(t, d, 0) },
	"a file":     func(t *testing.T, d *memfs.Disk) { removeIndexFile(t, d, 2) },
	"last file":  func(t *testing.T, d *memfs.Disk) { removeIndexFile(t, d, len(indexFiles(t, d))-1) },
	"a header": func(t *testing.T, d *memfs.Disk) {
		overwrite(t, d, indexFiles(t, d)[2], 8, []byte{0xff})
	},
	"a header, a kill at the end": func(t *testing.T, d *memfs.Disk) {
		overwrite(t, d, indexFiles(t, d)[2], 8, []byte{0xff})
	},
	"last files, a kill at the end": func(t *testing.T, d *memfs.Disk) {
		for range 4 {
			removeIndexFile(t, d, len(indexFiles(t, d))-1)
		}
	},
	"two headers": func(t *testing.T, d *memfs.Disk) {
		overwrite(t, d, indexFiles(t, d)[0], 8, []byte{0xff})
		overwrite(t, d, indexFiles(t, d)[3], 8, []byte{0xff})
	},
}

func removeIndexFile(t *testing.T, disk *memfs.Disk, n int) {
	t.Helper()
	require.NoError(t, disk.Remove(indexFiles(t, disk)[n]))
	require.NoError(t, disk.SyncDir("s/index"))
}

// indexed is a store that was closed properly, with several files of its index.
func indexed(t *testing.T) (*memfs.Disk, *logWriter) {
	t.Helper()
	disk := memfs.New()
	w := newLogWriter(t, disk)
	w.fill(80)
	require.NoError(t, open(t, disk).CloseClean())
	require.Greater(t, len(indexFiles(t, disk)), 5)
	return disk, w
}

// TestAnIndexThatIsBuiltAgainMayBeInterrupted: what a clean stop has left says which start has to build it, and a marker each later one.
func TestAnIndexThatIsBuiltAgainMayBeInterrupted(t *testing.T) {
	for name, lose := range indexLosses {
		disk, w := indexed(t)
		lose(t, disk)
		if strings.HasSuffix(name, "at the end") { // what any start sees
			createFile(t, disk, "s/abort", 0)
		}
		everyEnd(t, disk, func(left *memfs.Disk, step int) {
			for range 2 {
				c, _ := recovered(t, left)
				require.Empty(t, c.lacks(w.puts), "%s, step %d", name, step)
				left = left.Crash(7)
			}
			_, err := left.Stat(indexMarker)
			require.ErrorIs(t, err, fs.ErrNotExist)
		})
	}
}

// TestAnIndexThatIsBuiltAgainOnRequestMayBeInterrupted: whoever asks knows what no start sees. As long as nothing of the index has changed the next start
// does not know that it is asked for; from then on it lacks nothing.
func TestAnIndexThatIsBuiltAgainOnRequestMayBeInterrupted(t *testing.T) {
	for name, lose := range indexLosses {
		disk, w := indexed(t)
		createFile(t, disk, "s/abort", 0)
		lose(t, disk)
		before, _ := recovered(t, disk.Clone())
		untouched := tree(t, disk, "s/index")
		o := testOptions()
		o.RebuildIndex = true
		everyEndOf(t, disk, o, func(left *memfs.Disk, step int) {
			_, err := left.Stat(indexMarker)
			index := tree(t, left, "s/index")
			c, _ := recovered(t, left)
			if lacks := c.lacks(w.puts); len(lacks) > 0 {
				require.ErrorIs(t, err, fs.ErrNotExist, "%s, step %d: it has not begun", name, step)
				require.True(t, maps.Equal(untouched, index), "%s, step %d: it has begun", name, step)
				require.Equal(t, before.lacks(w.puts), lacks, "%s, step %d", name, step)
			}
		})
		s, err := store.Open(disk, testParams(), o)
		require.NoError(t, err)
		c := contentOf(t, s)
		require.Empty(t, c.lacks(w.puts), name)
		require.NoError(t, s.Close())
	}
}

// TestAnIndexWhoseSyncSaysThatThereIsNoRoomIsGivenUp: a disk that promises more than it has says so late, and just once.
func TestAnIndexWhoseSyncSaysThatThereIsNoRoomIsGivenUp(t *testing.T) {
	p := testParams()
	for _, p.IndexEntries = range []int32{40, 2000} { // several files, and one of several pages
		disk, w := killed(t, 250)
		removeTree(t, disk, "s/index")
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindDataSync && strings.HasPrefix(op.Name, "s/index") {
				return vfs.ErrNoSpace
			}
			return nil
		})
		s, err := store.Open(disk, p, testOptions())
		require.NoError(t, err)
		require.Nil(t, s.Index)
		require.Contains(t, events(s.Report), store.NoRoom)
		disk.Inject(nil)
		require.NoError(t, s.CloseClean())
		w.fill(20)
		s, err = store.Open(disk, p, testOptions())
		require.NoError(t, err)
		require.NoError(t, s.CloseClean())
		for seed := range uint64(10) {
			s, err := store.Open(disk.Crash(seed), p, testOptions())
			require.NoError(t, err)
			c := contentOf(t, s)
			require.Empty(t, c.lacks(w.puts), "seed %d", seed)
			require.NoError(t, s.Close())
		}
	}
}

// TestAMarkedIndexIsBuiltAgainAfterACleanStop, whoever has left the marker.
func TestAMarkedIndexIsBuiltAgainAfterACleanStop(t *testing.T) {
	disk, w := indexed(t)
	overwrite(t, disk, indexFiles(t, disk)[2], 40+20*4+20*20, zeroBytes(100))
	createFile(t, disk, indexMarker, 0)
	c, r := recovered(t, disk)
	require.True(t, r.Plan.Clean)
	require.Empty(t, c.lacks(w.puts))
	_, err := disk.Stat(indexMarker)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestAnIndexThatWasLeftAloneAfterACrashIsMended, though the store was closed properly since, by a start that did without it.
func TestAnIndexThatWasLeftAloneAfterACrashIsMended(t *testing.T) {
	disk, w := indexed(t)
	createFile(t, disk, "s/abort", 0)
	overwrite(t, disk, "s/checkpoint", 16, make([]byte, 8)) // nothing was durable of the index
	overwrite(t, disk, indexFiles(t, disk)[2], 40+20*4+20*20, zeroBytes(100))
	p := testParams()
	p.MessageIndex = false
	s, err := store.Open(disk, p, testOptions())
	require.NoError(t, err)
	require.NoError(t, s.CloseClean())
	everyEnd(t, disk, func(left *memfs.Disk, step int) {
		c, _ := recovered(t, left)
		require.Empty(t, c.lacks(w.puts), "step %d", step)
	})
}

// TestACleanStartMarksNoIndex: a marker of which nothing comes has a start rebuild all of the index that follows a power cut.
func TestACleanStartMarksNoIndex(t *testing.T) {
	p := testParams()
	for _, p.MessageIndex = range []bool{true, false} {
		disk, _ := indexed(t)
		for range 3 {
			disk.Inject(func(op memfs.Op) error {
				require.False(t, op.Kind.Changes() && strings.HasPrefix(op.Name, indexMarker), "%v", op)
				return nil
			})
			s, err := store.Open(disk, p, testOptions())
			require.NoError(t, err)
			require.NoError(t, s.CloseClean())
		}
	}
}

// TestAMarkerThatNamesNoRecordLosesNone: it was noted for a log that has been cut since, and has gone on with other records.
func TestAMarkerThatNamesNoRecordLosesNone(t *testing.T) {
	o := testOptions()
	o.FullScan = true
	for n := 50; n < 80; n++ {
		disk, w := indexed(t)
		for range 4 {
			removeIndexFile(t, disk, len(indexFiles(t, disk))-1)
		}
		text := fmt.Sprintln(w.puts[n].from + 1)
		createFile(t, disk, indexMarker, int64(len(text)))
		f, err := disk.Open(indexMarker, true)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte(text), 0)
		require.NoError(t, errors.Join(err, f.Close()))
		s, err := store.Open(disk, testParams(), o)
		require.NoError(t, err, "message %d", n)
		c := contentOf(t, s)
		require.Empty(t, c.lacks(w.puts), "message %d", n)
		require.NoError(t, s.Close())
	}
}

// TestAnIndexIsNotBelievedOfALogThatWasCutWithoutIt, as that of a follower: the log goes on with other records.
func TestAnIndexIsNotBelievedOfALogThatWasCutWithoutIt(t *testing.T) {
	for _, marked := range []bool{false, true} {
		for _, more := range []int{5, 60} { // the log ends in front of what the index has, and behind it
			disk, w := indexed(t)
			if marked {
				createFile(t, disk, "s/abort", 0)
			}
			p := testParams()
			p.MessageIndex = false
			if marked { // in front of where the log is cut later
				s, err := store.Open(disk, p, testOptions())
				require.NoError(t, err)
				require.NoError(t, s.CloseClean())
			}
			p.Follower, p.CutAt = true, messages.PhysicalOffset(w.puts[40].from)
			s, err := store.Open(disk, p, testOptions())
			require.NoError(t, err)
			require.NoError(t, s.CloseClean())
			w.pos, w.puts = w.puts[40].from, w.puts[:40]
			clear(w.next)
			for _, p := range w.puts {
				w.next[p.key] = p.at + 1
			}
			for range more {
				w.put("A", 0, "another one")
			}
			p.CutAt, p.Follower = 0, false
			s, err = store.Open(disk, p, testOptions())
			require.NoError(t, err)
			require.NoError(t, s.CloseClean())
			c, _ := recovered(t, disk)
			require.Empty(t, c.lacks(w.puts), "marked %v, %d more", marked, more)
		}
	}
}

// TestAnIndexFileThatCouldNotBeReadOnceLeavesNoHole: what is newer goes with it, and it may be readable for the next start.
func TestAnIndexFileThatCouldNotBeReadOnceLeavesNoHole(t *testing.T) {
	for _, killed := range []bool{false, true} {
		disk, w := indexed(t)
		if killed {
			createFile(t, disk, "s/abort", 0)
		}
		bad := indexFiles(t, disk)[2]
		everyEndWith(t, disk, testOptions(), func(op memfs.Op) error {
			if op.Kind == memfs.KindOpen && op.Name == bad {
				return vfs.ErrFault
			}
			return nil
		}, func(left *memfs.Disk, step int) {
			left.Inject(nil)
			c, _ := recovered(t, left)
			require.Empty(t, c.lacks(w.puts), "killed %v, step %d", killed, step)
		})
	}
}

// lacks returns the keys by which messages can't be found.
func (c *content) lacks(puts []put) (keys []string) {
	for _, p := range puts {
		for _, key := range p.keys {
			if !slices.Contains(c.Keys[p.key.Topic+"#"+key], messages.PhysicalOffset(p.from)) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}
