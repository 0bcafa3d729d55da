package allocator

import (
	"errors"
	"time"

	"github.com/actormq/actormq/actors"
)

const (
	// A window is prepared with pauses where the one before has lasted from shortest to longest. A quicker writer would be there first; with
	// a slower one a window that is prepared at once meets fewer than one message in a hundred, and with pauses more.
	shortest  = 40 * time.Millisecond
	longest   = 200 * time.Millisecond
	stepPause = time.Millisecond
)

// steps is a window that is being prepared step by step, with pauses. All at once it keeps a processor for milliseconds, and so it does in
// a master and in its slave at the same time, as their logs are the same: messages under way wait for that.
type steps struct {
	last   time.Time            // when a window was last asked for
	wanted *actors.WindowWanted // nil: none is being prepared
	from   int64                // up to here it is
	end    int64
	timer  *time.Timer
}

// stepTick is the allocator's own: the next step of a window.
type stepTick struct{}

// window prepares the next window of a segment. One of an earlier segment that is not complete is given up: the writer has gone on.
func (a *Actor) window(m actors.WindowWanted) {
	s, now := &a.steps, time.Now()
	lasted := now.Sub(s.last)
	s.wanted, s.from, s.end, s.last = &m, m.From, m.From+min(a.cfg.WindowBytes, m.Segment.Size()-m.From), now
	a.step(lasted >= shortest && lasted <= longest && !a.cfg.WriteZeros)
}

// step prepares a piece of the window and pauses, or all that is left: when the writer comes near, say.
func (a *Actor) step(pause bool) {
	s := &a.steps
	if s.wanted == nil {
		return
	}
	n := s.end - s.from
	if pause && s.from-s.wanted.Segment.Wrote() > a.cfg.WindowBytes/4 {
		n = min(n, stepBytes-s.from%stepBytes)
	}
	err := a.ahead(s.wanted.Segment, s.from, n)
	if s.from += n; err == nil && s.from < s.end {
		a.armStep()
		return
	}
	if errors.Is(err, errGone) {
		s.end = s.wanted.Segment.Size()
	}
	s.wanted.ReplyTo.Send(actors.WindowReady{Segment: s.wanted.Segment, End: s.end})
	s.wanted = nil
}

func (a *Actor) armStep() {
	if t := a.steps.timer; t != nil {
		t.Reset(stepPause)
		return
	}
	a.steps.timer = a.self.After(stepPause, stepTick{})
}
