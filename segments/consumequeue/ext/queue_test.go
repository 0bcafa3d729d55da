package ext_test

import (
	"encoding/hex"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/consumequeue/ext"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

const dir = "store/consumequeue_ext/T/0"

func at(off int64) int64 { return off + math.MinInt64 }

// TestVector reads what RocketMQ has written (spec/store.md §17.9), with its bitmaps, and goes on behind it.
func TestVector(t *testing.T) {
	disk := memfs.New()
	unit, err := hex.DecodeString("001c000000000027a8070000018bcfe5687b00080102030405060708")
	require.NoError(t, err)
	file := make([]byte, 64)
	copy(file, unit)
	copy(file[28:], unit)
	copy(file[56:], []byte{0xff, 0xff})
	fixture.WriteFile(t, disk, dir+"/"+segments.Name(0), file)
	second := make([]byte, 64)
	copy(second, unit)
	fixture.WriteFile(t, disk, dir+"/"+segments.Name(64), second)
	q := ext.New(disk, dir, 64, true)
	for _, address := range []int64{-0x8000000000000000, at(0x1c), at(0x40)} {
		require.True(t, ext.IsAddress(address))
		code, ok := q.TagsCode(address)
		require.True(t, ok)
		require.EqualValues(t, 2598919, code)
	}
	_, ok := q.TagsCode(at(0x5c))
	require.False(t, ok, "nothing is there yet")
	address, ok := q.Append(ext.Unit{TagsCode: 7, StoreTimestampMs: 8})
	require.True(t, ok)
	require.Equal(t, at(0x5c), address)
	code, ok := q.TagsCode(address)
	require.True(t, ok, "in memory")
	require.EqualValues(t, 7, code)
	require.NoError(t, q.Write())
	code, ok = q.TagsCode(address)
	require.True(t, ok, "in the file")
	require.EqualValues(t, 7, code)
	require.Equal(t, "0014"+"0000000000000007"+"0000000000000008"+"0000", hex.EncodeToString(fixture.ReadFile(t, disk, dir+"/"+segments.Name(64))[28:48]))
}

func TestUnitsRollAndComeBack(t *testing.T) {
	disk := memfs.New()
	q := ext.New(disk, dir, 64, true)
	var addresses []int64
	add := func(n int64) {
		address, ok := q.Append(ext.Unit{TagsCode: n})
		require.True(t, ok)
		addresses = append(addresses, address)
	}
	check := func() {
		t.Helper()
		for i, a := range addresses {
			code, ok := q.TagsCode(a)
			require.True(t, ok)
			require.EqualValues(t, i, code)
		}
	}
	for n := range int64(7) {
		add(n)
	}
	require.Equal(t, []int64{at(0), at(20), at(40), at(64), at(84), at(104), at(128)}, addresses)
	check()
	require.NoError(t, q.Write())
	require.NoError(t, q.Sync())
	check()
	first := fixture.ReadFile(t, disk, dir+"/"+segments.Name(0))
	require.Equal(t, []byte{0xff, 0xff, 0, 0}, first[60:], "the mark that the file is full")

	q = ext.New(disk.Crash(3), dir, 64, true)
	add(7)
	require.Equal(t, at(148), addresses[7], "it goes on where it was")
	check()
	q = ext.New(disk, dir, 64, false)
	addresses = addresses[:7]
	add(7)
	require.Equal(t, at(192), addresses[7], "not after a kill: who knows what the queue names there")
	check()
	require.NoError(t, q.Write())
	require.NoError(t, q.DeleteBelow(at(130)))
	_, ok := q.TagsCode(at(64))
	require.False(t, ok)
	_, ok = q.TagsCode(at(128))
	require.True(t, ok)
	require.NoError(t, q.Destroy())
	_, ok = q.TagsCode(at(128))
	require.False(t, ok)
	addresses = nil
	add(0)
	require.Equal(t, at(0), addresses[0])
}

// TestFilesOfAnotherSizeAreLeftAlone: nothing is added to them.
func TestFilesOfAnotherSizeAreLeftAlone(t *testing.T) {
	disk := memfs.New()
	fixture.WriteFile(t, disk, dir+"/"+segments.Name(0), make([]byte, 128))
	q := ext.New(disk, dir, 64, true)
	_, ok := q.Append(ext.Unit{})
	require.False(t, ok)
}

func TestAWriteThatFailsLosesNothing(t *testing.T) {
	for _, kind := range []memfs.Kind{memfs.KindCreate, memfs.KindTruncate, memfs.KindRename, memfs.KindWrite, memfs.KindClose} {
		disk := memfs.New()
		q := ext.New(disk, dir, 64, true)
		for n := range int64(4) {
			q.Append(ext.Unit{TagsCode: n})
		}
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == kind {
				return segments.ErrGone
			}
			return nil
		})
		require.ErrorIs(t, q.Write(), segments.ErrGone, "%v", kind)
		disk.Inject(nil)
		require.NoError(t, q.Write())
		require.NoError(t, q.Sync())
		q = ext.New(disk.Crash(1), dir, 64, true)
		for n, a := range []int64{at(0), at(20), at(40), at(64)} {
			code, ok := q.TagsCode(a)
			require.True(t, ok, "%v", kind)
			require.EqualValues(t, n, code)
		}
	}
}

// FuzzFiles: whatever is in the files, it is read or not.
func FuzzFiles(f *testing.F) {
	f.Add([]byte{0, 28, 0, 0, 0, 0, 0, 39, 168, 7, 0, 0, 1, 139, 207, 229, 104, 123, 0, 8}, int64(0))
	f.Add([]byte{255, 255}, int64(20))
	f.Fuzz(func(t *testing.T, content []byte, address int64) {
		disk := memfs.New()
		file := make([]byte, 256)
		copy(file, content)
		fixture.WriteFile(t, disk, dir+"/"+segments.Name(0), file)
		q := ext.New(disk, dir, 256, true)
		q.TagsCode(address)
		if address >= 0 {
			q.TagsCode(at(address % 300))
		}
		a, ok := q.Append(ext.Unit{TagsCode: 9})
		require.True(t, ok)
		require.NoError(t, q.Write())
		code, ok := q.TagsCode(a)
		require.True(t, ok)
		require.EqualValues(t, 9, code)
	})
}

// TestGoingOnReadsNoMoreThanIsUsed: a file is large, and there is one for each queue.
func TestGoingOnReadsNoMoreThanIsUsed(t *testing.T) {
	const fileBytes = 4 << 20
	disk := memfs.New()
	q := ext.New(disk, dir, fileBytes, true)
	require.True(t, q.Empty())
	for range 10_000 {
		_, ok := q.Append(ext.Unit{})
		require.True(t, ok)
	}
	require.NoError(t, q.Write())
	require.False(t, q.Empty())
	var read int64
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindRead {
			read += op.N
		}
		return nil
	})
	address, ok := ext.New(disk, dir, fileBytes, true).Append(ext.Unit{})
	require.True(t, ok)
	require.Equal(t, at(200_000), address)
	require.Less(t, read, int64(300_000))
}
