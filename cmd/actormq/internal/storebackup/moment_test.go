package storebackup

import (
	"fmt"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

var offsetsFile = path.Join(configName, "consumerOffset.json")

func commit(t *testing.T, disk *memfs.Disk, queues string) {
	t.Helper()
	fixture.WriteFile(t, disk, path.Join(source, offsetsFile), fmt.Appendf(nil, `{"offsetTable":{%s}}`, queues))
}

// newLife deletes a topic as a node does, and makes it again: three messages a queue, which the group has read.
func newLife(t *testing.T, disk *memfs.Disk, s *system.Store) {
	t.Helper()
	commit(t, disk, "")
	require.NoError(t, s.DeleteTopic(t.Context(), "T"))
	put(t, s, "T", 6)
	commit(t, disk, `"T@g":{0:3,1:3}`)
}

// TestABackupIsOfOneMoment: whenever a topic is deleted and made again while it is taken, what is restored has offsets that its queues have, of the
// same life.
func TestABackupIsOfOneMoment(t *testing.T) {
	lives := map[messages.QueueOffset]int{}
	for k := 1; ; k++ {
		disk := memfs.New()
		s := open(t, disk)
		put(t, s, "T", 100)
		put(t, s, "U", 100)
		commit(t, disk, `"T@g":{0:50,1:50}`)
		met := false
		atEach(disk, dest, func(at int, _ memfs.Op) {
			if at == k {
				met = true
				newLife(t, disk, s)
			}
		})
		backUp(t, disk)
		disk.Inject(nil)
		require.NoError(t, s.Close(t.Context()))
		_, err := Restore(t.Context(), disk, params(dest), back, nil)
		require.NoError(t, err)
		var offsets metadata.OffsetTable
		_, err = metadata.Load(disk, path.Join(back, offsetsFile), &offsets)
		require.NoError(t, err)
		opened, err := store.Open(disk, params(back), store.Options{})
		require.NoError(t, err)
		for id, at := range offsets.Offsets["T@g"] {
			next := opened.QueueOffsets[messages.QueueKey{Topic: "T", QueueID: id}]
			require.EqualValues(t, at, next, "%d: %v", k, offsets.Offsets)
			lives[next]++
		}
		require.EqualValues(t, 50, opened.QueueOffsets[messages.QueueKey{Topic: "U", QueueID: 1}], "%d", k)
		require.NoError(t, opened.CloseClean())
		if !met {
			require.Greater(t, k, 20)
			require.Len(t, lives, 2)
			return
		}
	}
}

// TestABackupDuringEndlessDeletionsEnds and says so.
func TestABackupDuringEndlessDeletionsEnds(t *testing.T) {
	disk := memfs.New()
	grow(t, disk, "one", 100)
	backUp(t, disk)
	one := mustRestore(t, disk)
	n := 0
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindRename && op.To == path.Join(dest, nextName, floorsName) {
			n++
			fixture.WriteFile(t, disk, path.Join(source, floorsName), fmt.Appendf(nil, `{"topics":{"C":{"below":%d}}}`, n))
		}
		return nil
	})
	_, err := Backup(t.Context(), disk, params(source), dest, nil)
	require.ErrorIs(t, err, ErrUnfinished)
	require.Equal(t, passes, n)
	require.Equal(t, one, mustRestore(t, disk))
	disk.Inject(nil)
	backUp(t, disk)
	require.NotEqual(t, one, mustRestore(t, disk))
}

// TestABackupWhileMessagesExpireEnds: topics with a retention of their own, and queues that have expired, change the floors again and again.
func TestABackupWhileMessagesExpireEnds(t *testing.T) {
	disk := memfs.New()
	grow(t, disk, "one", 100)
	n := 0
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindRename && op.To == path.Join(dest, nextName, floorsName) {
			n++
			fixture.WriteFile(t, disk, path.Join(source, floorsName), fmt.Appendf(nil, `{"topics":{},"queues":{"C":{"%d":1}},"expired":{"T":{"below":%d}}}`, n, n))
		}
		return nil
	})
	backUp(t, disk)
	require.Equal(t, 2, n, "the log was copied once, and what has come since")
}
