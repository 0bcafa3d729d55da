package record

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Seen from inside, since a body that long would take 2 GiB.
func TestSizeEndsAt31Bits(t *testing.T) {
	const fixed, properties = MinBytes + 1, 100
	most := math.MaxInt32 - fixed - properties
	size, err := sizeOf(fixed, most, properties)
	require.NoError(t, err)
	require.Equal(t, math.MaxInt32, size)
	for _, body := range []int{most + 1, math.MaxInt32, math.MaxInt} {
		_, err = sizeOf(fixed, body, properties)
		require.ErrorIs(t, err, ErrRecordTooLong)
		require.ErrorContains(t, err, "at most 2147483455 here")
	}
}
