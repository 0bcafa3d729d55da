package transaction

import (
	"math"

	"github.com/actormq/actormq/messages"
)

// state of a half message, as far as the window knows.
type state uint8

const (
	open      state = iota // or unknown
	over                   // an op message says so; how it ended is not known
	committed              // in this run
	dropped                // rolled back or given up in this run
)

const (
	keptBehind = 64 << 10 // half messages below the progress whose end is remembered
	maxWindow  = 16 << 20 // half messages
)

// certain is the place of an op message that is known to be meant for the half message that is there.
const certain = messages.PhysicalOffset(math.MaxInt64)

// end is how a half message has ended. An op message names it by its queue offset only, and a power cut may keep the op message and
// lose the half message, whose queue offset is then given again: so by is the place of the op message in the log, and it
// counts only for a half message that stands in front of it.
type end struct {
	by    messages.PhysicalOffset
	state state
}

// window remembers how half messages of a range of queue offsets have ended. The zero window begins at 0.
type window struct {
	base messages.QueueOffset
	ends []end
}

// get is the state of a half message, open outside the window.
func (w *window) get(at messages.QueueOffset) state {
	if e := w.end(at); e != nil {
		return e.state
	}
	return open
}

func (w *window) end(at messages.QueueOffset) *end {
	if i := at - w.base; i >= 0 && i < messages.QueueOffset(len(w.ends)) {
		return &w.ends[i]
	}
	return nil
}

// known tells whether a half message has ended, wherever it stands.
func (w *window) known(at messages.QueueOffset) bool {
	e := w.end(at)
	return e != nil && e.state != open && e.by == certain
}

// of is the state of the half message that stands at a place; an op message from before it is forgotten.
func (w *window) of(at messages.QueueOffset, place messages.PhysicalOffset) state {
	e := w.end(at)
	switch {
	case e == nil:
		return open
	case e.by < place:
		*e = end{}
	}
	return e.state
}

// fits tells whether a state can be kept; one below the window need not be.
func (w *window) fits(at messages.QueueOffset) bool { return at-w.base < maxWindow }

// set keeps a state that an op message at a place tells. What is known stays known: over does not overwrite how it ended.
func (w *window) set(at messages.QueueOffset, s state, by messages.PhysicalOffset) {
	i := at - w.base
	if i < 0 || i >= maxWindow {
		return
	}
	if grow := i + 1 - messages.QueueOffset(len(w.ends)); grow > 0 {
		w.ends = append(w.ends, make([]end, grow)...)
	}
	e := &w.ends[i]
	e.by = max(e.by, by)
	if e.state == open || s != over {
		e.state = s
	}
}

// slide forgets what lies far below the progress, now and then.
func (w *window) slide(head messages.QueueOffset) {
	cut := head - keptBehind - w.base
	if cut < keptBehind {
		return
	}
	if cut >= messages.QueueOffset(len(w.ends)) {
		w.base, w.ends = w.base+cut, nil
		return
	}
	w.ends = append([]end(nil), w.ends[cut:]...)
	w.base += cut
}
