package segments_test

import (
	"bytes"
	"path"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
			s.WriteAhead(0)
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
	s.WriteAhead(0)
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

// Whoever prepares a segment may be left behind by a stop that has waited for long enough, with a disk that is slow: a store that is opened
// in the same process then writes to the same file.
func TestNothingIsZeroedOnceTheOwnerHasLeft(t *testing.T) {
	const size = 2 << 20
	disk := memfs.New()
	require.NoError(t, disk.MkdirAll("log"))
	name := path.Join("log", segments.Name(0))
	s, err := segments.Create(disk, name, 0, size)
	require.NoError(t, err)
	s.WriteAhead(0)
	slow, goOn := make(chan struct{}), make(chan struct{})
	var first sync.Once
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindWrite {
			first.Do(func() { close(slow) })
			<-goOn
		}
		return nil
	})
	require.True(t, s.Hold())
	prepared := make(chan error, 1)
	go func() { // the allocator
		defer s.Release()
		prepared <- s.Prepare(size)
	}()
	<-slow
	left := make(chan struct{})
	go func() {
		defer close(left)
		s.Retire(nil)
	}()
	select {
	case <-left:
		t.Error("the owner has left while zeros were on their way")
	case <-time.After(20 * time.Millisecond):
	}
	close(goOn)
	<-left
	again, err := segments.Open(disk, name, 0, size)
	require.NoError(t, err)
	want := bytes.Repeat([]byte{'x'}, size)
	copy(again.Data(), want)
	require.NoError(t, <-prepared)
	require.True(t, bytes.Equal(want, again.Data()), "what was written is still there")
	again.Retire(nil)
}

// Nobody is to prepare more than there is; who does so all the same comes back.
func TestNothingIsPreparedBehindTheEnd(t *testing.T) {
	s := create(t, memfs.New(), 0)
	s.WriteAhead(0)
	require.NoError(t, s.Prepare(2*s.Size()))
	require.Equal(t, s.Size(), s.Prepared())
	s.Retire(nil)
}
