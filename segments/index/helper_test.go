package index

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/memfs"
)

const (
	dir   = "/store/index"
	start = int64(1700000000123) // of the specification's vectors
	ever  = int64(1) << 60
)

// clock ticks a minute a file.
func clock() func() time.Time {
	now := time.Date(2026, 11, 29, 15, 32, 9, 587_000_000, time.UTC)
	return func() time.Time {
		now = now.Add(time.Minute)
		return now
	}
}

func params(slots, entries int32) Params { return Params{Slots: slots, Entries: entries, Now: clock()} }

func openSet(t testing.TB, disk vfs.Disk, p Params) *Set {
	s, err := Open(disk, dir, p)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.releaseAll() })
	return s
}

func query(t testing.TB, s *Set, key string) []messages.PhysicalOffset {
	found, err := s.Query("T", key, 64, 0, ever)
	require.NoError(t, err)
	return found
}

func offsets(list ...messages.PhysicalOffset) []messages.PhysicalOffset { return list }

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	require.NoError(t, err)
	return b
}

func names(t testing.TB, disk vfs.Disk, folder string) []string {
	entries, err := disk.List(folder)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name)
	}
	return out
}

// put indexes key k<i> of a record of 100 bytes, one a second.
func put(t testing.TB, s *Set, from, to int) {
	for i := from; i < to; i++ {
		r := record(i)
		require.NoError(t, s.BuildFrom(&r))
	}
}

func record(i int) messages.DispatchRequest {
	return messages.DispatchRequest{
		Queue: messages.QueueKey{Topic: "T"}, PhysicalOffset: messages.PhysicalOffset(100 * i), SizeBytes: 100,
		StoreTimestampMs: start + int64(i)*1000, Keys: []byte(keyOf(i)),
	}
}

func keyOf(i int) string {
	return "k" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))
}

// requireKeys checks that just the records [from, to) are found by their keys.
func requireKeys(t testing.TB, s *Set, from, to, upTo int) {
	for i := range upTo {
		want := offsets(messages.PhysicalOffset(100 * i))
		if i < from || i >= to {
			want = nil
		}
		require.Equal(t, want, query(t, s, keyOf(i)), "record %d", i)
	}
}

func newSet(t testing.TB, p Params) (*memfs.Disk, *Set) {
	disk := memfs.New()
	return disk, openSet(t, disk, p)
}
