package gateway

import (
	"sync"
	"sync/atomic"
)

// gate counts a connection's requests in flight and lets its reader wait for room.
type gate struct {
	inFlight atomic.Int64
	waiting  atomic.Bool
	room     chan struct{} // one token: look again
}

func newGate() *gate { return &gate{room: make(chan struct{}, 1)} }

// poke makes a waiting reader look again.
func (g *gate) poke() {
	if g.waiting.Load() && g.waiting.Swap(false) {
		select {
		case g.room <- struct{}{}:
		default:
		}
	}
}

// await returns when open answers true, or false once closed is.
func (g *gate) await(open func() bool, closed <-chan struct{}) bool {
	for !open() {
		g.waiting.Store(true)
		if open() { // it may have opened before waiting was seen
			g.waiting.Store(false)
			return true
		}
		select {
		case <-g.room:
		case <-closed:
			return false
		}
	}
	return true
}

// budget bounds the bytes that all connections together hold in large frames. Waiters are served in their order.
type budget struct {
	mu      sync.Mutex
	free    int64
	waiters []*waiter
}

type waiter struct {
	n       int64
	granted chan struct{}
}

// take reserves n bytes, or answers false once closed is.
func (b *budget) take(n int64, closed <-chan struct{}) bool {
	b.mu.Lock()
	if len(b.waiters) == 0 && b.free >= n {
		b.free -= n
		b.mu.Unlock()
		return true
	}
	w := &waiter{n: n, granted: make(chan struct{})}
	b.waiters = append(b.waiters, w)
	b.mu.Unlock()
	select {
	case <-w.granted:
		return true
	case <-closed:
		b.leave(w)
		return false
	}
}

// leave takes a waiter out, or gives back what it was granted meanwhile.
func (b *budget) leave(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, other := range b.waiters {
		if other == w {
			b.waiters = append(b.waiters[:i], b.waiters[i+1:]...)
			b.grant()
			return
		}
	}
	b.free += w.n
	b.grant()
}

func (b *budget) give(n int64) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	b.grant()
}

func (b *budget) grant() {
	for len(b.waiters) > 0 && b.free >= b.waiters[0].n {
		w := b.waiters[0]
		b.waiters = b.waiters[1:]
		b.free -= w.n
		close(w.granted)
	}
}
