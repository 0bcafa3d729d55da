package mailbox_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/mailbox"
)

// L107: the memory of what was queued in a burst is given back.
func TestL107ADrainedMailboxKeepsNothing(t *testing.T) {
	c := &clerk{}
	mb, _ := spawn(t, c, mailbox.Options{Limit: 1 << 20})
	heap := func() int64 {
		for range 3 {
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	held, begun := make(chan struct{}), make(chan struct{})
	c.onNote = func(n *note, _ *mailbox.Batch) {
		if n.n == 0 {
			close(begun)
			<-held
		}
		c.seen = nil
	}
	before := heap()
	first := newNote(0, 0)
	require.NoError(t, mb.Post(first.MailboxLink()))
	<-begun
	const burst = 200_000
	var last *note
	for n := range burst {
		last = newNote(0, n+1)
		require.NoError(t, mb.Post(last.MailboxLink()))
	}
	require.Greater(t, heap()-before, int64(burst*32), "they are queued")
	close(held)
	<-last.done
	require.Less(t, heap()-before, int64(1<<20))
}
