package fastjson

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is found eight bytes at a time is what is found one byte at a time.
func TestBytesAreFoundWhereTheyStand(t *testing.T) {
	const kinds = "\"\\ a\x00\x1f\x7f\x80\xff!#[]~\n"
	r := rand.New(rand.NewPCG(1, 2))
	for range 2_000 {
		b := make([]byte, r.IntN(40))
		for i := range b {
			if b[i] = 'x'; r.IntN(6) == 0 {
				b[i] = kinds[r.IntN(len(kinds))]
			}
		}
		s := string(b)
		for at := range len(s) + 3 {
			want := len(s)
			if at < len(s) {
				if i := strings.IndexAny(s[at:], "\"\\"); i >= 0 {
					want = at + i
				}
			}
			require.Equal(t, want, Special(s, at), "%q from %d", s, at)
		}
		for at := range len(s) + 1 {
			want := at
			for want < len(s) && plain[s[want]] {
				want++
			}
			require.Equal(t, want, unplain(s, at), "%q from %d", s, at)
		}
	}
}

func TestTextsAreAlikeWhereTheyMayDiffer(t *testing.T) {
	const kinds = "\"\\ab\x00\x01\x7f\x80\x81\xff"
	r := rand.New(rand.NewPCG(3, 4))
	same := 0
	for range 20_000 {
		n := 8 + r.IntN(20)
		a, b, mask := make([]byte, n), make([]byte, n), make([]byte, n)
		want := true
		for i := range n {
			a[i] = kinds[r.IntN(len(kinds))]
			if b[i], mask[i] = a[i], -byte(r.IntN(2)); r.IntN(n) == 0 {
				b[i] = kinds[r.IntN(len(kinds))]
			}
			ordinary := func(c byte) bool { return c != '"' && c != '\\' && c < 0x80 }
			want = want && (a[i] == b[i] || mask[i] != 0 && ordinary(a[i]) && ordinary(b[i]))
		}
		if want {
			same++
		}
		require.Equal(t, want, Alike(string(a), string(b), mask), "%q %q %x", a, b, mask)
	}
	require.Greater(t, same, 200)
	free := []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")
	require.True(t, Alike("as long as", "as wide as", free))
	require.False(t, Alike("as long as", "as long", free))
	require.False(t, Alike("too long for it", "too long for it", free))
	require.False(t, Alike("short", "short", free[:5]))
}
