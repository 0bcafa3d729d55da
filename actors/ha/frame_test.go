package ha

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stream is a segment of records with bodies of the given sizes, and where each begins; blank says whether one closes it.
func stream(t testing.TB, blank int, bodies ...int) (b []byte, starts []int) {
	for _, n := range bodies {
		at := len(b)
		starts = append(starts, at)
		var err error
		b, err = record.Append(b, &messages.Message{Topic: "T", Body: make([]byte, n)})
		require.NoError(t, err)
		record.SetPlace(b[at:], 0, messages.PhysicalOffset(at), 1)
	}
	if blank > 0 {
		starts = append(starts, len(b))
		b = record.AppendBlank(b, int32(blank))
		b = append(b, make([]byte, blank-record.BlankBytes)...)
	}
	return b, starts
}

func TestFramesEndBetweenRecords(t *testing.T) {
	b, starts := stream(t, 5000, 100, 200, 40_000, 10, 20, 3<<20, 5, 900)
	boundary := map[int]bool{len(b): true}
	for _, at := range starts {
		boundary[at] = true
	}
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		c := cutter{limit: 1 + rnd.IntN(wholeBytes)}
		for at := 0; at < len(b); {
			// Now and then only the beginning is at hand, with room for a whole frame.
			have := b[at:]
			if rnd.IntN(2) == 0 {
				have = have[:min(len(have), wholeBytes+rnd.IntN(wholeBytes))]
			}
			n := c.frame(have, len(b)-at)
			require.Positive(t, n)
			require.LessOrEqual(t, n, max(c.limit, wholeBytes))
			at += n
			require.Equal(t, !boundary[at], c.inside > 0, "at %d", at)
		}
		require.Zero(t, c.inside)
	}
}

func TestAReportIsFoundWhereAFrameMayEnd(t *testing.T) {
	b, starts := stream(t, 2<<20, 100, 40_000, 3<<20, 5)
	boundary := map[int]bool{}
	for _, at := range starts {
		boundary[at] = true
		inside, err := locate(b, at, messages.PhysicalOffset(at))
		require.NoError(t, err)
		require.Zero(t, inside)
	}
	for _, at := range []int{1000, starts[1] - 1, starts[3] + 3} {
		_, err := locate(b, at, messages.PhysicalOffset(at))
		require.ErrorIs(t, err, ErrReport, "in the middle of a record that is sent in one frame")
	}
	for _, c := range []struct{ piece, end int }{{starts[2], starts[3]}, {starts[4], len(b)}} {
		at := c.piece + 70_000
		inside, err := locate(b, at, messages.PhysicalOffset(at))
		require.NoError(t, err, "larger than a frame")
		require.Equal(t, c.end-at, inside)
	}
	inside, err := locate(b, fullCopy, fullCopy)
	require.NoError(t, err)
	require.Equal(t, starts[1]-1, inside)
}

func FuzzFrames(f *testing.F) {
	good, _ := stream(f, 600, 10, 500)
	f.Add(good, uint16(64), uint32(300))
	f.Add([]byte("\x00\x00\x00\x09\xbb\xcc\xdd\xee\xff"), uint16(0), uint32(1))
	f.Fuzz(func(t *testing.T, b []byte, limit uint16, to uint32) {
		c := cutter{limit: 1 + int(limit)}
		for at := 0; at < len(b); {
			n := c.frame(b[at:], len(b)-at)
			require.Positive(t, n)
			at += n
			require.LessOrEqual(t, at, len(b))
		}
		if int(to) < len(b) {
			inside, err := locate(b, int(to), messages.PhysicalOffset(to))
			if err == nil {
				require.LessOrEqual(t, inside, len(b)-int(to))
			}
		}
		if len(b) >= headerBytes {
			if at, n, err := parseHeader(b); err == nil {
				back := make([]byte, headerBytes)
				putHeader(back, at, n)
				require.Equal(t, b[:headerBytes], back)
			} else {
				require.True(t, int64(binary.BigEndian.Uint64(b)) < 0 || int32(binary.BigEndian.Uint32(b[8:])) < 0 ||
					binary.BigEndian.Uint32(b[8:]) > maxFrameBytes)
			}
		}
	})
}
