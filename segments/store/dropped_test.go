package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/testkit/memfs"
)

// everyEnd ends a start of a store after each of its operations, by a kill and by power cuts, and has check look at what each leaves.
func everyEnd(t *testing.T, disk *memfs.Disk, check func(left *memfs.Disk, step int)) {
	t.Helper()
	off := errors.New("power is off")
	for k, done := 0, false; !done; k++ {
		d := disk.Clone()
		d.Inject(powerOff(k, off))
		s, err := store.Open(d, testParams(), testOptions())
		if done = err == nil; done {
			_ = s.Close() // fails or not: the power may go off in it
		}
		for _, left := range []*memfs.Disk{d.Clone(), d.Crash(uint64(k)), d.Crash(uint64(k) + 1000), d.Crash(uint64(k) + 2000)} {
			check(left, k)
		}
	}
}

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

// TestTheLastMessageOfADamagedQueueIsBuiltAgain: where the queue goes on is noted before it goes, and must not keep its only record out.
func TestTheLastMessageOfADamagedQueueIsBuiltAgain(t *testing.T) {
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
