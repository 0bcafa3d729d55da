package writer_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/testkit/memfs"
)

// However late the allocator is: no byte of a new segment is written through the map before its page was prepared.
func TestAWriterThatOvertakesTheAllocatorPreparesItsPages(t *testing.T) {
	disk := memfs.New()
	late := make(chan struct{})
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindPopulate && strings.HasPrefix(op.Name, "store/commitlog") { // any window but what is made at once
			<-late
		}
		return nil
	})
	r := newRig(t, rigOptions{disk: disk, window: 4096, segment: 1 << 20})
	const puts = 1500 // more than one segment
	for i := range puts {
		p := r.put(r.message(0, 1000))
		require.Equal(t, messages.PutOK, p.Result.Status)
		require.EqualValues(t, i, p.Result.QueueOffset)
		last := r.log.View().Last()
		require.LessOrEqual(t, last.Wrote(), last.Prepared())
	}
	close(late)
	require.Len(t, r.records(), puts)
}

// Pages that can't be prepared cost speed, no put.
func TestPutsGoOnWhenNoPageCanBePrepared(t *testing.T) {
	r := newRig(t, rigOptions{window: 4096})
	require.Equal(t, messages.PutOK, r.put(r.message(0, 10)).Result.Status)
	r.disk.Inject(failing(memfs.KindWrite))
	for range 10 {
		require.Equal(t, messages.PutOK, r.put(r.message(0, 1000)).Result.Status)
	}
	r.disk.Inject(nil)
	require.Len(t, r.records(), 11)
}
