package system

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
)

// times are store times of n messages: many in a millisecond, now and then a pause.
func times(r *rand.Rand, n int) []int64 {
	out, now := make([]int64, n), int64(1000)
	for i := range out {
		out[i] = now
		switch x := r.IntN(1000); {
		case x == 0:
			now += r.Int64N(1 << 40)
		case x < 50:
			now++
		}
	}
	return out
}

// TestATimeIsFoundWithFewLooks: whatever the spacing, as the plain search would find it, and never with more than two looks a bit.
func TestATimeIsFoundWithFewLooks(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 9))
	for range 2000 {
		all := times(r, 1+r.IntN(5000))
		w := timeWindow{wanted: all[r.IntN(len(all))] + r.Int64N(3) - 1, hi: messages.QueueOffset(len(all))}
		want, _ := slices.BinarySearch(all, w.wanted)
		looks, halved := 0, false
		for ; w.lo < w.hi; looks++ {
			place, before := w.guess(halved), w.hi-w.lo
			require.True(t, place >= w.lo && place < w.hi, "%d is not in [%d, %d)", place, w.lo, w.hi)
			w.note(place, timed{place, all[place], true})
			halved = w.hi-w.lo <= before/2
		}
		require.EqualValues(t, want, w.lo)
		require.LessOrEqual(t, looks, 2*bits.Len(uint(len(all))), "%d messages", len(all))
	}
}
