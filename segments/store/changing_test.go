package store_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments/store"
)

// TestNothingOfTheLogIsChangedThatMayNotBe: whatever a recovery changes of it, it asks before, and an answer of no ends it.
func TestNothingOfTheLogIsChangedThatMayNotBe(t *testing.T) {
	disk, w := killed(t, 100)
	for i := 40; i < 52; i++ { // nothing is known of what is lost, so that gaps are closed with records
		noise := make([]byte, w.puts[i].to-w.puts[i].from)
		for k := range noise {
			noise[k] = byte(k*7 + i)
		}
		patchLog(t, disk, w.puts[i].from, noise)
	}
	removeTree(t, disk, "s/consumequeue")
	patchLog(t, disk, w.pos, []byte("garbage"))
	patchLog(t, disk, w.pos-w.pos%testSegment+testSegment+100, []byte("something"))
	no := errors.New("no")
	var asked []store.Finding
	for n, done := 0, false; !done; n++ {
		left, at, o := disk.Clone(), 0, testOptions()
		var before map[string]string
		o.Changing = func(what store.Finding, part store.Span) error {
			require.False(t, part.Empty())
			if at++; at <= n {
				return nil
			}
			asked, before = append(asked, what), tree(t, left, "s/commitlog")
			return no
		}
		s, err := store.Open(left, testParams(), o)
		if done = at <= n; done {
			require.NoError(t, err)
			require.NoError(t, s.Close())
			continue
		}
		require.ErrorIs(t, err, no)
		require.Equal(t, before, tree(t, left, "s/commitlog"))
	}
	for _, what := range []store.Finding{store.ClosedHole, store.RemovedSegment, store.CutTail, store.ClosedGap} {
		require.True(t, slices.Contains(asked, what), "%s, %v", what, asked)
	}
}
