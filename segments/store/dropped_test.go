package store_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/testkit/memfs"
)

// queueDamages are what a queue's only file, with so many units, can look like.
var queueDamages = map[string]func(*testing.T, *memfs.Disk, string, int64){
	"short":              func(t *testing.T, d *memfs.Disk, name string, _ int64) { truncateFile(t, d, name, 133) },
	"junk behind a hole": func(t *testing.T, d *memfs.Disk, name string, _ int64) { overwrite(t, d, name, 2*20, zeroBytes(20)) },
	"first unit is gone": func(t *testing.T, d *memfs.Disk, name string, _ int64) { overwrite(t, d, name, 0, zeroBytes(20)) },
	"first unit is junk": func(t *testing.T, d *memfs.Disk, name string, _ int64) { overwrite(t, d, name, 0, []byte{0xff, 0xff}) },
	"last unit with a huge size": func(t *testing.T, d *memfs.Disk, name string, units int64) {
		overwrite(t, d, name, (units-1)*20+8, []byte{0x10})
	},
}

// TestADamagedQueueWhoseRecordsHaveExpiredGoesOnWhereItWas: nothing can build its units again, and its consumers are past its offsets.
func TestADamagedQueueWhoseRecordsHaveExpiredGoesOnWhereItWas(t *testing.T) {
	idle := messages.QueueKey{Topic: "Idle"}
	for name, damage := range queueDamages {
		disk, puts := expired(t)
		damage(t, disk, queueFile("Idle", 0), 5)
		everyEnd(t, disk, func(left *memfs.Disk, step int) {
			for range 2 {
				c, _ := recovered(t, left)
				require.GreaterOrEqual(t, c.Next[idle], messages.QueueOffset(5), "%s, step %d", name, step)
				require.LessOrEqual(t, c.Next[idle], messages.QueueOffset(7), "%s, step %d", name, step)
				c.requirePuts(t, puts)
				left = left.Crash(1)
			}
		})
	}
}

// TestAQueueOfADeletedTopicIsNotNotedToGoOn: a deletion that has been noted and not come to its end leaves it, with all that it had. Its topic's new life
// begins at 0.
func TestAQueueOfADeletedTopicIsNotNotedToGoOn(t *testing.T) {
	gone := messages.QueueKey{Topic: "Gone"}
	for _, anew := range []int{0, 2} {
		disk := memfs.New()
		w := newLogWriter(t, disk)
		for range 5 {
			w.put(gone.Topic, 0, "old")
			w.put("B", 0, "other")
		}
		s := open(t, disk)
		require.NoError(t, s.TopicDeleted(gone.Topic, s.Log.End()))
		require.NoError(t, s.OffsetsKept(map[messages.QueueKey]messages.QueueOffset{gone: s.Queues.Lookup(gone).Max(), {Topic: "B"}: 5}))
		require.EqualValues(t, 5, s.KeptAt(messages.QueueKey{Topic: "B"}))
		require.Zero(t, s.KeptAt(gone))
		require.NoError(t, s.Close())
		delete(w.next, gone)
		for range anew {
			w.put(gone.Topic, 0, "new")
		}
		for range 2 {
			c, _ := recovered(t, disk)
			require.EqualValues(t, anew, c.Next[gone])
			require.Len(t, c.Queues[gone].Units, anew)
			disk = disk.Crash(1)
		}
	}
}

// TestADamagedQueueThatTheScanDoesNotMeetIsBuiltAgain however often the start is interrupted.
func TestADamagedQueueThatTheScanDoesNotMeetIsBuiltAgain(t *testing.T) {
	for name, damage := range queueDamages {
		disk, w := oldQueue(t)
		damage(t, disk, queueFile("Old", 0), 12)
		everyEnd(t, disk, func(left *memfs.Disk, step int) {
			c, _ := recovered(t, left)
			require.Equal(t, w.next, c.Next, "%s, step %d", name, step)
			c.requirePuts(t, w.puts)
		})
	}
}

// TestAStartThatReadsMoreThanTheNextOneMayBeInterrupted: there are no queues, so all of the log is read, or somebody has asked for it. Once some queues
// are built the next start reads only the end of the log, and meets no record of the others.
func TestAStartThatReadsMoreThanTheNextOneMayBeInterrupted(t *testing.T) {
	all := testOptions()
	all.FullScan = true
	for name, c := range map[string]struct {
		options store.Options
		lose    func(*memfs.Disk, *logWriter)
	}{
		"no queues": {testOptions(), func(d *memfs.Disk, _ *logWriter) { removeTree(t, d, "s/consumequeue") }},
		"no files of queues": {testOptions(), func(d *memfs.Disk, w *logWriter) {
			for key := range w.next {
				require.NoError(t, d.Remove(queueFile(key.Topic, int(key.QueueID))))
				require.NoError(t, d.SyncDir(path.Dir(queueFile(key.Topic, int(key.QueueID)))))
			}
		}},
		"one folder, full scan": {all, func(d *memfs.Disk, _ *logWriter) { removeTree(t, d, "s/consumequeue/Old") }},
		"last units, full scan": {all, func(d *memfs.Disk, _ *logWriter) {
			overwrite(t, d, queueFile("Old", 0), 7*20, zeroBytes(5*20))
		}},
		"damage, full scan": {all, func(d *memfs.Disk, _ *logWriter) {
			queueDamages["junk behind a hole"](t, d, queueFile("Old", 0), 12)
		}},
	} {
		disk, w := oldQueue(t)
		c.lose(disk, w)
		before, _ := recovered(t, disk.Clone()) // what it does not meet is as it was, until the start that does has begun
		everyEndOf(t, disk, c.options, func(left *memfs.Disk, step int) {
			got, _ := recovered(t, left)
			if !maps.Equal(before.Next, got.Next) {
				require.Equal(t, w.next, got.Next, "%s, step %d", name, step)
				got.requirePuts(t, w.puts)
			}
		})
	}
}

// TestAClosedHoleDoesNotHaveTheNextStartReadLess: a segment whose first record is damaged is not trusted, so more of the log is read. Once the
// hole is closed the queues that were to be built from that part are built all the same.
func TestAClosedHoleDoesNotHaveTheNextStartReadLess(t *testing.T) {
	disk := memfs.New()
	w := newLogWriter(t, disk)
	for w.pos < 12*testSegment { // a queue for each segment, and one that goes on from each to the next
		topic := fmt.Sprint("S", w.pos/testSegment)
		if rest := testSegment - w.pos%testSegment; rest < 500 || rest > testSegment-500 {
			topic = "Both"
		}
		w.put(topic, 0, strings.Repeat("x", 80))
	}
	require.NoError(t, open(t, disk).CloseClean())
	createFile(t, disk, "s/abort", 0)
	for n := int64(7); n < 10; n++ {
		damaged := disk.Clone()
		first := slices.IndexFunc(w.puts, func(p put) bool { return p.from == n*testSegment })
		patchLog(t, damaged, w.puts[first].from, zeroBytes(w.puts[first].to-w.puts[first].from))
		key := messages.QueueKey{Topic: fmt.Sprint("S", n-1)}
		overwrite(t, damaged, queueFile(key.Topic, 0), int64(w.next[key]-3)*20, zeroBytes(3*20))
		want, _ := recovered(t, damaged.Clone())
		everyEnd(t, damaged, func(left *memfs.Disk, step int) {
			c, _ := recovered(t, left)
			require.Equal(t, want.Next[key], c.Next[key], "segment %d, step %d", n, step)
		})
	}
}

// TestADamagedQueueOfADeletedTopicIsGone, when the process was killed before it had deleted the queue: the topic's next life begins at 0.
func TestADamagedQueueOfADeletedTopicIsGone(t *testing.T) {
	for name, damage := range queueDamages {
		disk, _ := oldQueue(t)
		s := open(t, disk)
		require.NoError(t, s.TopicDeleted("Old", s.Log.End()))
		require.NoError(t, s.Close())
		damage(t, disk, queueFile("Old", 0), 12)
		everyEnd(t, disk, func(left *memfs.Disk, step int) {
			c, _ := recovered(t, left)
			require.NotContains(t, c.Next, messages.QueueKey{Topic: "Old"}, "%s, step %d", name, step)
		})
	}
}

// TestTheLastMessageOfADamagedQueueIsBuiltAgain: where the queue goes on is noted before it goes, and must not keep its only record out.
func TestTheLastMessageOfADamagedQueueIsBuiltAgain(t *testing.T) {
	disk, last := lastOfIdle(t)
	for name, damage := range queueDamages {
		damaged := disk.Clone()
		damage(t, damaged, queueFile("Idle", 0), 7)
		everyEnd(t, damaged, func(left *memfs.Disk, step int) {
			c, _ := recovered(t, left)
			require.EqualValues(t, 7, c.Next[last.key], "%s, step %d", name, step)
			c.requirePuts(t, []put{last})
		})
	}
}

// lastOfIdle is a store in which the log has only the last message of a queue, in front of what a start reads.
func lastOfIdle(t *testing.T) (*memfs.Disk, put) {
	t.Helper()
	disk := memfs.New()
	w := newLogWriter(t, disk)
	w.intervalMs = 100_000 // a start after a crash reads the last segments only
	body := strings.Repeat("x", 500)
	for range 6 {
		w.put("Idle", 0, body)
	}
	for w.pos < 4*testSegment {
		w.put("Both", 0, body)
	}
	last := w.put("Idle", 0, body)
	for w.pos < 12*testSegment {
		w.put("Both", 0, body)
	}
	require.NoError(t, open(t, disk).CloseClean())
	for i := range int64(3) {
		require.NoError(t, disk.Remove(segmentPath(i*testSegment)))
	}
	require.NoError(t, disk.SyncDir("s/commitlog"))
	return disk, last
}

// TestAQueueThatHasOnlyALostMessageGoesOnWithIt: what was in front of it has expired, and so have its files.
func TestAQueueThatHasOnlyALostMessageGoesOnWithIt(t *testing.T) {
	disk := memfs.New()
	w := newLogWriter(t, disk)
	body := strings.Repeat("x", 500)
	for range 20 {
		w.put("Idle", 0, body)
	}
	for w.pos < 8*testSegment {
		w.put("Both", 0, body)
	}
	last := w.put("Idle", 0, body)
	require.NoError(t, open(t, disk).CloseClean())
	for i := range int64(4) {
		require.NoError(t, disk.Remove(segmentPath(i*testSegment)))
	}
	require.NoError(t, disk.Remove(queueFile("Idle", 0)))
	require.NoError(t, errors.Join(disk.SyncDir("s/commitlog"), disk.SyncDir("s/consumequeue/Idle/0")))
	createFile(t, disk, "s/abort", 0)
	patchLog(t, disk, last.from, zeroBytes(last.to-last.from))
	everyEnd(t, disk, func(left *memfs.Disk, step int) {
		for range 2 {
			c, _ := recovered(t, left)
			require.EqualValues(t, 20, c.Next[last.key], "step %d", step)
		}
	})
}

// TestDeletingQueuesMayBeInterrupted, of a deleted topic and of one whose messages have expired, as a running store does it: each is as it was, or gone;
// an expired one goes on where it was; and what is gone once the deletion was said to be done stays gone.
func TestDeletingQueuesMayBeInterrupted(t *testing.T) {
	disk, puts := expired(t)
	idle, both := messages.QueueKey{Topic: "Idle"}, puts[0].key
	off, met := errors.New("power is off"), map[bool]*ends{false: newEnds(t), true: newEnds(t)}
	for k, done := 0, false; !done; k++ {
		d := disk.Clone()
		s := open(t, d)
		end := s.Log.End()
		d.Inject(powerOff(k, off))
		err := s.OffsetsKept(map[messages.QueueKey]messages.QueueOffset{idle: s.Queues.Lookup(idle).Max()})
		if err == nil {
			err = s.Queues.Lookup(idle).Destroy()
		}
		noted := false
		if err == nil {
			err = s.TopicDeleted(both.Topic, end)
			noted = err == nil
		}
		if err == nil {
			err = s.Queues.Lookup(both).Destroy()
		}
		done = err == nil
		for _, left := range met[noted].anew(d.Clone(), d.Crash(uint64(k)), d.Crash(uint64(k)+1000), d.Crash(uint64(k)+2000)) {
			for range 2 {
				c, _ := recovered(t, left)
				require.EqualValues(t, 5, c.Next[idle], "step %d", k)
				if _, there := c.Next[both]; there {
					require.False(t, noted, "step %d", k)
					c.requirePuts(t, puts)
				}
				left = left.Crash(3)
			}
		}
		require.ErrorIs(t, errors.Join(off, s.Close()), off)
	}
}

// TestAStartWithMarksMayBeInterrupted: the log is copied, the queues are built again, and none of it is forgotten half-way.
func TestAStartWithMarksMayBeInterrupted(t *testing.T) {
	idle := messages.QueueKey{Topic: "Idle"}
	for _, from := range []messages.PhysicalOffset{0, 5 * testSegment} {
		disk, puts := expired(t)
		s := open(t, disk)
		require.NoError(t, s.MarkQueuesDamaged(errors.New("a unit is damaged")))
		require.NoError(t, s.CloseClean())
		require.NoError(t, store.MarkUnproven(disk, testParams(), from, errors.New("a sync failed")))
		queueDamages["junk behind a hole"](t, disk, queueFile("Idle", 0), 5)
		overwrite(t, disk, queueFile("Both", 0), 7*20, zeroBytes(20))
		everyEnd(t, disk, func(left *memfs.Disk, step int) {
			for range 2 {
				c, _ := recovered(t, left)
				require.EqualValues(t, 5, c.Next[idle], "step %d", step)
				c.requirePuts(t, puts)
				left = left.Crash(3)
			}
			for _, name := range []string{"s/unproven", "s/unprovenqueues"} {
				_, err := left.Stat(name)
				require.ErrorIs(t, err, fs.ErrNotExist)
			}
		})
	}
}
