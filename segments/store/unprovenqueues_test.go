package store_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// expired is a store in which all records of queue Idle/0 have gone with the log's first segments, and some of Both/0. The queues were
// left in order.
func expired(t *testing.T) (*memfs.Disk, []put) {
	t.Helper()
	disk := memfs.New()
	w := newLogWriter(t, disk)
	body := strings.Repeat("x", 500)
	for range 5 {
		w.put("Idle", 0, body)
		w.put("Both", 0, body)
	}
	for w.pos < 8*testSegment {
		w.put("Both", 0, body)
	}
	require.NoError(t, open(t, disk).CloseClean())
	for i := range int64(3) {
		require.NoError(t, disk.Remove(segmentPath(i*testSegment)))
	}
	require.NoError(t, disk.SyncDir("s/commitlog"))
	for i, p := range w.puts {
		if p.from >= 3*testSegment {
			return disk, w.puts[i:]
		}
	}
	return nil, nil
}

// TestAQueueWhoseRecordsHaveExpiredGoesOnWhereItWas: a marker is from before that, or can't be read as a number. Nothing can build these units
// again, and a queue that began again further in front would give offsets again that its consumers are past.
func TestAQueueWhoseRecordsHaveExpiredGoesOnWhereItWas(t *testing.T) {
	for _, text := range []string{"0\n", "700\n", "no number"} {
		disk, puts := expired(t)
		f, err := disk.Create("s/unprovenqueues")
		require.NoError(t, err)
		_, err = f.WriteAt([]byte(text), 0)
		require.NoError(t, errors.Join(err, f.DataSync(), f.Close(), disk.SyncDir("s")))

		s := open(t, disk)
		c := contentOf(t, s)
		require.NoError(t, s.CloseClean())
		for range 2 {
			require.EqualValues(t, 5, c.Next[messages.QueueKey{Topic: "Idle"}])
			require.EqualValues(t, puts[len(puts)-1].at+1, c.Next[messages.QueueKey{Topic: "Both"}])
			c.requirePuts(t, puts)
			c, _ = recovered(t, disk.Crash(1))
		}
	}
}

// TestOnlyDamagedQueuesAreBuiltAgainFromFarBack: between the damage and the next start there may be weeks of messages.
func TestOnlyDamagedQueuesAreBuiltAgainFromFarBack(t *testing.T) {
	disk, w := closed(t, 10)
	s := open(t, disk)
	require.NoError(t, s.MarkQueuesDamaged(errors.New("a unit is damaged")))
	require.NoError(t, s.CloseClean())
	marker := fixture.ReadFile(t, disk, "s/unprovenqueues")
	require.NoError(t, disk.Remove("s/unprovenqueues"))
	w.fill(200)
	require.NoError(t, open(t, disk).CloseClean())
	createFile(t, disk, "s/unprovenqueues", 0)
	overwrite(t, disk, "s/unprovenqueues", 0, marker)

	c, r := recovered(t, disk)
	require.Greater(t, r.Plan.ScanFrom, messages.PhysicalOffset(0))
	require.Equal(t, r.Plan.ScanFrom, r.Plan.QueuesFrom)
	c.requirePuts(t, w.puts)
}

// TestAMarkerOfAnEarlierProcessIsMadeAnew before queues are cut: its number may be in the page cache only, and another one on the disk.
func TestAMarkerOfAnEarlierProcessIsMadeAnew(t *testing.T) {
	disk, w := oldQueue(t)
	createFile(t, disk, "s/unprovenqueues", 0)
	overwrite(t, disk, "s/unprovenqueues", 0, []byte("99999999\n"))
	f, err := disk.Open("s/unprovenqueues", true)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("00000000\n"), 0)
	require.NoError(t, errors.Join(err, f.Close()))
	everyEnd(t, disk, func(left *memfs.Disk, step int) {
		c, _ := recovered(t, left)
		require.Equal(t, w.next, c.Next, "step %d", step)
		c.requirePuts(t, w.puts)
	})
}

// TestASyncThatSaysThatThereIsNoRoomIsASyncThatHasFailed: a disk that promises more than it has says so when pages are written back.
func TestASyncThatSaysThatThereIsNoRoomIsASyncThatHasFailed(t *testing.T) {
	disk, w := killed(t, 30)
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindDataSync && strings.HasPrefix(op.Name, "s/consumequeue/") {
			return vfs.ErrNoSpace
		}
		return nil
	})
	s := open(t, disk)
	disk.Inject(nil)
	require.NoError(t, s.Close())
	_, err := disk.Stat("s/unprovenqueues")
	require.NoError(t, err)
	c, r := recovered(t, disk)
	c.requirePuts(t, w.puts)
	require.Equal(t, r.Plan.ScanFrom, r.Plan.QueuesFrom)
	_, err = disk.Stat("s/unprovenqueues")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestAFailedSyncWithoutRoomForItsMarkerLeavesTheStoreClosed: the queues can be read, and every later sync of them says that they are durable. The
// ballast makes the room.
func TestAFailedSyncWithoutRoomForItsMarkerLeavesTheStoreClosed(t *testing.T) {
	for _, topics := range []int{3, 100} { // one by one, and all with one call
		for _, ballast := range []string{"", "s/ballast"} {
			disk, w := killedWith(t, topics)
			createFile(t, disk, "s/ballast", 10)
			fullUntilBallastGoes(disk, func(op memfs.Op, room bool) bool {
				return takesRoom(op, true) && strings.HasPrefix(op.Name, "s/consumequeue") ||
					!room && takesRoom(op, false) && strings.HasPrefix(op.Name, "s/unprovenqueues")
			})
			o := testOptions()
			o.Ballast = ballast
			s, err := store.Open(disk, testParams(), o)
			disk.Inject(nil)
			if ballast == "" {
				require.ErrorIs(t, err, store.ErrNoNote, "%d topics", topics)
				require.ErrorIs(t, err, vfs.ErrNoSpace)
				continue
			}
			require.NoError(t, err, "%d topics", topics)
			require.NoError(t, s.Close())
			c, _ := recovered(t, disk.Crash(1))
			c.requirePuts(t, w.puts)
		}
	}
}

// TestWithoutRoomForOneQueueNoneCountsAsDurable: what an earlier process has left unsynced of the others is synced later, with the first.
func TestWithoutRoomForOneQueueNoneCountsAsDurable(t *testing.T) {
	for _, topics := range []int{3, 100} {
		disk, _ := killedWith(t, topics)
		last := fmt.Sprintf("s/consumequeue/T%d", topics-1)
		removeTree(t, disk, last)
		withoutRoomFor(disk, last, "s/unprovenqueues")
		s := open(t, disk)
		disk.Inject(nil)
		require.Contains(t, events(s.Report), store.NoRoom)
		s.Queues.Each(func(key messages.QueueKey, q *consumequeue.Queue) { require.False(t, q.Durable(), "%v", key) })
		require.NoError(t, s.Queues.Sync())
		s.Queues.Each(func(key messages.QueueKey, q *consumequeue.Queue) { require.True(t, q.Durable(), "%v", key) })
		require.NoError(t, s.Close())
	}
}

// killedWith makes a store with so many queues, of a message each, whose process was killed.
func killedWith(t *testing.T, topics int) (*memfs.Disk, *logWriter) {
	t.Helper()
	disk := memfs.New()
	w := newLogWriter(t, disk)
	for i := range topics {
		w.put(fmt.Sprintf("T%d", i), 0, "m")
	}
	require.NoError(t, open(t, disk).CloseClean())
	createFile(t, disk, "s/abort", 0)
	return disk, w
}

// TestAQueueWhoseLastUnitsHadNoRoomGoesOnWhereItWas: it was noted before their records left the log, and its files end in front of that.
func TestAQueueWhoseLastUnitsHadNoRoomGoesOnWhereItWas(t *testing.T) {
	idle := messages.QueueKey{Topic: "Idle"}
	for name, units := range map[string]int64{"no file": 0, "two units": 2, "all units": 5} {
		for _, marked := range []bool{false, true} {
			disk, puts := expired(t)
			s := open(t, disk)
			require.NoError(t, s.OffsetsKept(map[messages.QueueKey]messages.QueueOffset{idle: 5}))
			require.NoError(t, s.Close())
			if units == 0 {
				removeTree(t, disk, "s/consumequeue/Idle")
			} else {
				overwrite(t, disk, queueFile("Idle", 0), units*20, zeroBytes((5-units)*20))
			}
			if marked {
				markQueues(t, disk, "0\n")
			}
			everyEnd(t, disk, func(left *memfs.Disk, step int) {
				for range 2 {
					c, _ := recovered(t, left)
					require.EqualValues(t, 5, c.Next[idle], "%s, marked %v, step %d", name, marked, step)
					c.requirePuts(t, puts)
					left = left.Crash(1)
				}
			})
		}
	}
}

// TestAQueueThatWasNotedAndHasGrownGoesOnBehindThat: its units are built again from the log, whatever was noted.
func TestAQueueThatWasNotedAndHasGrownGoesOnBehindThat(t *testing.T) {
	disk, last := lastOfIdle(t)
	s := open(t, disk)
	require.NoError(t, s.OffsetsKept(map[messages.QueueKey]messages.QueueOffset{last.key: 6}))
	require.NoError(t, s.Close())
	overwrite(t, disk, queueFile("Idle", 0), 2*20, zeroBytes(5*20))
	createFile(t, disk, "s/unprovenqueues", 0)
	everyEnd(t, disk, func(left *memfs.Disk, step int) {
		c, _ := recovered(t, left)
		require.EqualValues(t, 7, c.Next[last.key], "step %d", step)
		c.requirePuts(t, []put{last})
	})
}
