package verify_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/verify"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/golden"
)

func goldenStore(t testing.TB, name string) store.Params {
	t.Helper()
	g := golden.Load(name)
	dir, err := g.Unpack(t.TempDir())
	require.NoError(t, err)
	var sizes struct {
		CommitLogSize, ConsumeQueueSize int64
		HashSlots, IndexNum             int32
		LMQ                             bool
		DelayLevels                     string
	}
	require.NoError(t, json.Unmarshal(g.Params, &sizes))
	return store.Params{
		Dir: dir, SegmentBytes: sizes.CommitLogSize, ConsumeQueueFileBytes: sizes.ConsumeQueueSize, IndexSlots: sizes.HashSlots,
		IndexEntries: sizes.IndexNum, MultiDispatch: sizes.LMQ, DelayLevels: sizes.DelayLevels, CheckCRC: true, MessageIndex: true,
	}
}

// TestGoldenStores: every planted damage is found where it is, and nothing in the stores that are whole. Once our store has had
// them open, all of them are, but for a segment that is gone.
func TestGoldenStores(t *testing.T) {
	names := golden.Names()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			want := golden.Load(name).Damage()
			p := goldenStore(t, name)
			r, err := verify.Run(vfs.New(), p, nil)
			require.NoError(t, err)
			completes := golden.Load(name).Completes()
			require.Equal(t, want == "" || completes, r.Whole, "%v", r.Findings)
			require.Equal(t, completes, len(r.NextStart) > 0 && len(r.Findings) == 0, "%v", r.NextStart)
			var lines strings.Builder
			for _, f := range append(r.Findings, r.NextStart...) {
				lines.WriteString(f.String() + "\n")
			}
			require.Contains(t, lines.String(), want)

			s, err := store.Open(vfs.New(), p, store.Options{FullScan: true})
			require.NoError(t, err)
			require.NoError(t, s.CloseClean())
			r, err = verify.Run(vfs.New(), p, nil)
			require.NoError(t, err)
			if name == "missing-middle-commitlog" {
				require.Len(t, r.Findings, 1)
				return
			}
			require.Empty(t, r.Findings)
			require.Empty(t, r.NextStart)
		})
	}
}
