package extension

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
)

// ErrStalled: a call of an extension has not come back within Policy.StallAfter. It is the cause of its context's end.
var ErrStalled = errors.New("the extension has stalled")

// runner makes calls of the user's code for one actor, one at a time, and bears their failures. Its methods are called in
// the actor's Receive only.
type runner struct {
	strikes strikes
	board   *board
	log     zerolog.Logger
	self    actors.Peer

	ctx    context.Context // of all calls; ends with the actor
	cancel context.CancelCauseFunc

	call    int64 // number of the call that runs, or ran last
	busy    bool
	stalled bool
	parked  bool
	stopped bool
	end     context.CancelCauseFunc // of the call that runs
	retry   *time.Timer             // set while it is backing off
	stall   *time.Timer
	patient bool // calls may take as long as they like

	waiting []messages.StopExtension
}

type (
	callDone struct {
		call int64
		err  error
	}
	callStalled struct{ call int64 }
	retryTick   struct{}
)

func newRunner(kind, name string, policy Policy, log zerolog.Logger) runner {
	r := runner{
		strikes: strikes{policy: policy.Defaults()}, board: newBoard(kind, name),
		log: log.With().Str("extension", name).Str("kind", kind).Logger(),
	}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	return r
}

// ready tells whether a call may be made now.
func (r *runner) ready() bool { return !r.busy && r.retry == nil && !r.parked && !r.stopped }

// run makes a call on a goroutine of its own; callDone comes back as a message.
func (r *runner) run(fn func(context.Context) error) {
	r.call++
	r.busy = true
	call, self := r.call, r.self
	r.board.change(func(s *Status) { s.CallSince = time.Now() })
	ctx, end := context.WithCancelCause(r.ctx)
	r.end = end
	if !r.patient {
		r.stall = self.After(r.strikes.policy.StallAfter, callStalled{call})
	}
	go func() {
		defer end(nil)
		// A call that ends its goroutine (runtime.Goexit, a test's FailNow) has failed too.
		err := fmt.Errorf("the goroutine has ended: %w", messages.ErrPanicked)
		defer func() { self.Send(callDone{call, err}) }()
		err = actors.Protect("extension", func() error { return fn(ctx) })
	}()
}

// done takes the outcome of a call; true when it was a success.
func (r *runner) done(m callDone, handled int) bool {
	r.busy = false
	if r.stall != nil {
		r.stall.Stop()
	}
	stalled := r.stalled
	r.stalled = false
	r.board.change(func(s *Status) { s.LastTook, s.CallSince = time.Since(s.CallSince), time.Time{} })
	if m.err == nil {
		r.strikes.succeeded()
		r.board.change(func(s *Status) { s.State, s.Handled = Running, s.Handled+int64(handled) })
		return true
	}
	if r.stopped {
		return false
	}
	if r.board.now.Load().LastTook > r.strikes.policy.Window {
		r.strikes.succeeded() // a service that has run for long begins with the first pause
	}
	r.failed(m.err, stalled)
	return false
}

// failed backs off, or gives up.
func (r *runner) failed(err error, stalled bool) {
	pause, park := r.strikes.failed(time.Now(), stalled || errors.Is(err, messages.ErrPanicked))
	r.board.change(func(s *Status) {
		s.State, s.LastError, s.LastFailed = BackingOff, err, time.Now()
		s.Failures++
		if park {
			s.State = Parked
		}
	})
	if park {
		r.parked = true
		r.log.Error().Err(err).Int("failures", len(r.strikes.grave)).Dur("within", r.strikes.policy.Window).
			Msg("an extension fails again and again: it is parked until it is resumed or the store is opened again")
		return
	}
	r.log.Warn().Err(err).Dur("retry_in", pause).Msg("an extension has failed: it is tried again")
	r.retry = r.self.After(pause, retryTick{})
}

// retried ends a pause.
func (r *runner) retried() {
	r.retry = nil
	if !r.stopped {
		r.board.change(func(s *Status) { s.State, s.Restarts = Running, s.Restarts+1 })
	}
}

// stalledCall reports a call that does not come back, and asks it to end.
func (r *runner) stalledCall(m callStalled) {
	if !r.busy || m.call != r.call {
		return
	}
	r.stalled = true
	err := fmt.Errorf("%w: a call takes longer than %v", ErrStalled, r.strikes.policy.StallAfter)
	r.board.change(func(s *Status) {
		s.State, s.LastError, s.LastFailed = Stalled, err, time.Now()
		s.Failures++
	})
	r.log.Error().Err(err).Msg("an extension has stalled")
	r.end(err)
}

// resume takes a parked extension up again; one that is backing off is tried at once.
func (r *runner) resume() {
	if !r.parked && r.retry == nil {
		return
	}
	r.parked = false
	r.strikes.forget()
	if r.retry != nil {
		r.retry.Stop()
	}
	r.retried()
}

// answer tells those who wait for the end that nothing is in flight any more.
func (r *runner) answer() {
	if !r.stopped || r.busy {
		return
	}
	for _, w := range r.waiting {
		w.Answer.Complete(struct{}{}, nil)
	}
	r.waiting = nil
}

// stopping ends the runner with its actor, whatever is in flight.
func (r *runner) stopping() {
	r.stop()
	for _, w := range r.waiting {
		w.Refuse(messages.ErrClosed)
	}
	r.waiting = nil
}

// stop ends the calls that listen to their context.
func (r *runner) stop() {
	if r.stopped {
		return
	}
	r.stopped = true
	r.cancel(messages.ErrClosed)
	for _, t := range []*time.Timer{r.retry, r.stall} {
		if t != nil {
			t.Stop()
		}
	}
	r.board.change(func(s *Status) { s.State = Stopped })
}
