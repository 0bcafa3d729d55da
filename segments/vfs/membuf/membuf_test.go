package membuf_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments/vfs/membuf"
)

func content(t *testing.T, b *membuf.Buffer) []byte {
	t.Helper()
	out := make([]byte, b.Size())
	n, err := b.ReadAt(out, 0)
	require.NoError(t, err)
	require.Equal(t, len(out), n)
	snap := make([]byte, b.Size())
	require.Equal(t, len(snap), b.Snapshot(snap, 0))
	require.True(t, bytes.Equal(out, snap), "Snapshot and ReadAt differ")
	return out
}

func TestReadAt(t *testing.T) {
	b := membuf.New([]byte("0123456789"))
	tests := []struct {
		off  int64
		n    int
		want string
		err  error
	}{
		{0, 10, "0123456789", nil},
		{3, 4, "3456", nil},
		{8, 4, "89", io.EOF},
		{10, 1, "", io.EOF},
		{99, 1, "", io.EOF},
		{10, 0, "", nil},
	}
	for _, tt := range tests {
		p := make([]byte, tt.n)
		n, err := b.ReadAt(p, tt.off)
		require.Equal(t, tt.err, err, "at %d", tt.off)
		require.Equal(t, tt.want, string(p[:n]), "at %d", tt.off)
	}
}

func TestResizeShowsZeros(t *testing.T) {
	b := membuf.New([]byte("abcdef"))
	b.Resize(2)
	require.Equal(t, "ab", string(content(t, b)))
	b.Resize(8)
	require.Equal(t, "ab\x00\x00\x00\x00\x00\x00", string(content(t, b)))
}

func TestHoldSharesTheContentBothWays(t *testing.T) {
	b := membuf.New(make([]byte, 4))
	m, err := b.Hold(4)
	require.NoError(t, err)
	m[1] = 'x'
	b.WriteAt([]byte("y"), 2)
	require.Equal(t, "\x00xy\x00", string(content(t, b)))
	require.Equal(t, "\x00xy\x00", string(m))
	require.Equal(t, 4, cap(m), "an append must not reach the file")
}

func TestGrowingDoesNotMoveHeldBytes(t *testing.T) {
	b := membuf.New([]byte("head"))
	m, err := b.Hold(4)
	require.NoError(t, err)
	b.WriteAt([]byte("DTAIL"), 3)
	b.WriteAt([]byte("+more"), 8)
	m[0] = 'H'
	require.Equal(t, "HeaDTAIL+more", string(content(t, b)))
	require.Equal(t, "HeaD", string(m))

	_, err = b.Hold(5)
	require.ErrorContains(t, err, "5 bytes while the first 4")
	b.Release()
	m, err = b.Hold(13)
	require.NoError(t, err)
	require.Equal(t, "HeaDTAIL+more", string(m))
}

func TestWritesBehindTheEndAreNotShownLater(t *testing.T) {
	b := membuf.New(make([]byte, 8))
	m, err := b.Hold(8)
	require.NoError(t, err)
	b.Resize(2)
	m[5] = 'x'
	b.Resize(8)
	require.Equal(t, make([]byte, 8), content(t, b))
}

func TestHoldRefuses(t *testing.T) {
	b := membuf.New([]byte("abc"))
	for _, n := range []int64{-1, 0, 4} {
		_, err := b.Hold(n)
		require.Error(t, err, "%d bytes", n)
	}
}

// TestAgainstAModel runs random operations beside a plain slice.
func TestAgainstAModel(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		b, model := membuf.New(nil), []byte{}
		var held []byte
		for range 60 {
			switch r.IntN(5) {
			case 0:
				n := r.IntN(300)
				b.Resize(int64(n))
				model = append(model, make([]byte, max(0, n-len(model)))...)[:n]
			case 1, 2:
				p := bytes.Repeat([]byte{byte(1 + r.IntN(255))}, r.IntN(80))
				off := r.IntN(200)
				b.WriteAt(p, int64(off))
				if len(p) > 0 {
					model = append(model, make([]byte, max(0, off+len(p)-len(model)))...)
					copy(model[off:], p)
				}
			case 3:
				if held != nil {
					b.Release()
					held = nil
				}
			case 4:
				if held == nil && len(model) > 0 {
					var err error
					held, err = b.Hold(int64(1 + r.IntN(len(model))))
					require.NoError(t, err)
				}
			}
			if n := min(len(held), len(model)); n > 0 {
				i, v := r.IntN(n), byte(r.IntN(256))
				held[i], model[i] = v, v
				require.True(t, bytes.Equal(model[:n], held[:n]), "seed %d: the held bytes left the content", seed)
			}
			require.True(t, bytes.Equal(model, content(t, b)), "seed %d", seed)
		}
	}
}
