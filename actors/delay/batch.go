package delay

import (
	"sync/atomic"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
)

// entry is one message of a level on its way.
type entry struct {
	at    messages.QueueOffset // in the level's queue
	unit  consumequeue.Unit
	tries int // reads or puts of it that failed in a way that may pass

	gone bool // delivered, or left out: nothing more is to be done
	end  messages.PhysicalOffset
}

// batch is what a level has in flight: entries in order, each put at most once. The level does not touch the answers before
// the batch is settled.
type batch struct {
	level   *level
	entries []*entry
	answers []answer
	open    atomic.Int64 // answers to come, and one for the level while it is issuing
}

// answer is what became of one put. Whoever answers first counts.
type answer struct {
	batch   *batch
	claimed atomic.Bool
	ready   atomic.Bool
	issued  bool // the level's: it was put
	result  messages.PutResult
	err     error
}

func newBatch(l *level, entries []*entry) *batch {
	b := &batch{level: l, entries: entries, answers: make([]answer, len(entries))}
	for i := range b.answers {
		b.answers[i].batch = b
	}
	b.open.Store(1)
	return b
}

// done is the put's callback; any goroutine.
func (a *answer) done(result messages.PutResult, err error) {
	if a.claimed.Swap(true) {
		return
	}
	a.result, a.err = result, err
	a.ready.Store(true)
	a.batch.release()
}

// refused tells whether the put has been refused already.
func (a *answer) refused() bool { return a.ready.Load() && !a.result.Status.Stored() }

// release counts one answer, or the end of issuing; the last one tells the level.
func (b *batch) release() {
	if b.open.Add(-1) == 0 {
		b.level.self.Send(settled{batch: b})
	}
}
