package store_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

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
