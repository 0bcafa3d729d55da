package extension

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
)

// KindHook is the kind of a put hook's status.
const KindHook = "put hook"

// ErrHook: a put hook has panicked, is too slow, or does not come back.
var ErrHook = errors.New("a put hook does not work")

// errBudget: a call of a hook took longer than its budget.
var errBudget = errors.New("over its time budget")

// HookConfig is what a hook is made of.
type HookConfig struct {
	Name   string
	Func   func(*messages.Message) error
	Budget time.Duration // of one call
	Policy Policy
	Logger zerolog.Logger
}

// Hook calls a user's function on its caller's goroutine, and leaves it out for Policy.MaxBackoff when it panics or takes too
// long again and again. It is no actor: a put has no time for one. Safe for concurrent use.
type Hook struct {
	cfg  HookConfig
	made time.Time

	inFlight atomic.Int64
	moved    atomic.Int64 // when a call last came back, or began while there was no other; ns since made
	shut     atomic.Int64 // until when the function is left out; ns since made, 0: it is not
	handled  atomic.Int64
	mu       sync.Mutex // of strikes and board: failures only
	strikes  strikes
	board    *board
}

// NewHook returns a hook.
func NewHook(cfg HookConfig) *Hook {
	return &Hook{cfg: cfg, made: time.Now(), strikes: strikes{policy: cfg.Policy.Defaults()}, board: newBoard(KindHook, cfg.Name)}
}

// Call calls the function. ErrHook says that the function was left out or did not work, and then the message may be half
// changed; any other error is the function's own.
func (h *Hook) Call(m *messages.Message) error {
	now := h.now()
	if until := h.shut.Load(); until > now {
		return fmt.Errorf("%w: %s is left out", ErrHook, h.cfg.Name)
	}
	if h.inFlight.Add(1) == 1 {
		h.moved.Store(now)
	} else if now-h.moved.Load() > int64(h.cfg.Budget) {
		h.inFlight.Add(-1)
		h.failed(fmt.Errorf("%w: no call comes back", ErrStalled), Stalled)
		return fmt.Errorf("%w: %s: %w", ErrHook, h.cfg.Name, ErrStalled)
	}
	err := actors.Protect(h.cfg.Name, func() error { return h.cfg.Func(m) })
	back := h.now()
	h.moved.Store(back)
	h.inFlight.Add(-1)
	if errors.Is(err, messages.ErrPanicked) {
		h.failed(err, BackingOff)
		return fmt.Errorf("%w: %w", ErrHook, err)
	}
	if took := time.Duration(back - now); took > h.cfg.Budget {
		h.failed(fmt.Errorf("%w: %v of %v", errBudget, took, h.cfg.Budget), BackingOff)
		return err // it has come back all the same
	}
	h.handled.Add(1)
	return err
}

func (h *Hook) now() int64 { return int64(time.Since(h.made)) }

// failed counts a failure; after too many the function is left out for a while.
func (h *Hook) failed(cause error, state State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, park := h.strikes.failed(time.Now(), true); park {
		h.strikes.forget()
		state = Parked
		pause := h.strikes.policy.MaxBackoff
		h.shut.Store(h.now() + int64(pause))
		h.cfg.Logger.Error().Err(cause).Str("extension", h.cfg.Name).Dur("for", pause).Msg("a put hook is left out for a while")
	}
	h.board.change(func(s *Status) {
		s.State, s.LastError, s.LastFailed = state, cause, time.Now()
		s.Failures++
	})
}

// Resume has the function called again.
func (h *Hook) Resume() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.strikes.forget()
	h.shut.Store(0)
	h.board.change(func(s *Status) { s.State, s.Restarts = Running, s.Restarts+1 })
}

// Status tells what the hook does.
func (h *Hook) Status() Status {
	s := *h.board.now.Load()
	s.Handled = h.handled.Load()
	now := h.now()
	switch {
	case h.shut.Load() > now:
		s.State = Parked
	case h.inFlight.Load() > 0 && now-h.moved.Load() > int64(h.cfg.Budget):
		s.State = Stalled
	default:
		s.State = Running
	}
	return s
}
