package index

import (
	"path"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
)

func TestPutDoesNotAllocate(t *testing.T) {
	s, err := Open(vfs.New(), path.Join(t.TempDir(), "index"), params(1000, 100_000))
	require.NoError(t, err)
	r := record(1)
	r.Keys, r.UniqKey = []byte("one two"), []byte("0A010203000018B4AAC206E2D6190000")
	require.NoError(t, s.BuildFrom(&r))
	require.Zero(t, testing.AllocsPerRun(1000, func() { _ = s.BuildFrom(&r) }))
	require.NoError(t, s.Close())
}

func BenchmarkPut(b *testing.B) {
	s, err := Open(vfs.New(), path.Join(b.TempDir(), "index"), params(5_000_000, 20_000_000))
	require.NoError(b, err)
	key := []byte("0A010203000018B4AAC206E2D6190000")
	require.NoError(b, s.Put("TopicTest", key, 0, start))
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		copy(key, strconv.AppendInt(key[:0], int64(i)*7919, 16))
		if err := s.Put("TopicTest", key, messages.PhysicalOffset(i), start+int64(i/1000)); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	require.NoError(b, s.releaseAll())
}

func BenchmarkQuery(b *testing.B) {
	s, err := Open(vfs.New(), path.Join(b.TempDir(), "index"), params(500_000, 2_000_000))
	require.NoError(b, err)
	for i := range 1_000_000 {
		require.NoError(b, s.Put("TopicTest", strconv.AppendInt(nil, int64(i), 10), messages.PhysicalOffset(i), start+int64(i/1000)))
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		found, err := s.Query("TopicTest", strconv.Itoa(i*7919%1_000_000), 32, 0, ever)
		if err != nil || len(found) == 0 {
			b.Fatal(found, err)
		}
		i++
	}
	b.StopTimer()
	require.NoError(b, s.releaseAll())
}
