package pullhold

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/actormq/actormq/messages"
)

// watched counts the parked pulls by a hash of their queues, for the writer, which looks before it tells of each message. Queues may
// share a place: then a message counts as awaited that is not.
type watched [1 << 10]struct {
	pulls atomic.Int32
	warm  atomic.Int32 // how many messages more count as awaited: who has just been woken comes again
}

// warmFor is how many those are.
const warmFor = 32

var watchSeed = maphash.MakeSeed()

func place(key messages.QueueKey) int {
	return int(maphash.String(watchSeed, key.Topic)+uint64(uint32(key.QueueID))) & (len(watched{}) - 1)
}

// add counts pulls in, or out by a negative number.
func (w *watched) add(key messages.QueueKey, by int32) {
	at := &w[place(key)]
	if by < 0 {
		at.warm.Store(warmFor)
	}
	at.pulls.Add(by)
}

// Awaits tells whether a pull of the queue is parked, or has just been. Safe for any goroutine.
func (a *Actor) Awaits(key messages.QueueKey) bool {
	at := &a.seen[place(key)]
	return at.pulls.Load() > 0 || at.warm.Load() > 0 && at.warm.Add(-1) >= 0
}
