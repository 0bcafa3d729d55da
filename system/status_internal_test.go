package system

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/memfs"
)

// TestAQueueThatIsCutWhileItIsReadIsOffsetFoundNull cuts it in the middle of the read.
func TestAQueueThatIsCutWhileItIsReadIsOffsetFoundNull(t *testing.T) {
	disk := memfs.New()
	opt := Options{Dir: "store", Disk: disk, SegmentBytes: 32 << 10, ConsumeQueueFileBytes: 100, IndexSlots: 50, IndexEntries: 200}
	s, err := Open(opt)
	require.NoError(t, err)
	for range 12 {
		_, err = s.Put(t.Context(), &messages.Message{Topic: "T", Body: []byte("x")})
		require.NoError(t, err)
	}
	require.NoError(t, s.Close(t.Context()))
	s, err = Open(opt)
	require.NoError(t, err)
	key := messages.QueueKey{Topic: "T"}
	var cut atomic.Bool
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindRead && strings.Contains(op.Name, "consumequeue") {
			if !cut.Swap(true) {
				require.NoError(t, s.queues.Lookup(key).Truncate(11))
			}
		}
		return nil
	})
	r, err := s.Get(t.Context(), messages.GetMessage{Queue: key, Offset: 1, MaxMessages: 1})
	require.NoError(t, err)
	require.Equal(t, messages.OffsetFoundNull, r.Status)
	require.EqualValues(t, 1, r.NextOffset)
	r.Release()
	disk.Inject(nil)
	require.NoError(t, s.Close(t.Context()))
}

// TestAGetFarBehindTheEndKeepsTheLimitsOfTheDisk: what is near the end is a part of the machine's memory.
func TestAGetFarBehindTheEndKeepsTheLimitsOfTheDisk(t *testing.T) {
	for name, c := range map[string]struct {
		messages, bytes, want int
	}{"maxTransferCountOnMessageInDisk": {2, 1 << 20, 2}, "maxTransferBytesOnMessageInDisk": {30, 3500, 3}} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(Options{
				Dir: "store", Disk: memfs.New(), SegmentBytes: 64 << 10, ConsumeQueueFileBytes: 2000, IndexSlots: 50, IndexEntries: 200,
				MemoryRatioPercent: 7, DiskTransferMessages: c.messages, DiskTransferBytes: c.bytes,
			})
			require.NoError(t, err)
			require.Equal(t, vfs.PhysicalMemory()/100*7, s.memoryBytes)
			s.memoryBytes = 0
			for range 20 {
				_, err = s.Put(t.Context(), &messages.Message{Topic: "T", Body: make([]byte, 1000)})
				require.NoError(t, err)
			}
			require.NoError(t, s.AwaitDispatched(t.Context()))
			r, err := s.Get(t.Context(), messages.GetMessage{Queue: messages.QueueKey{Topic: "T"}, MaxMessages: 32})
			require.NoError(t, err)
			require.Len(t, r.Records, c.want)
			require.Equal(t, int64(s.log.End()), r.Oldest)
			require.Less(t, r.Behind, r.Oldest)
			r.Release()
			require.NoError(t, s.Close(t.Context()))
		})
	}
}
