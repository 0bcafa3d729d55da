package writer_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/memfs"
)

// What can't be written is not acknowledged, is not seen, and ends acknowledging for good: what the file holds is not known.
func TestAFailedWriteEndsAcknowledgingForGood(t *testing.T) {
	r := newRig(t, rigOptions{sync: true})
	require.Equal(t, messages.PutOK, r.put(r.message(0, 10)).Result.Status)
	end := r.log.End()
	r.disk.Inject(failing(memfs.KindWrite))
	g := messages.NewPutGroup()
	for range 100 { // more than one segment
		g.Add(r.message(1, 500))
	}
	all := append([]*messages.PutMessage{}, g.Puts...)
	require.NoError(t, r.port.Post(g.MailboxLink()))
	g.Lead.Wait()
	<-r.failure
	r.disk.Inject(nil)
	all = append(all, g.Lead, r.put(r.message(0, 10)))
	for i, p := range all {
		require.False(t, p.Result.Status.Stored(), "%d: %v", i, p.Result.Status)
		require.ErrorIs(t, p.Err, messages.ErrFailed)
		require.ErrorIs(t, p.Err, errDisk)
	}
	require.Equal(t, end, r.log.End())
	require.Len(t, r.records(), 1)
}

// The two ways to append take turns in one segment, and across segments.
func TestBothWaysToAppendMakeOneLog(t *testing.T) {
	var n atomic.Int32
	r := newRig(t, rigOptions{sync: true, crowded: func() bool { return n.Add(1)%3 == 0 }})
	const senders, each = 8, 60
	var wg sync.WaitGroup
	for q := range int32(senders) {
		wg.Go(func() {
			for i := range each {
				p := r.put(r.message(q, 100))
				if p.Result.Status != messages.PutOK || int(p.Result.QueueOffset) != i {
					panic(p.Result)
				}
			}
		})
	}
	wg.Wait()
	require.Len(t, r.records(), senders*each)
}

// Where there is no room to write although it was reserved, puts are refused, and all goes on once there is some: with no gap in
// the queues.
func TestWritesWithoutRoomAreRefused(t *testing.T) {
	r := newRig(t, rigOptions{sync: true})
	want := map[int32]int{}
	for round := range 3 {
		r.disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindWrite && strings.HasPrefix(op.Name, "store/prepare") {
				return vfs.ErrNoSpace
			}
			return nil
		})
		var wg sync.WaitGroup
		refused := make([]*messages.PutMessage, 8)
		for i := range refused {
			refused[i] = r.message(int32(i%2), 100)
			wg.Go(func() { r.put(refused[i]) })
		}
		g := messages.NewPutGroup()
		for i := range 60 {
			g.Add(r.message(int32(i%2), 500))
		}
		require.NoError(t, r.port.Post(g.MailboxLink()))
		g.Lead.Wait()
		wg.Wait()
		for _, p := range append(refused, append(g.Puts, g.Lead)...) {
			require.False(t, p.Result.Status.Stored(), "%v", p.Result.Status)
			require.ErrorIs(t, p.Err, messages.ErrDiskFull)
		}
		r.disk.Inject(nil)
		for i := range 10 {
			queue := int32(i % 2)
			p := r.put(r.message(queue, 300))
			require.Equal(t, messages.PutOK, p.Result.Status, "round %d: %v", round, p.Err)
			require.EqualValues(t, want[queue], p.Result.QueueOffset)
			want[queue]++
		}
	}
	require.Len(t, r.records(), 30)
}
