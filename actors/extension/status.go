package extension

import (
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/messages"
)

// State says what an extension does.
type State string

// The states of an extension.
const (
	Running    State = "running"
	BackingOff State = "backing off" // it has failed and is tried again after a pause
	Stalled    State = "stalled"     // a call has not come back in time
	Parked     State = "parked"      // it has failed too often: nothing is tried until it is resumed
	Stopped    State = "stopped"     // it has ended by itself, or the store is closing
)

// Status is what an extension does and how far it is.
type Status struct {
	Kind, Name string
	State      State
	Handled    int64 // messages, arrivals or calls that were handled with success
	Failures   int64 // errors, panics and stalls
	Restarts   int64 // how often it was tried again
	LastError  error
	LastFailed time.Time
	LastTook   time.Duration // the last call that has come back
	CallSince  time.Time     // when the call that runs has begun; zero: none runs. Not of a hook

	// Of a dispatcher. Position: everything below is handled. LagBytes: from there to the end of what it may see. Skipped:
	// bytes that it will never see, because they were deleted or damaged before it came there.
	Position messages.PhysicalOffset
	LagBytes int64
	Skipped  int64
}

// board publishes the status of one extension: its actor writes, any goroutine reads.
type board struct {
	now atomic.Pointer[Status]
}

func newBoard(kind, name string) *board {
	b := &board{}
	b.now.Store(&Status{Kind: kind, Name: name, State: Running})
	return b
}

// change publishes a changed copy; only the extension's actor calls it.
func (b *board) change(fn func(*Status)) {
	s := *b.now.Load()
	fn(&s)
	b.now.Store(&s)
}
