package index

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is packed comes out as it was, however far apart its records are.
func TestPackedKeysAreThoseThatWereAdded(t *testing.T) {
	all := []hashedKey{
		{hash: 1, at: 10, ms: start}, {hash: math.MaxInt32, at: 10, ms: start},
		{hash: 2, at: 10 + math.MaxUint32, ms: start - math.MaxInt32},
		{hash: 3, at: 11 + math.MaxUint32, ms: start}, // too far behind the first
		{hash: 4, at: 12 + math.MaxUint32, ms: start + math.MaxInt32 + 1},
		{hash: 5, at: 13 + math.MaxUint32, ms: -1},
		{hash: 6, at: 5, ms: math.MaxInt64},
	}
	k := Keys{all: append([]hashedKey(nil), all...)}
	p := k.Take()
	require.Zero(t, k.Len())
	require.Equal(t, len(all), p.Len())
	require.Len(t, p.parts, 5)
	var got []hashedKey
	for i := range p.parts {
		got = p.parts[i].unpack(got, p.parts[i].keys)
	}
	require.Equal(t, all, got)
	none := k.Take()
	require.Zero(t, none.Len())
}
