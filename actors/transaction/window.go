package transaction

import "github.com/actormq/actormq/messages"

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
	maxWindow  = 16 << 20 // half messages; one byte each
)

// window remembers how half messages of a range of queue offsets have ended. The zero window begins at 0.
type window struct {
	base   messages.QueueOffset
	states []state
}

// get is the state of a half message, open outside the window.
func (w *window) get(at messages.QueueOffset) state {
	if i := at - w.base; i >= 0 && i < messages.QueueOffset(len(w.states)) {
		return w.states[i]
	}
	return open
}

// fits tells whether a state can be kept; one below the window need not be.
func (w *window) fits(at messages.QueueOffset) bool { return at-w.base < maxWindow }

// set keeps a state. What is known stays known: over does not overwrite how it ended.
func (w *window) set(at messages.QueueOffset, s state) {
	i := at - w.base
	if i < 0 || i >= maxWindow {
		return
	}
	for n := messages.QueueOffset(len(w.states)); n <= i; n++ {
		w.states = append(w.states, open)
	}
	if w.states[i] == open || s != over {
		w.states[i] = s
	}
}

// slide forgets what lies far below the progress, now and then.
func (w *window) slide(head messages.QueueOffset) {
	cut := head - keptBehind - w.base
	if cut < keptBehind {
		return
	}
	if cut >= messages.QueueOffset(len(w.states)) {
		w.base, w.states = w.base+cut, nil
		return
	}
	w.states = append([]state(nil), w.states[cut:]...)
	w.base += cut
}
