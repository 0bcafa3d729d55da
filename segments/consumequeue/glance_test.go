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

// TestAGlanceSeesWhatHasChanged: what was appended, cut off and appended again, and deleted, between two looks.
func TestAGlanceSeesWhatHasChanged(t *testing.T) {
	disk, _, q := newTable(t)
	appendUnits(t, q, 0, 95)
	require.NoError(t, q.Sync())
	q = reopen(t, disk)
	g := q.Glance()
	defer g.Close()
	var one [1]Unit
	look := func(at int64, want Unit) {
		t.Helper()
		n, err := g.At(messages.QueueOffset(at), &one)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, want, one[0])
	}
	for _, at := range []int64{49, 45, 41, 48, 42} {
		look(at, unit(at))
	}
	require.NotNil(t, g.file, "the file is kept")
	require.NoError(t, q.Truncate(45))
	n, err := g.At(45, &one)
	require.NoError(t, err)
	require.Zero(t, n)
	again := Unit{PhysicalOffset: 4501, Size: 90, TagsCode: 1}
	_, err = q.Append(again, 45)
	require.NoError(t, err)
	look(45, again)
	look(43, unit(43))
}
