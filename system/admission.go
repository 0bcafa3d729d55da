package system

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// admission bounds the puts in flight: count and bytes. It is the edge that bounds the writer's and the flusher's queues.
type admission struct {
	maxPuts, maxBytes int64
	puts, bytes       atomic.Int64

	refusal atomic.Pointer[error] // why nothing enters now
	refused [len(refusals)]atomic.Int64
	closed  atomic.Bool   // nothing enters any more
	drained chan struct{} // closed once nothing is in flight after close
	once    sync.Once

	// queueing, when set, tells how long the writer has not come round to a put; beyond busyAfter puts are refused.
	queueing  func() time.Duration
	busyAfter time.Duration
}

func newAdmission(maxPuts int, maxBytes int64) *admission {
	return &admission{maxPuts: int64(maxPuts), maxBytes: maxBytes, drained: make(chan struct{})}
}

// enter counts a put of n bytes in, or says why it has to stay out. One put may always be in flight, however large.
func (a *admission) enter(n int64) error {
	puts, bytes := a.puts.Add(1), a.bytes.Add(n)
	if cause := a.refusal.Load(); cause != nil {
		return a.refuse(n, *cause)
	}
	if puts > a.maxPuts || bytes > a.maxBytes && puts > 1 {
		return a.refuse(n, fmt.Errorf("%d puts and %d bytes, limits %d and %d: %w", puts, bytes, a.maxPuts, a.maxBytes, ErrTooManyPuts))
	}
	if puts > 1 && a.queueing != nil {
		if waits := a.queueing(); waits > a.busyAfter {
			return a.refuse(n, fmt.Errorf("puts have been waiting for %v, limit %v: %w", waits, a.busyAfter, ErrWriterBusy))
		}
	}
	return nil
}

// refuse takes a put of n bytes out again and counts why.
func (a *admission) refuse(n int64, cause error) error {
	a.leave(n)
	a.refused[slices.Index(refusals[:], refusalOf(cause))].Add(1)
	return cause
}

func (a *admission) leave(n int64) {
	a.bytes.Add(-n)
	if a.puts.Add(-1) == 0 && a.closed.Load() {
		a.once.Do(func() { close(a.drained) })
	}
}

// close refuses every later put, for good; drained tells when the last one before it has left.
func (a *admission) close() {
	a.closed.Store(true)
	a.puts.Add(1)
	a.leave(0)
}
