package consumequeue

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
)

// TestSingleLooksSeeWhatPagesShow: units that are looked at here and there come from a mapping, and damage is told as ever.
func TestSingleLooksSeeWhatPagesShow(t *testing.T) {
	disk, _, q := newTable(t)
	appendUnits(t, q, 0, 95)
	require.NoError(t, q.Sync())
	q = reopen(t, disk)
	var one [1]Unit
	for _, at := range []int64{3, 8, 1, 9, 0, 3, 95 - 1, 42, 48, 41} {
		n, err := q.Read(messages.QueueOffset(at), one[:])
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, unit(at), one[0])
	}
	f, err := q.table.files.acquire(q, 0)
	require.NoError(t, err)
	defer q.table.files.release(f)
	require.NotNil(t, f.mapped.Load(), "who looks here and there reads a mapping")
	_, err = f.WriteAt(make([]byte, UnitBytes), 5*UnitBytes)
	require.NoError(t, err)
	var damage *segments.CorruptionError
	_, err = q.Read(5, one[:])
	require.ErrorAs(t, err, &damage)
	require.EqualValues(t, 5*UnitBytes, damage.Offset)
}
