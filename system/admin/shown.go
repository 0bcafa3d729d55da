package admin

import (
	"context"
	"net/http"
	"sync"

	"github.com/actormq/actormq/system/admin/console"
)

// shown is what a port shows of a store, for as long as it is there. Requests that run are counted.
type shown struct {
	handler http.Handler
	console *console.Console // nil: there is none

	mu      sync.Mutex
	running int
	ending  bool
	ended   chan struct{} // closed once it is ending and nothing runs
}

// enter is false when the store is about to go.
func (s *shown) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return false
	}
	s.running++
	return true
}

func (s *shown) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running--; s.ending && s.running == 0 {
		close(s.ended)
	}
}

// end waits for requests that run until the context ends.
func (s *shown) end(ctx context.Context) error {
	s.mu.Lock()
	if s.ending = true; s.running == 0 {
		close(s.ended)
	}
	s.mu.Unlock()
	select {
	case <-s.ended:
	case <-ctx.Done():
	}
	if s.console != nil {
		return s.console.Close()
	}
	return nil
}
