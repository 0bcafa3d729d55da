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
	inFlight          atomic.Uint64 // puts above bytesBits, bytes below: one addition counts both

	refusal atomic.Pointer[error] // why nothing enters now
	refused [len(refusals)]atomic.Int64
	closed  atomic.Bool   // nothing enters any more
	drained chan struct{} // closed once nothing is in flight after close
	once    sync.Once

	// queueing, when set, tells how long the writer has not come round to a put; beyond busyAfter puts are refused.
	queueing  func() time.Duration
	busyAfter time.Duration
}

// The parts of inFlight. So many puts are far more than there is memory for, and those that are being refused count too.
const (
	bytesBits   = 44
	onePut      = 1 << bytesBits
	mostAtATime = 1 << 19
)

func newAdmission(maxPuts int, maxBytes int64) *admission {
	return &admission{
		maxPuts: int64(min(maxPuts, mostAtATime)), maxBytes: min(maxBytes, onePut/2), drained: make(chan struct{}),
	}
}

// pending is how many puts are in flight, and their bytes.
func (a *admission) pending() (puts, bytes int64) { return split(a.inFlight.Load()) }

func split(inFlight uint64) (puts, bytes int64) {
	return int64(inFlight >> bytesBits), int64(inFlight & (onePut - 1))
}

// enter counts a put of n bytes in, or says why it has to stay out. One put may always be in flight, however large.
func (a *admission) enter(n int64) error {
	puts, bytes := split(a.inFlight.Add(onePut + uint64(n)))
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
	if a.inFlight.Add(-(onePut+uint64(n))) == 0 && a.closed.Load() {
		a.once.Do(func() { close(a.drained) })
	}
}

// close refuses every later put, for good; drained tells when the last one before it has left.
func (a *admission) close() {
	a.closed.Store(true)
	a.inFlight.Add(onePut)
	a.leave(0)
}

// crowd is from how many puts in flight on a sync carries so many that writing each of them costs more than their pages do
// (docs/adr/0010).
const crowd = 128

func (s *Store) crowded() bool {
	puts, _ := s.admission.pending()
	return puts > crowd
}
