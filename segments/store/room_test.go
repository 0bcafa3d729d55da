package store_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// TestWithoutRoomToNoteNothingIsCut: where a queue goes on of which the log has nothing, and that queues have to be built again, stands nowhere
// else once they are cut. The ballast makes the room; without one the store stays as it is.
func TestWithoutRoomToNoteNothingIsCut(t *testing.T) {
	idle, old := messages.QueueKey{Topic: "Idle"}, messages.QueueKey{Topic: "Old"}
	for _, c := range []struct {
		file  string
		make  func() *memfs.Disk
		queue messages.QueueKey
		next  messages.QueueOffset
	}{
		{"s/queuefloors", func() *memfs.Disk { d, _ := expired(t); return d }, idle, 5},
		{"s/unprovenqueues", func() *memfs.Disk { d, _ := oldQueue(t); return d }, old, 12},
	} {
		for _, ballast := range []string{"", "s/ballast"} {
			disk := c.make()
			createFile(t, disk, "s/ballast", 10)
			name := queueFile(c.queue.Topic, 0)
			queueDamages["first unit is gone"](t, disk, name, int64(c.next))
			damaged := fixture.ReadFile(t, disk, name)
			fullUntilBallastGoes(disk, func(op memfs.Op, room bool) bool {
				return !room && (op.Kind == memfs.KindWrite || op.Kind == memfs.KindCreate) && strings.HasPrefix(op.Name, c.file)
			})
			o := testOptions()
			o.Ballast = ballast
			s, err := store.Open(disk, testParams(), o)
			disk.Inject(nil)
			if ballast == "" {
				require.ErrorIs(t, err, store.ErrNoNote, c.file)
				require.ErrorIs(t, err, vfs.ErrNoSpace)
				require.Equal(t, damaged, fixture.ReadFile(t, disk, name))
				_, err = disk.Stat("s/unprovenqueues")
				require.ErrorIs(t, err, fs.ErrNotExist)
				s = open(t, disk)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, c.next, s.QueueOffsets[c.queue])
			require.NoError(t, s.Close())
			for seed := range uint64(5) {
				got, _ := recovered(t, disk.Crash(seed))
				require.Equal(t, c.next, got.Next[c.queue])
			}
		}
	}
}

// fullUntilBallastGoes has a disk refuse what refused says: room is whether the ballast has been given up.
func fullUntilBallastGoes(disk *memfs.Disk, refused func(op memfs.Op, room bool) bool) {
	room := false
	disk.Inject(func(op memfs.Op) error {
		switch {
		case op.Kind == memfs.KindRemove && op.Name == "s/ballast":
			room = true
		case refused(op, room):
			return vfs.ErrNoSpace
		}
		return nil
	})
}

// withoutRoomFor has a disk refuse new files, and writes to them, whose names begin so.
func withoutRoomFor(disk *memfs.Disk, names ...string) {
	disk.Inject(func(op memfs.Op) error {
		if (op.Kind == memfs.KindCreate || op.Kind == memfs.KindWrite) && slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(op.Name, n) }) {
			return vfs.ErrNoSpace
		}
		return nil
	})
}

// TestAStoreOpensWithoutRoomForWhatIsKnownAnyway: a marker that says it already is made durable where it is, and where a queue goes
// on stands in the file.
func TestAStoreOpensWithoutRoomForWhatIsKnownAnyway(t *testing.T) {
	idle := messages.QueueKey{Topic: "Idle"}
	for name, make := range map[string]func() *memfs.Disk{
		"a start before has made the marker": func() *memfs.Disk {
			disk, _ := oldQueue(t)
			markQueues(t, disk, "0\n")
			withoutRoomFor(disk, "s/consumequeue/")
			s := open(t, disk)
			require.Contains(t, events(s.Report), store.NoRoom)
			disk.Inject(nil)
			require.NoError(t, s.Close())
			return disk
		},
		"noted queue, unsound marker": func() *memfs.Disk {
			disk, _ := expired(t)
			s := open(t, disk)
			q := s.Queues.Lookup(idle)
			require.NoError(t, s.OffsetsKept(map[messages.QueueKey]messages.QueueOffset{idle: q.Max()}))
			require.NoError(t, q.Destroy())
			require.NoError(t, s.MarkQueuesDamaged(errors.New("a unit is damaged")))
			require.NoError(t, s.CloseClean())
			return disk
		},
	} {
		disk := make()
		want, _ := recovered(t, disk.Clone())
		withoutRoomFor(disk, "s/unprovenqueues.tmp", "s/queuefloors.json.tmp", "s/consumequeue/")
		for range 2 {
			s, err := store.Open(disk, testParams(), testOptions())
			require.NoError(t, err, name)
			require.Equal(t, want.Next, s.QueueOffsets, name)
			require.NoError(t, s.Close())
		}
		disk.Inject(nil)
		for seed := range uint64(5) {
			got, _ := recovered(t, disk.Crash(seed))
			require.Equal(t, want, got, name)
		}
	}
}

// markQueues leaves a marker of queues that is not to be believed as it can be read.
func markQueues(t *testing.T, disk *memfs.Disk, text string) {
	t.Helper()
	f, err := disk.Create("s/unprovenqueues")
	require.NoError(t, err)
	_, err = f.WriteAt([]byte(text), 0)
	require.NoError(t, errors.Join(err, f.Close()))
}

// TestARefusedNoteLeavesTheMarkerAsItWas: nothing has begun, and a marker that says more has all queues built again.
func TestARefusedNoteLeavesTheMarkerAsItWas(t *testing.T) {
	disk, _ := oldQueue(t)
	s := open(t, disk)
	require.NoError(t, s.MarkQueuesDamaged(errors.New("a unit is damaged")))
	require.NoError(t, s.CloseClean())
	queueDamages["first unit is gone"](t, disk, queueFile("Old", 0), 12)
	marker := fixture.ReadFile(t, disk, "s/unprovenqueues")
	withoutRoomFor(disk, "s/unprovenqueues.tmp")
	_, err := store.Open(disk, testParams(), testOptions())
	require.ErrorIs(t, err, store.ErrNoNote)
	disk.Inject(nil)
	require.Equal(t, marker, fixture.ReadFile(t, disk, "s/unprovenqueues"))
	o := testOptions()
	o.InMemory = true
	s, err = store.Open(disk, testParams(), o)
	require.NoError(t, err)
	var dropped []messages.QueueKey
	for _, e := range s.Report.Events {
		if e.What == store.DroppedQueue {
			dropped = append(dropped, e.Queue)
		}
	}
	require.Equal(t, []messages.QueueKey{{Topic: "Old"}}, dropped)
	require.NoError(t, s.Close())
}

// TestAQueueThatTheLogHasIsDroppedWithoutRoom: the log says where it goes on. That all queues are to be built again is said by a name, where there is
// no room for a text.
func TestAQueueThatTheLogHasIsDroppedWithoutRoom(t *testing.T) {
	for name, damage := range queueDamages {
		for _, queue := range []messages.QueueKey{{Topic: "Old"}, {Topic: "New"}} {
			disk, w := oldQueue(t)
			for range 8 {
				w.put("New", 0, "new")
			}
			require.NoError(t, open(t, disk).CloseClean())
			damage(t, disk, queueFile(queue.Topic, 0), int64(w.next[queue]))
			everyEndWith(t, disk, testOptions(), func(op memfs.Op) error {
				full := strings.HasPrefix(op.Name, "s/queuefloors") && op.Kind == memfs.KindCreate
				if full || strings.HasPrefix(op.Name, "s/unprovenqueues") && op.Kind == memfs.KindWrite {
					return vfs.ErrNoSpace
				}
				return nil
			}, func(left *memfs.Disk, step int) {
				c, _ := recovered(t, left)
				require.Equal(t, w.next, c.Next, "%s of %v, step %d", name, queue, step)
				c.requirePuts(t, w.puts)
			})
		}
	}
}

// TestWhatIsForgottenNeedsNoRoom: a queue was noted, and has got messages of the log.
func TestWhatIsForgottenNeedsNoRoom(t *testing.T) {
	disk, last := lastOfIdle(t)
	overwrite(t, disk, queueFile("Idle", 0), 0, zeroBytes(7*20-8))
	createFile(t, disk, "s/abort", 0)
	floors := 0
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindCreate && strings.HasPrefix(op.Name, "s/queuefloors") {
			if floors++; floors > 1 {
				return vfs.ErrNoSpace
			}
		}
		return nil
	})
	s := open(t, disk)
	require.Equal(t, 2, floors)
	require.NotContains(t, events(s.Report), store.NoRoom)
	require.EqualValues(t, 7, s.QueueOffsets[last.key])
	_, err := disk.Stat("s/unprovenqueues")
	require.ErrorIs(t, err, fs.ErrNotExist, "all is built")
	require.NoError(t, s.Close())
	for range 2 {
		c, _ := recovered(t, disk.Crash(1))
		require.EqualValues(t, 7, c.Next[last.key])
		c.requirePuts(t, []put{last})
	}
}
