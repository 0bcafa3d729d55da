package extension

import (
	"bytes"
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

// errShare: the calls of a hook took too long together.
var errShare = errors.New("its calls take more time than puts can spare")

// share is the part of the time that calls may take beyond their average: a twentieth.
const share = 20

// HookConfig is what a hook is made of.
type HookConfig struct {
	Name    string
	Func    func(*messages.Message) error
	Inline  bool          // on the caller's goroutine: nobody is rescued from a call that does not come back
	Budget  time.Duration // of one call
	Average time.Duration // of many; 0: they may take what they like
	Policy  Policy
	Logger  zerolog.Logger
}

// Hook calls a user's function for a put and bounds what that costs: a call is given up after Budget, and the function is left out
// for Policy.MaxBackoff when it panics or is given up again and again, or when its calls take more than Average each and a
// twentieth of the time, with Budget on top, together. While a call that was given up has not come back there is no other.
// To pass by a function that is left out costs one load. It is no actor: a put has no time for one. Safe for concurrent use.
type Hook struct {
	cfg  HookConfig
	made time.Time
	pass atomic.Pointer[error] // nil: it is called; else why not

	debt    atomic.Int64 // ns that calls took beyond their average
	since   atomic.Int64 // when it was last worked out; ns since made
	took    atomic.Int64 // the last call, ns
	handled atomic.Int64
	calls   sync.Pool // of hookCall

	mu      sync.Mutex // of what follows: failures only
	strikes strikes
	board   *board
	left    int         // calls that were given up and have not come back
	reopen  *time.Timer // set while the function is left out
	closed  bool        // it stays left out then
}

// hookCall is one call. Who sets over first has the last word: the function, or its caller that has waited long enough.
type hookCall struct {
	message messages.Message
	done    chan error // holds one
	timer   *time.Timer
	over    atomic.Bool
}

// NewHook returns a hook.
func NewHook(cfg HookConfig) *Hook {
	h := &Hook{cfg: cfg, made: time.Now(), strikes: strikes{policy: cfg.Policy.Defaults()}, board: newBoard(KindHook, cfg.Name)}
	h.calls.New = func() any {
		c := &hookCall{done: make(chan error, 1), timer: time.NewTimer(cfg.Budget)}
		c.timer.Stop()
		return c
	}
	return h
}

// LeftOut says why puts pass by the function; nil: they do not.
func (h *Hook) LeftOut() error {
	if why := h.pass.Load(); why != nil {
		return *why
	}
	return nil
}

// Call calls the function with a copy of the message and puts what it has made of it into out, which may be the same one. On an
// error out is as it was: ErrHook says that the function did not work, any other is the function's own.
func (h *Hook) Call(m, out *messages.Message) error {
	began := h.now()
	c := h.calls.Get().(*hookCall)
	back, err := h.call(c, m)
	if !back {
		h.failed(fmt.Errorf("%w: a call takes longer than %v", ErrStalled, h.cfg.Budget))
		h.charge(h.cfg.Budget, h.now())
		return fmt.Errorf("%w: %s: %w", ErrHook, h.cfg.Name, ErrStalled)
	}
	now := h.now()
	took := time.Duration(now - began)
	h.took.Store(int64(took))
	h.charge(took, now)
	if errors.Is(err, messages.ErrPanicked) {
		h.failed(err)
		return fmt.Errorf("%w: %w", ErrHook, err) // the message may be half changed, and the call is not used again
	}
	h.handled.Add(1)
	if err == nil {
		*out = c.message
	}
	c.message = messages.Message{}
	h.calls.Put(c)
	return err
}

// call makes one call; false when it was given up, and then the call belongs to the function.
func (h *Hook) call(c *hookCall, m *messages.Message) (back bool, err error) {
	if h.cfg.Inline {
		c.message = *m
		return true, actors.Protect(h.cfg.Name, func() error { return h.cfg.Func(&c.message) })
	}
	// The function may come back after the put, whose bytes are its caller's again then: it gets its own.
	c.message = *m
	text := m.Topic + string(m.Properties)
	c.message.Topic, c.message.Properties = text[:len(m.Topic)], messages.Properties(text[len(m.Topic):])
	c.message.Body = bytes.Clone(m.Body)
	c.over.Store(false)
	c.timer.Reset(h.cfg.Budget)
	go h.apart(c)
	select {
	case err := <-c.done:
		c.timer.Stop()
		return true, err
	case <-c.timer.C:
	}
	if h.giveUp(c) {
		return false, nil
	}
	return true, <-c.done
}

// giveUp leaves a call to its function; false when that has just come back.
func (h *Hook) giveUp(c *hookCall) bool {
	h.mu.Lock() // it may come back at this moment: that is counted behind this
	defer h.mu.Unlock()
	if !c.over.CompareAndSwap(false, true) {
		return false
	}
	h.left++
	h.passBy()
	return true
}

// apart makes a call on a goroutine of its own.
func (h *Hook) apart(c *hookCall) {
	err := fmt.Errorf("the goroutine has ended: %w", messages.ErrPanicked) // by runtime.Goexit
	defer func() {
		if c.over.CompareAndSwap(false, true) {
			c.done <- err
			return
		}
		h.cameBack()
	}()
	err = actors.Protect(h.cfg.Name, func() error { return h.cfg.Func(&c.message) })
}

func (h *Hook) now() int64 { return int64(time.Since(h.made)) }

// charge notes what a call took that has just ended. What is beyond the average is a debt that time pays off.
func (h *Hook) charge(took time.Duration, now int64) {
	if h.cfg.Average == 0 {
		return
	}
	switch debt := h.debt.Add(int64(took - h.cfg.Average)); {
	case debt <= 0:
		h.debt.Store(0) // quick calls are no credit
		h.since.Store(now)
		return
	case debt <= int64(h.cfg.Budget):
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now = h.now()
	debt := h.debt.Add(-(now - h.since.Swap(now)) / share)
	if debt > int64(h.cfg.Budget) && h.reopen == nil {
		h.leaveOut(fmt.Errorf("%w: %v on average, the last one %v", errShare, h.cfg.Average, took))
		h.board.change(func(s *Status) { s.Failures++ })
	}
}

// failed counts a failure; after too many the function is left out for a while.
func (h *Hook) failed(cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.board.change(func(s *Status) {
		s.LastError, s.LastFailed = cause, time.Now()
		s.Failures++
	})
	if _, park := h.strikes.failed(time.Now(), true); park && h.reopen == nil {
		h.leaveOut(cause)
	}
}

// leaveOut leaves the function out for a while.
func (h *Hook) leaveOut(cause error) {
	pause := h.strikes.policy.MaxBackoff
	h.cfg.Logger.Error().Err(cause).Str("extension", h.cfg.Name).Dur("for", pause).Msg("a put hook is left out for a while")
	h.board.change(func(s *Status) { s.LastError, s.LastFailed = cause, time.Now() })
	h.reopen = time.AfterFunc(pause, func() { h.again(false) })
	if h.closed {
		h.reopen.Stop()
	}
	h.passBy()
}

// again has the function called again.
func (h *Hook) again(resumed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reopen != nil {
		h.reopen.Stop()
		h.reopen = nil
	}
	if resumed {
		h.left = 0 // they are not waited for any longer
	}
	h.strikes.forget()
	h.debt.Store(0)
	h.since.Store(h.now())
	h.board.change(func(s *Status) { s.Restarts++ })
	h.passBy()
}

// cameBack notes that a call that was given up is over.
func (h *Hook) cameBack() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left = max(0, h.left-1)
	h.passBy()
}

// passBy says whether puts pass by the function, and why.
func (h *Hook) passBy() {
	var why *error
	state := Running
	switch {
	case h.reopen != nil:
		err := fmt.Errorf("%w: %s is left out", ErrHook, h.cfg.Name)
		why, state = &err, Parked
	case h.left > 0:
		err := fmt.Errorf("%w: %s: %w", ErrHook, h.cfg.Name, ErrStalled)
		why, state = &err, Stalled
	}
	h.board.change(func(s *Status) { s.State = state })
	h.pass.Store(why)
}

// Resume has the function called again at once, whatever came of earlier calls.
func (h *Hook) Resume() { h.again(true) }

// Close ends what the hook has running of its own; calls are still made, and one that is left out is so for good.
func (h *Hook) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	if h.reopen != nil {
		h.reopen.Stop()
	}
}

// Status tells what the hook does.
func (h *Hook) Status() Status {
	s := *h.board.now.Load()
	s.Handled, s.LastTook = h.handled.Load(), time.Duration(h.took.Load())
	return s
}
