package segments_test

import (
	"bytes"
	"path"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/memfs"
)

// The owner writes right up to what is prepared while others prepare what follows: nothing that he has written is zeroed.
func TestPreparingAheadLeavesWhatIsWritten(t *testing.T) {
	for name, disk := range map[string]vfs.Disk{"machine": vfs.New(), "simulated": memfs.New()} {
		t.Run(name, func(t *testing.T) {
			const size, record = 4<<20 + 4096, 4000
			dir := t.TempDir()
			require.NoError(t, disk.MkdirAll(dir))
			s, err := segments.Create(disk, path.Join(dir, segments.Name(0)), 0, size)
			require.NoError(t, err)
			require.EqualValues(t, size, s.Prepared())
			s.WriteAhead()
			require.Zero(t, s.Prepared())
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() {
					for to := int64(1); to < size; to += 50_000 {
						if err := s.Prepare(to); err != nil {
							panic(err)
						}
					}
				})
			}
			data := s.Data()
			for pos := int64(0); pos < size; pos += record {
				n := min(record, size-pos)
				require.NoError(t, s.Prepare(pos+n))
				copy(data[pos:], bytes.Repeat([]byte{byte(pos/record) | 1}, int(n)))
			}
			wg.Wait()
			require.EqualValues(t, size, s.Prepared())
			for pos := range int64(size) {
				if data[pos] != byte(pos/record)|1 {
					t.Fatalf("byte %d is %d", pos, data[pos])
				}
			}
			s.Retire(func(err error) { require.NoError(t, err) })
		})
	}
}

// Who can't prepare does not try it again for each record: the map is written without.
func TestASegmentThatCannotBePreparedIsWrittenWithout(t *testing.T) {
	disk := memfs.New()
	s := create(t, disk, 0)
	s.WriteAhead()
	var tries atomic.Int32
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindWrite {
			tries.Add(1)
			return vfs.ErrNoSpace
		}
		return nil
	})
	require.ErrorIs(t, s.Prepare(1), vfs.ErrNoSpace)
	require.NoError(t, s.Prepare(s.Size()))
	require.EqualValues(t, 1, tries.Load())
	require.Equal(t, s.Size(), s.Prepared())
	copy(s.Data()[4000:], "x")
	s.Retire(nil)
}
