package offheap_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments/vfs/offheap"
)

func TestMemoryIsZeroKeepsItsContentAndIsFreedOnce(t *testing.T) {
	m, err := offheap.New(1 << 20)
	require.NoError(t, err)
	b := m.Bytes()
	require.Len(t, b, 1<<20)
	for _, c := range b[:4096] {
		require.Zero(t, c)
	}
	b[70_000] = 7
	require.NoError(t, m.Populate(60_000, 200_000))
	require.NoError(t, m.Populate(1<<20-5, 100), "what is outside is nobody's business")
	require.EqualValues(t, 7, b[70_000])
	if err := m.Lock(); err != nil {
		t.Log("no permission to lock:", err)
	}
	require.NoError(t, m.Free())
	require.NoError(t, m.Free())
}
