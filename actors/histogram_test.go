package actors_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors"
)

func TestAHistogramCountsWhatIsNotAboveEachBound(t *testing.T) {
	h := actors.NewHistogram(time.Millisecond, time.Second)
	for _, d := range []time.Duration{0, time.Millisecond, time.Millisecond + 1, time.Second, time.Minute} {
		h.Add(d)
	}
	got := h.Times()
	require.Equal(t, []int64{2, 4}, got.Below)
	require.EqualValues(t, 5, got.Count)
	require.Equal(t, time.Minute+time.Second+2*time.Millisecond+1, got.Sum)
	require.Zero(t, testing.AllocsPerRun(10, func() { h.Add(time.Second) }))
	require.IsIncreasing(t, actors.OperationBounds())
}
