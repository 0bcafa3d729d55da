package remote

import (
	"context"
	"sync"
)

// gate counts what came from one peer and is not handled yet. Its streams, an old one that ends and a new one, share it.
type gate struct {
	streams int // guarded by the guard

	mu              sync.Mutex
	messages, bytes int
	free            chan struct{} // not nil: somebody waits; closed when there is room
}

// wait returns when there is room. A peer that has not introduced itself has no gate.
func (g *gate) wait(ctx context.Context) error {
	for g != nil {
		g.mu.Lock()
		if g.messages < MaxUnhandled && g.bytes < MaxUnhandledBytes {
			g.mu.Unlock()
			return nil
		}
		if g.free == nil {
			g.free = make(chan struct{})
		}
		free := g.free
		g.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// add counts messages, or takes them off by negative numbers.
func (g *gate) add(messages, bytes int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.messages, g.bytes = max(g.messages+messages, 0), max(g.bytes+bytes, 0)
	if g.free != nil && g.messages < MaxUnhandled && g.bytes < MaxUnhandledBytes {
		close(g.free)
		g.free = nil
	}
}

// enter returns the gate of a peer for one more stream.
func (g *guard) enter(address string) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gates[address] == nil {
		g.gates[address] = &gate{}
	}
	g.gates[address].streams++
	return g.gates[address]
}

// leave takes a stream off; what it has brought may still be unhandled, which concerns nobody then.
func (g *guard) leave(address string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if gate := g.gates[address]; gate != nil {
		if gate.streams--; gate.streams == 0 {
			delete(g.gates, address)
		}
	}
}

func (g *guard) handled(address string, messages, bytes int) {
	g.mu.Lock()
	gate := g.gates[address]
	g.mu.Unlock()
	if gate != nil {
		gate.add(-messages, -bytes)
	}
}
