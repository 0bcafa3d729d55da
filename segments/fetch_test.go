package segments_test

import (
	"math"
	"os"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
)

// TestFetchIsHarmless: nothing at all, places in front of and behind what is there, pages that the file has lost, and memory that is gone.
func TestFetchIsHarmless(t *testing.T) {
	segments.Fetch(nil)
	pages := 4 * int64(os.Getpagesize())
	f, err := vfs.New().Create(path.Join(t.TempDir(), "00000000000000000000"))
	require.NoError(t, err)
	require.NoError(t, f.Allocate(0, pages))
	require.NoError(t, f.Close())
	s, err := segments.Open(vfs.New(), f.Name(), 0, pages)
	require.NoError(t, err)
	b := s.Data()
	fetch := func() {
		for _, off := range []int64{math.MinInt64, -1, 0, 63, pages - 1, pages, math.MaxInt64} {
			for _, n := range []int64{0, 1, 65, pages, 2 * pages, math.MaxInt64} {
				s.Fetch(off, n)
			}
		}
		segments.Fetch(b)
	}
	fetch()
	require.NoError(t, os.Truncate(f.Name(), 1))
	fetch()
	s.Retire(func(err error) { require.NoError(t, err) })
	fetch()
}
