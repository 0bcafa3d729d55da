package consumequeue

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/memfs"
)

func TestHotPathsDoNotAllocate(t *testing.T) {
	table := openTable(t, vfs.New(), Options{})
	table.dir = t.TempDir()
	q, err := table.Create(key)
	require.NoError(t, err)
	appendUnits(t, q, 0, 10_000)
	at := int64(10_000)
	require.Zero(t, testing.AllocsPerRun(5000, func() {
		_, _ = q.Append(unit(at), messages.QueueOffset(at))
		at++
	}))
	require.NoError(t, q.Write())
	buf := make([]Unit, 32)
	for name, at := range map[string]messages.QueueOffset{"memory": messages.QueueOffset(at - 40), "file": 100} {
		n, err := q.Read(at, buf)
		require.NoError(t, err)
		require.Equal(t, 32, n)
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = q.Read(at, buf) }), name)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { table.Lookup(key) }))
}

func BenchmarkAppend(b *testing.B) {
	table, err := OpenTable(vfs.New(), b.TempDir(), Options{})
	require.NoError(b, err)
	q, err := table.Create(key)
	require.NoError(b, err)
	b.ReportAllocs()
	for i := range int64(b.N) {
		if _, err := q.Append(unit(i), messages.QueueOffset(i)); err != nil {
			b.Fatal(err)
		}
		if i%20_000 == 0 {
			require.NoError(b, q.Write())
		}
	}
	b.StopTimer()
	require.NoError(b, table.Close())
}

func BenchmarkRead(b *testing.B) {
	table, err := OpenTable(vfs.New(), b.TempDir(), Options{})
	require.NoError(b, err)
	q, err := table.Create(key)
	require.NoError(b, err)
	appendUnits(b, q, 0, 400_000)
	require.NoError(b, q.Write())
	buf := make([]Unit, 32)
	for _, c := range []struct {
		from string
		at   messages.QueueOffset
	}{{"memory", 399_900}, {"file", 1000}} {
		b.Run(fmt.Sprintf("units=32/from=%s", c.from), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if n, err := q.Read(c.at, buf); n != 32 || err != nil {
					b.Fatal(n, err)
				}
			}
		})
	}
	require.NoError(b, table.Close())
}

func BenchmarkLookup(b *testing.B) {
	table, err := OpenTable(memfs.New(), dir, Options{})
	require.NoError(b, err)
	for i := range 10_000 {
		_, err := table.Create(messages.QueueKey{Topic: fmt.Sprintf("topic-%d", i/8), QueueID: int32(i % 8)})
		require.NoError(b, err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if table.Lookup(messages.QueueKey{Topic: "topic-77", QueueID: 5}) == nil {
			b.Fatal("missing")
		}
	}
}
