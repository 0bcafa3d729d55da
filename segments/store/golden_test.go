package store_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/testkit/golden"
)

// goldenStore unpacks a store that RocketMQ has written.
func goldenStore(t *testing.T, name string) (dir string, p store.Params) {
	t.Helper()
	return goldenStoreIn(t, name, t.TempDir())
}

// goldenStoreIn unpacks it into a folder.
func goldenStoreIn(t testing.TB, name, folder string) (dir string, p store.Params) {
	t.Helper()
	g := golden.Load(name)
	dir, err := g.Unpack(folder)
	require.NoError(t, err)
	var sizes struct {
		CommitLogSize, ConsumeQueueSize int64
		HashSlots, IndexNum             int32
		LMQ                             bool
		DelayLevels                     string
	}
	require.NoError(t, json.Unmarshal(g.Params, &sizes))
	return dir, store.Params{
		Dir: dir, SegmentBytes: sizes.CommitLogSize, ConsumeQueueFileBytes: sizes.ConsumeQueueSize, IndexSlots: sizes.HashSlots,
		IndexEntries: sizes.IndexNum, MultiDispatch: sizes.LMQ, DelayLevels: sizes.DelayLevels, CheckCRC: true, MessageIndex: true,
	}
}

// A segment is missing, and the one behind it begins with damage: that loses the missing segment and the damaged record only.
func TestDamageBehindAMissingSegment(t *testing.T) {
	for _, clean := range []bool{true, false} {
		g := loadGolden(t, "missing-middle-commitlog", t.TempDir())
		behind := slices.Index(g.files, "s/commitlog/00000000000000065536")
		require.Positive(t, behind)
		whole, err := store.Open(g.disk.Clone(), g.params, testOptions())
		require.NoError(t, err)
		want := contentOf(t, whole)
		require.NoError(t, whole.Close())
		damage(t, g.disk, g.files[behind], 0, []byte("0"))
		if !clean {
			require.NoError(t, g.disk.Remove("s/checkpoint"))
			f, err := g.disk.Create("s/abort")
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
		s, err := store.Open(g.disk, g.params, testOptions())
		require.NoError(t, err)
		got := contentOf(t, s)
		require.NoError(t, s.Close())
		require.Contains(t, want.Bodies, messages.PhysicalOffset(65536))
		delete(want.Bodies, 65536)
		require.Equal(t, want.Bodies, got.Bodies)
	}
}
