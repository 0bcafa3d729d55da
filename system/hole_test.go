package system_test

import (
	"fmt"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/memfs"
)

// A message that is lost inside a queue does not end a search by time: its place counts as the next one's.
func TestOffsetByTimeGoesOverALostMessage(t *testing.T) {
	disk := memfs.New()
	s, err := system.Open(small(disk))
	require.NoError(t, err)
	var puts []messages.PutResult
	for i := range 9 {
		r, err := s.Put(t.Context(), message("T", 0, fmt.Sprint("body ", i)))
		require.NoError(t, err)
		puts = append(puts, r)
	}
	require.NoError(t, s.Close(t.Context()))
	f, err := disk.Open(path.Join("store/commitlog", segments.Name(0)), true)
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, 30), int64(puts[4].PhysicalOffset)) // the middle: where the search looks first
	require.NoError(t, err)
	require.NoError(t, f.Close())

	s = open(t, small(disk))
	key := messages.QueueKey{Topic: "T"}
	require.EqualValues(t, 9, s.MaxOffset(key))
	for ms, want := range map[int64]messages.QueueOffset{puts[0].StoreTimestampMs: 0, puts[8].StoreTimestampMs + 1: 9} {
		at, err := s.OffsetByTime(t.Context(), key, ms, messages.TimeLower)
		require.NoError(t, err)
		require.Equal(t, want, at)
	}
}
