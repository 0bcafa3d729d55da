package system

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/testkit/memfs"
)

// TestTakingManyIsLookingAtEach: what take does with many units is what look decides for each, which a filter that all messages pass leaves
// everything to: across segments, at every limit, near the log's end and far from it, and with units and records that lie.
func TestTakingManyIsLookingAtEach(t *testing.T) {
	s, err := Open(Options{
		Dir: "store", Disk: memfs.New(), SegmentBytes: 8 << 10, ConsumeQueueFileBytes: 2000, NoIndex: true, WindowBytes: 4 << 10,
		MaxTransferMessages: 100, DiskTransferMessages: 7, DiskTransferBytes: 1500,
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close(t.Context())) }()
	rnd := rand.New(rand.NewPCG(1, 2))
	m := &messages.Message{Topic: "T"}
	for range 300 {
		m.Body = []byte(strings.Repeat("x", rnd.IntN(400)))
		_, err := s.Put(t.Context(), m)
		require.NoError(t, err)
	}
	require.NoError(t, s.AwaitDispatched(t.Context()))
	all := func(int64) bool { return true }
	for i := range 3000 {
		s.memoryBytes = []int64{1 << 40, 20_000, 0}[i%3]
		if i >= 1500 && i%50 == 0 {
			damageHead(t, s, rnd)
		}
		ask := messages.GetMessage{
			Queue: m.Queue(), Offset: messages.QueueOffset(rnd.Int64N(300)), MaxMessages: 1 + rnd.IntN(60), MaxBytes: rnd.IntN(2) * rnd.IntN(9000),
			WillRead: i%2 == 0,
		}
		for range 3 { // and go on
			one, err := s.Get(t.Context(), ask)
			require.NoError(t, err)
			asEach := ask
			asEach.Tags = all
			other, err := s.Get(t.Context(), asEach)
			require.NoError(t, err)
			one.OnRelease, other.OnRelease = nil, nil
			requireSameResult(t, other, one)
			ask.Offset = one.NextOffset
			one.Release()
			other.Release()
		}
	}
}

func requireSameResult(t *testing.T, want, got *messages.GetResult) {
	t.Helper()
	require.Equal(t, len(want.Records), len(got.Records))
	for i := range want.Records {
		require.Same(t, &want.Records[i][0], &got.Records[i][0])
		require.Equal(t, len(want.Records[i]), len(got.Records[i]))
		require.Equal(t, len(got.Records[i]), cap(got.Records[i]))
	}
	figures := func(r *messages.GetResult) []any {
		oldest := r.Oldest
		if len(r.Records) == 0 {
			oldest = 0 // of no meaning
		}
		return []any{r.Status, r.NextOffset, r.MinOffset, r.MaxOffset, r.Bytes, r.Behind, oldest}
	}
	require.Equal(t, figures(want), figures(got))
}

// damageHead changes a byte of the head of a record.
func damageHead(t *testing.T, s *Store, rnd *rand.Rand) {
	u, ok := s.unit(messages.QueueKey{Topic: "T"}, messages.QueueOffset(rnd.Int64N(300)))
	require.True(t, ok)
	r, err := s.log.ReadFrom(u.PhysicalOffset)
	require.NoError(t, err)
	defer r.Release()
	r.Bytes[rnd.IntN(36)] ^= 1 << rnd.IntN(8)
}
