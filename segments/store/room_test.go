package store_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
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
		{"s/queuefloors", func() *memfs.Disk { d, _ := oldQueue(t); return d }, old, 12},
		{"s/unprovenqueues", func() *memfs.Disk { d, _ := oldQueue(t); return d }, old, 12},
	} {
		for _, ballast := range []string{"", "s/ballast"} {
			disk := c.make()
			createFile(t, disk, "s/ballast", 10)
			name := queueFile(c.queue.Topic, 0)
			queueDamages["first unit is gone"](t, disk, name, int64(c.next))
			damaged := readFile(t, disk, name)
			disk.Inject(func(op memfs.Op) error {
				switch {
				case op.Kind == memfs.KindRemove && op.Name == "s/ballast":
					disk.Inject(nil)
				case op.Kind == memfs.KindWrite && strings.HasPrefix(op.Name, c.file):
					return vfs.ErrNoSpace
				}
				return nil
			})
			o := testOptions()
			o.Ballast = ballast
			s, err := store.Open(disk, testParams(), o)
			disk.Inject(nil)
			if ballast == "" {
				require.ErrorIs(t, err, store.ErrNoNote, c.file)
				require.ErrorIs(t, err, vfs.ErrNoSpace)
				require.Equal(t, damaged, readFile(t, disk, name))
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
