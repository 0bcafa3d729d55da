package segments_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/memfs"
)

func TestNames(t *testing.T) { // spec/store.md §17.10
	require.Equal(t, "00000000000000000000", segments.Name(0))
	require.Equal(t, "00000000001073741824", segments.Name(1<<30))
	for name, want := range map[string]int64{"00000000001073741824": 1 << 30, "09223372036854775807": 1<<63 - 1} {
		got, err := segments.ParseName(name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, name := range []string{
		"", "0", "0000000000107374182x", "000000000001073741824", "-0000000000000000001", "+0000000000000000001",
		"99999999999999999999", ".swp", "0000000000000000000.", "00000000000000000 00",
	} {
		_, err := segments.ParseName(name)
		require.ErrorIs(t, err, segments.ErrName, name)
	}
}

func create(t *testing.T, disk vfs.Disk, start int64) *segments.Segment {
	t.Helper()
	s, err := segments.Create(disk, segments.Name(start), start, 4096)
	require.NoError(t, err)
	return s
}

func TestASegmentLivesUntilItsLastReaderHasLeft(t *testing.T) {
	s := create(t, memfs.New(), 0)
	copy(s.Data(), "hello")
	s.SetWrote(5)
	require.True(t, s.Hold())
	require.True(t, s.Hold())
	gone := make(chan error, 1)
	s.Retire(func(err error) { gone <- err })
	require.Equal(t, "hello", string(s.Data()[:s.Wrote()]), "a reader may go on")
	s.Release()
	require.Empty(t, gone)
	require.True(t, s.Hold(), "while one reader is there another may come")
	s.Release()
	s.Release()
	require.NoError(t, <-gone)
	require.False(t, s.Hold(), "after the last nobody enters")
	require.Panics(t, s.Release)
}

func TestHoldAndRetireRace(t *testing.T) {
	for range 200 {
		s := create(t, memfs.New(), 0)
		s.SetWrote(1)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for s.Hold() {
					_ = s.Data()[0]
					s.Release()
				}
			})
		}
		closed := make(chan error, 1)
		s.Retire(func(err error) { closed <- err })
		wg.Wait()
		require.NoError(t, <-closed)
	}
}

func TestCreateLeavesNothingBehindWhenItFails(t *testing.T) {
	for _, kind := range []memfs.Kind{memfs.KindAllocate, memfs.KindMap} {
		disk := memfs.New()
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == kind {
				return errors.New("no")
			}
			return nil
		})
		_, err := segments.Create(disk, "x", 0, 4096)
		require.ErrorContains(t, err, "x")
		disk.Inject(nil)
		_, err = disk.Stat("x")
		require.Error(t, err)
	}
	disk := memfs.New()
	disk.SetCapacity(1000)
	_, err := segments.Create(disk, "x", 0, 4096)
	require.ErrorIs(t, err, vfs.ErrNoSpace, "a full disk is an error at preparation")
}

func TestOpenChecksTheSize(t *testing.T) {
	disk := memfs.New()
	create(t, disk, 0).Retire(nil)
	s, err := segments.Open(disk, segments.Name(0), 0, 4096)
	require.NoError(t, err)
	require.EqualValues(t, 4096, s.Wrote(), "until recovery has found the end")
	s.Retire(nil)
	_, err = segments.Open(disk, segments.Name(0), 0, 8192)
	require.ErrorIs(t, err, segments.ErrSize)
	require.ErrorContains(t, err, "4096 bytes instead of 8192")
}

func TestViewFindsItsWayAroundAGap(t *testing.T) {
	disk := memfs.New()
	var v *segments.View
	require.Nil(t, v.Find(0))
	for _, start := range []int64{4096, 8192, 16384, 20480} { // 12288 is missing
		v = v.Append(create(t, disk, start))
	}
	for off, want := range map[int64]int64{
		0: -1, 4095: -1, 4096: 4096, 8191: 4096, 8192: 8192, 12287: 8192, 12288: -1, 16383: -1, 16384: 16384, 24575: 20480,
		24576: -1, -1: -1, 1 << 62: -1,
	} {
		s := v.Find(off)
		if want < 0 {
			require.Nil(t, s, "offset %d", off)
			continue
		}
		require.NotNil(t, s, "offset %d", off)
		require.Equal(t, want, s.Start(), "offset %d", off)
	}
	require.Equal(t, 4, v.Len())
	require.Equal(t, 2, v.Slice(1, 3).Len())
}
