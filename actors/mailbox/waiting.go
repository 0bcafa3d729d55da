package mailbox

import (
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/messages"
)

// Waiting is a message whose sender waits until it is complete. The sender parks by it while others run the actor.
type Waiting interface {
	messages.Linked
	// Park returns when the message is complete (true), or when Unpark has been called (false).
	Park() (complete bool)
	// Unpark ends a Park, the one under way or the next one. Only who holds the message calls it, and it is not complete.
	Unpark()
}

const (
	// spins is how often a sender looks without a pause whether the actor is idle: about as long as a put takes.
	spins = 64
	// firstPause and lastPause are rounds of an empty loop: between further looks a sender leaves the line of the state to whoever
	// runs the actor, each time for half as long again, for some 4 µs in all. Then it parks, which may cost it milliseconds: whoever wakes it
	// goes on with its own time slice, and the one that was woken waits for the end of that.
	firstPause, lastPause = 16, 4096
	// patience is how long a waiting sender lets others go first.
	patience = 4 * time.Millisecond
)

// line is where senders wait for their turn. Only the runner takes them out, oldest first.
type line struct {
	came  atomic.Pointer[messages.Link] // the newest first
	front atomic.Pointer[messages.Link] // who was called, and came too late
	first *messages.Link                // taken from came, oldest first; the runner's
	since atomic.Int64                  // when the oldest one came, in ns since made; 0: nobody waits
}

// PostWaiting is Post for a sender that waits for its message to be complete before it sends anything else. As with a mutex it
// may go first when it finds the actor idle while other senders wait, so the actor goes on where the records are in the cache
// and nobody has to be woken; it never goes ahead of what was posted, and of those who wait only for so long (patience). When it
// returns, the message has been handled, or is in the hands of an actor.
func (m *Combining) PostWaiting(w Waiting) error {
	if !m.state.CompareAndSwap(0, running) {
		return m.contend(w)
	}
	if !m.alone(w) {
		m.claimed(w.MailboxLink())
	}
	return nil
}

// turn handles the message of a sender that had to look more than once until it set running.
func (m *Combining) turn(w Waiting) {
	m.pace.met = m.handled + 1
	if !m.alone(w) {
		m.claimed(w.MailboxLink())
	}
}

// contend is PostWaiting while the actor is running, or others wait.
func (m *Combining) contend(w Waiting) error {
	if m.opt.InlineBatches == 0 {
		return m.Post(w.MailboxLink())
	}
	if m.spin(0) {
		m.turn(w)
		return nil
	}
	if !m.counted() {
		return messages.ErrBusy
	}
	m.wait(w, w.MailboxLink())
	return nil
}

// spin claims the actor as soon as nobody runs it and nothing is to go first, and takes a bit away then. False: it took too long.
func (m *Combining) spin(bit uint32) bool {
	for range spins {
		if m.claim(bit) {
			return true
		}
	}
	for pause := firstPause; pause <= lastPause; pause += pause / 2 {
		for range pause {
		}
		if m.claim(bit) {
			return true
		}
	}
	return false
}

// claim sets running, and takes a bit away, when nobody runs the actor and nothing is to go first.
func (m *Combining) claim(bit uint32) bool {
	s := m.state.Load()
	return s&(running|queued|starving) == 0 && m.state.CompareAndSwap(s, (s|running)&^bit)
}

// wait parks until the message is complete, or handles it when its turn has come.
func (m *Combining) wait(w Waiting, l *messages.Link) {
	began := m.now()
	l.SetSince(began)
	m.line.since.CompareAndSwap(0, began) // before it is in the line: whoever takes it out may clear the mark
	for h := m.line.came.Load(); ; h = m.line.came.Load() {
		l.SetNext(h)
		if m.line.came.CompareAndSwap(h, l) {
			break
		}
	}
	if m.add(waiting) {
		m.run(nil, m.opt.InlineBatches)
	}
	for !w.Park() {
		if m.spin(called) {
			m.turn(w)
			return
		}
		l.SetNext(nil)
		m.count.Add(1)
		m.line.front.Store(l)
		if m.giveUpTurn(m.now()-began > int64(patience)) {
			m.run(nil, m.opt.InlineBatches)
		}
	}
}

// giveUpTurn goes back to the front of the line. True: nobody runs the actor any more, and the caller is to do it now.
func (m *Combining) giveUpTurn(starved bool) bool {
	bits := uint32(waiting)
	if starved {
		bits |= starving
	}
	for {
		s := m.state.Load()
		if m.state.CompareAndSwap(s, (s|bits|running)&^called) {
			return s&running == 0
		}
	}
}

// callNext lets go of the actor and calls the sender that has waited longest. False: there is none, or something else is to be
// done first.
func (m *Combining) callNext() bool {
	m.state.And(^uint32(waiting)) // before looking, so that nobody who comes now is overlooked
	l := m.nextInLine()
	if l == nil {
		return false
	}
	for {
		s := m.state.Load()
		if s&(queued|starving) != 0 {
			l.SetNext(m.line.first)
			m.line.first = l
			m.state.Or(waiting)
			return false
		}
		next := s&^running | called
		if m.line.first != nil {
			next |= waiting
		}
		if m.state.CompareAndSwap(s, next) {
			m.count.Add(-1)
			l.Message().(Waiting).Unpark()
			return true
		}
	}
}

// nextInLine takes the message of the sender that has waited longest, nil when there is none.
func (m *Combining) nextInLine() *messages.Link {
	q := &m.line
	l := q.front.Swap(nil)
	if l == nil {
		if q.first == nil {
			q.first, _ = reverse(q.came.Swap(nil), nil)
		}
		if l = q.first; l != nil {
			q.first = l.Next()
		}
	}
	if q.first == nil {
		q.first, _ = reverse(q.came.Swap(nil), nil)
	}
	if q.first != nil {
		q.since.Store(q.first.Since())
	} else {
		q.since.Store(0)
	}
	return l
}

// takeLine takes the messages of all senders that wait, oldest first.
func (m *Combining) takeLine() (oldest *messages.Link) {
	var last *messages.Link
	for l := m.nextInLine(); l != nil; l = m.nextInLine() {
		m.count.Add(-1)
		l.SetNext(nil)
		if last == nil {
			oldest = l
		} else {
			last.SetNext(l)
		}
		last = l
	}
	return oldest
}
