package record_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments/record"
)

func TestBlank(t *testing.T) {
	require.Equal(t, unhex(t, "0000009c cbd43194"), record.AppendBlank(nil, 156), "spec/store.md §17.9")
	require.Equal(t, unhex(t, "aa 00000008 cbd43194"), record.AppendBlank([]byte{0xaa}, record.BlankBytes))
	require.Equal(t, unhex(t, "7fffffff cbd43194"), record.AppendBlank(nil, math.MaxInt32))
	require.Zero(t, testing.AllocsPerRun(100, func() { byteSink = record.AppendBlank(byteSink[:0], 156) }))
}

func TestBlankTooSmallIsABug(t *testing.T) {
	for _, rest := range []int32{7, 0, -1, math.MinInt32} {
		require.Panics(t, func() { record.AppendBlank(nil, rest) }, rest)
	}
}

// The size of a blank is not to be trusted: whatever stands there, it is a blank (spec/store.md §2.4).
func TestParseBlank(t *testing.T) {
	for _, c := range []struct {
		hex  string
		size int32
	}{
		{"0000009c cbd43194", 156},
		{"0000009c cbd43194 ffffffff", 156},
		{"00000000 cbd43194", 0},
		{"ffffffff cbd43194", -1},
		{"7fffffff cbd43194", math.MaxInt32},
	} {
		r, kind, err := record.Parse(unhex(t, c.hex), true)
		require.NoError(t, err, c.hex)
		require.Equal(t, record.KindBlank, kind, c.hex)
		require.Equal(t, record.Record{Size: c.size}, r, c.hex)
	}
}

var byteSink = make([]byte, 0, 4096)
