package gateway

import (
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// A buffer that was made wider for a burst goes back when nothing has needed it for a while; what was read is there either way.
func TestAWideBufferGoesBack(t *testing.T) {
	near, far := socketPair(t)
	shared := &shared{opt: Options{MaxInFlight: 1, MaxSlowEach: 1, Logger: zerolog.Nop()}}
	c := newConn(1, near, 0, shared)
	now := time.Unix(1_700_000_000, 0)
	arrive := func(after time.Duration, bytes int) { // a request of so many bytes
		t.Helper()
		wrote := make(chan error, 1)
		go func() {
			_, err := far.Write(make([]byte, bytes))
			wrote <- err
		}()
		for got := 0; got < bytes; {
			n := min(bytes-got, c.in.Size())
			_, err := c.in.Peek(n)
			require.NoError(t, err)
			_, err = c.in.Discard(n)
			require.NoError(t, err)
			got += n
		}
		require.NoError(t, <-wrote)
		now = now.Add(after)
		c.arrival.at = now
		c.fit()
	}
	sizes := func() []int64 { return []int64{int64(c.in.Size()), shared.wide[0].Load(), shared.wide[1].Load()} }

	arrive(0, readBufferBytes)
	require.Equal(t, []int64{64 << 10, 1, 0}, sizes())
	arrive(time.Hour, 64<<10)
	require.Equal(t, []int64{256 << 10, 0, 1}, sizes())
	for range 3 {
		arrive(wideFor/2, 10)
		c.paced.most = 64 << 10 // as much was there at once
		arrive(wideFor/2, 10)
		require.Equal(t, []int64{256 << 10, 0, 1}, sizes(), "it is of use")
	}
	arrive(wideFor-1, 10)
	require.Equal(t, []int64{256 << 10, 0, 1}, sizes())
	arrive(1, 10)
	require.Equal(t, []int64{16 << 10, 0, 0}, sizes())
	arrive(0, readBufferBytes)
	require.Equal(t, []int64{64 << 10, 1, 0}, sizes(), "and comes again")
	arrive(wideFor, 10)
	require.Equal(t, []int64{16 << 10, 0, 0}, sizes())
	c.narrow()
	require.Equal(t, []int64{16 << 10, 0, 0}, sizes())
}
