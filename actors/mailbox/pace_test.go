package mailbox_test

import (
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/mailbox"
)

// toil takes a microsecond for each note, and notes whose they were. The note with the number 0 waits until it is let go.
type toil struct {
	began, letGo chan struct{}
	senders      []int
}

func (w *toil) ReceiveBatch(b *mailbox.Batch) {
	for m := b.Next(); m != nil; m = b.Next() {
		w.ReceiveSingle(m)
	}
}

func (w *toil) ReceiveSingle(message any) (taken, owed bool) {
	n := message.(interface{ self() *note }).self()
	if n.n == 0 {
		close(w.began)
		<-w.letGo
	}
	for began := time.Now(); time.Since(began) < time.Microsecond; {
	}
	w.senders = append(w.senders, n.sender)
	n.answer(nil)
	return true, false
}

func (w *toil) Settle(any) {}

func (m *note) self() *note { return m }

// parking tells when its sender parks for the first time.
type parking struct {
	*note
	parked chan struct{}
	once   sync.Once
}

func (p *parking) Park() (complete bool) {
	p.once.Do(func() { close(p.parked) })
	return p.note.Park()
}

// On one processor a sender that never waits would go on for the 10 ms after which the runtime takes it away. Once two have met, they take
// turns.
func TestSendersThatHaveMetTakeTurns(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a sender that has to help the collector may wait for it for long
	w := &toil{began: make(chan struct{}), letGo: make(chan struct{})}
	mb := mailbox.New(mailbox.Options{InlineBatches: 8, Receiver: w})
	mb.Start()
	deliver(mb, newNote(0, 1))

	const each, least = 32_000, 4 // 7, but the runtime lets one of 61 go on
	var wg sync.WaitGroup
	goOn := func(sender int) {
		for n := range each {
			deliver(mb, newNote(sender, n+2))
		}
	}
	wg.Go(func() {
		deliver(mb, newNote(0, 0))
		goOn(0)
	})
	<-w.began
	late := &parking{note: newNote(1, 1), parked: make(chan struct{})}
	late.link.Bind(late)
	wg.Go(func() {
		if err := mb.PostWaiting(late); err != nil {
			panic(err)
		}
		goOn(1)
	})
	<-late.parked
	close(w.letGo)
	wg.Wait()

	require.Len(t, w.senders, 2*each+3)
	turns := 0
	for i, sender := range w.senders[1:each] { // behind that one of them may be alone
		if sender != w.senders[i] {
			turns++
		}
	}
	require.GreaterOrEqual(t, turns, least, "changes of sender in %d messages", each)
}
