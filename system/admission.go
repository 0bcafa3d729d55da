package system

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// admission bounds the puts in flight: count and bytes. It is the edge that bounds the writer's and the flusher's queues.
type admission struct {
	maxPuts, maxBytes int64
	puts, bytes       atomic.Int64

	closed  atomic.Pointer[error] // why nothing more enters
	full    atomic.Pointer[error] // why nothing enters now: the disk is full
	drained chan struct{}         // closed once nothing is in flight after close
	once    sync.Once
}

func newAdmission(maxPuts int, maxBytes int64) *admission {
	return &admission{maxPuts: int64(maxPuts), maxBytes: maxBytes, drained: make(chan struct{})}
}

// enter counts a put of n bytes in, or says why it has to stay out. One put may always be in flight, however large.
func (a *admission) enter(n int64) error {
	puts, bytes := a.puts.Add(1), a.bytes.Add(n)
	if cause := a.closed.Load(); cause != nil {
		a.leave(n)
		return *cause
	}
	if cause := a.full.Load(); cause != nil {
		a.leave(n)
		return *cause
	}
	if puts > a.maxPuts || bytes > a.maxBytes && puts > 1 {
		a.leave(n)
		return fmt.Errorf("%d puts and %d bytes, limits %d and %d: %w", puts, bytes, a.maxPuts, a.maxBytes, ErrTooManyPuts)
	}
	return nil
}

func (a *admission) leave(n int64) {
	a.bytes.Add(-n)
	if a.puts.Add(-1) == 0 && a.closed.Load() != nil {
		a.once.Do(func() { close(a.drained) })
	}
}

// close refuses every later put; the first cause counts. Drained tells when the last one before it has left.
func (a *admission) close(cause error) {
	a.closed.CompareAndSwap(nil, &cause)
	a.puts.Add(1)
	a.leave(0)
}

// setFull refuses puts while the disk is full; nil takes them again.
func (a *admission) setFull(cause error) {
	if cause == nil {
		a.full.Store(nil)
		return
	}
	a.full.Store(&cause)
}

// cause says why nothing enters, nil while the door is open.
func (a *admission) cause() error {
	if c := a.closed.Load(); c != nil {
		return *c
	}
	if c := a.full.Load(); c != nil {
		return *c
	}
	return nil
}
