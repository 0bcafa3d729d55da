package storebackup

import (
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// queueFile is the first file of a topic's queue.
func queueFile(dir, topic string) string {
	return path.Join(dir, queuesName, topic, "0", "00000000000000000000")
}

// around is a disk with a store of nothing but queues of these topics.
func around(t *testing.T, topics ...string) *memfs.Disk {
	t.Helper()
	disk := memfs.New()
	require.NoError(t, disk.MkdirAll(path.Join(source, logName)))
	require.NoError(t, disk.MkdirAll(dest))
	for _, topic := range topics {
		fixture.WriteFile(t, disk, queueFile(source, topic), make([]byte, 20))
	}
	return disk
}

// copyAround copies what is beside the log.
func copyAround(t *testing.T, disk *memfs.Disk) {
	t.Helper()
	r := &run{Disk: disk, from: params(source), to: dest}
	require.NoError(t, r.begin())
	require.NoError(t, r.stage(t.Context(), &copied{now: map[string]bool{}}))
	require.NoError(t, r.replace())
}

// once has something done when a file gets its name.
func once(disk *memfs.Disk, file string, then func()) {
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindRename && op.To == path.Join(dest, nextName, file) {
			disk.Inject(nil)
			then()
		}
		return nil
	})
}

func there(t *testing.T, disk *memfs.Disk, name string) bool {
	t.Helper()
	_, err := disk.Stat(name)
	return err == nil
}

// TestACopyOfQueuesThatAreNotToBeBelievedSaysSo, whether that was known before they were copied, or is while they are.
func TestACopyOfQueuesThatAreNotToBeBelievedSaysSo(t *testing.T) {
	disk := around(t, "T")
	marker, copied := path.Join(source, unprovenName), path.Join(dest, unprovenName)
	fixture.WriteFile(t, disk, marker, []byte("7\n"))
	copyAround(t, disk)
	require.Equal(t, "7\n", string(fixture.ReadFile(t, disk, copied)))
	require.True(t, there(t, disk, queueFile(dest, "T")))

	once(disk, queueFile("", "T"), func() { require.NoError(t, disk.Remove(marker)) })
	copyAround(t, disk)
	require.True(t, there(t, disk, copied), "the queues before were copied")

	copyAround(t, disk)
	require.False(t, there(t, disk, copied), "of the copy before")

	once(disk, queueFile("", "T"), func() { fixture.WriteFile(t, disk, marker, []byte("8\n")) })
	copyAround(t, disk)
	require.Equal(t, "8\n", string(fixture.ReadFile(t, disk, copied)))
}

// TestACopyKnowsOfFurtherQueues as its store does did before its queues were copied, or does behind that: without, the recovery of the copy builds nothing of theirs.
func TestACopyKnowsOfFurtherQueues(t *testing.T) {
	disk := around(t, "T")
	marker, copied := path.Join(source, furtherName), path.Join(dest, furtherName)
	copyAround(t, disk)
	require.False(t, there(t, disk, copied))

	once(disk, queueFile("", "T"), func() { fixture.WriteFile(t, disk, marker, nil) })
	copyAround(t, disk)
	require.True(t, there(t, disk, copied))

	once(disk, queueFile("", "T"), func() { require.NoError(t, disk.Remove(marker)) })
	copyAround(t, disk)
	require.True(t, there(t, disk, copied), "it was there when the queues were copied")
}

// TestWhereAQueueGoesOnThatGoesWhileOthersAreCopied is in the copy: the store notes it before it deletes the queue.
func TestWhereAQueueGoesOnThatGoesWhileOthersAreCopied(t *testing.T) {
	disk := around(t, "A", "B", "C")
	once(disk, queueFile("", "A"), func() {
		fixture.WriteFile(t, disk, path.Join(source, floorsName), []byte(`{"queues":{"C":{"0":7}}}`))
		require.NoError(t, removeTree(disk, path.Join(source, queuesName, "C")))
	})
	copyAround(t, disk)
	require.True(t, there(t, disk, queueFile(dest, "B")))
	require.False(t, there(t, disk, queueFile(dest, "C")))
	require.True(t, there(t, disk, path.Join(dest, floorsName)))
}

// TestABackupOfAFileGoesWhereTheFileGoes: it is read when the file is missing or damaged.
func TestABackupOfAFileGoesWhereTheFileGoes(t *testing.T) {
	disk := around(t)
	for _, name := range []string{"queuefloors.json.bak", "promoted.json.bak"} {
		fixture.WriteFile(t, disk, path.Join(source, name), []byte("{}"))
		copyAround(t, disk)
		require.True(t, there(t, disk, path.Join(dest, name)))
		require.NoError(t, disk.Remove(path.Join(source, name)))
		copyAround(t, disk)
		require.False(t, there(t, disk, path.Join(dest, name)), "of the copy before")
	}
}
