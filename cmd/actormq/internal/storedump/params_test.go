package storedump

import (
	"errors"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/testkit/memfs"
)

// TestFurtherQueuesShowThemselves by the marker of a start that knew of them, which need not be light, or by a light queue, also where a run of a backup
// has not yet put them in their place.
func TestFurtherQueuesShowThemselves(t *testing.T) {
	marker, light := path.Base(store.Params{}.FurtherPath()), "consumequeue/%LMQ%a"
	for below, want := range map[string]bool{
		"": false, "consumequeue/B": false, marker: true, light: true, "backup.next/consumequeue/B": false, "backup.next/" + marker: true,
		"backup.next/" + light: true,
	} {
		disk := memfs.New()
		require.NoError(t, disk.MkdirAll(path.Join("s", below)))
		got, err := HasFurtherQueues(disk, "s")
		require.NoError(t, err)
		require.Equal(t, want, got, below)
	}
}

// TestAMarkerThatCannotBeReadIsNotTakenForMissing, as then nothing of further queues would be looked at.
func TestAMarkerThatCannotBeReadIsNotTakenForMissing(t *testing.T) {
	disk, failed := memfs.New(), errors.New("failed")
	require.NoError(t, disk.MkdirAll("s"))
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindStat && op.Name == (store.Params{Dir: "s"}).FurtherPath() {
			return failed
		}
		return nil
	})
	_, err := HasFurtherQueues(disk, "s")
	require.ErrorIs(t, err, failed)
}
