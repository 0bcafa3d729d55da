package mailbox

import (
	"runtime"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actormq/actormq/messages"
)

// Batch is what an actor with a combining mailbox receives: the linked messages that were waiting, oldest first. The
// actor takes them one by one with Next; it must not keep the batch.
type Batch struct {
	next, current *messages.Link
	end           *messages.Link // where the batch ends: a message that is delivered on its own, or nil
}

// Next returns the next message, nil at the end of the batch. From then on the message is the actor's: it answers it.
// Should Receive panic, the mailbox refuses the message that Next gave last, unless Handled was called, and goes on with
// the one behind it.
func (b *Batch) Next() any {
	l := b.next
	if l == b.end {
		b.current = nil
		return nil
	}
	// The link is read before the message is handed over: its owner may use it again once it is answered.
	b.current, b.next = l, l.Next()
	return l.Message()
}

// Peek returns the message that Next will give, without taking it; nil at the end of the batch. It may be looked at, so that
// it is in the cache in time, and must not be changed.
func (b *Batch) Peek() any {
	if b.next == b.end {
		return nil
	}
	return b.next.Message()
}

// Handled says that the message that Next gave last has been answered, or kept, and must not be refused.
func (b *Batch) Handled() { b.current = nil }

// Last tells whether nothing is behind the message that Next gave last: time to do what is done once a batch.
func (b *Batch) Last() bool { return b.next == b.end }

// handle delivers a chain: runs of linked messages as one batch, others one by one, in order.
func (m *Combining) handle(l *messages.Link) {
	for {
		if m.system.Load() != nil {
			m.handleSystem()
		}
		if m.suspended {
			m.hold(l)
			return
		}
		if m.held != nil {
			l = m.unhold(l)
		}
		switch {
		case l == nil:
			return
		case l.Foreign():
			next := l.Next()
			m.handled++
			m.handleForeign(l.Message())
			l = next
		case m.cause != nil:
			next := l.Next()
			messages.Refuse(l.Message(), m.cause)
			l = next
		default:
			l = m.handleLinked(l)
		}
	}
}

// handleLinked delivers the linked messages from l on as one batch and returns the first link that is still to do.
func (m *Combining) handleLinked(l *messages.Link) *messages.Link {
	end := l.Next()
	for m.handled++; end != nil && !end.Foreign(); m.handled++ {
		end = end.Next()
	}
	m.batch.next, m.batch.end, m.batch.current = l, end, nil
	if m.opt.Receiver != nil {
		m.receive()
	} else {
		m.invoke(&m.batch)
	}
	if m.batch.next == l {
		// The actor took nothing: it has stopped, or does not know batches.
		next := l.Next()
		messages.Refuse(l.Message(), messages.ErrClosed)
		return next
	}
	return m.batch.next
}

// hold keeps a chain while the mailbox is suspended; it counts against the limit.
func (m *Combining) hold(l *messages.Link) {
	tail := &m.held
	for *tail != nil {
		tail = (*tail).NextRef()
	}
	*tail = l
	for ; l != nil; l = l.Next() {
		m.count.Add(1)
	}
}

// unhold puts what was held in front of a chain.
func (m *Combining) unhold(l *messages.Link) *messages.Link {
	first := m.held
	m.held = nil
	last, n := first, int64(1)
	for ; last.Next() != nil; n++ {
		last = last.Next()
	}
	last.SetNext(l)
	m.count.Add(-n)
	return first
}

// handleForeign delivers one message that has no link of its own.
func (m *Combining) handleForeign(message any) {
	switch c := message.(type) {
	case poke:
	case closing:
		if m.cause == nil {
			m.cause = c.cause
		}
	default:
		if m.cause != nil {
			messages.Refuse(message, m.cause)
			return
		}
		m.invoke(message)
	}
}

// invoke runs the actor's Receive; a panic in it costs one message.
func (m *Combining) invoke(message any) {
	defer func() {
		if r := recover(); r != nil {
			m.panicked(r, message)
		}
	}()
	m.invoker.InvokeUserMessage(message)
}

// receive is invoke for an actor that takes batches directly.
func (m *Combining) receive() {
	defer func() {
		if r := recover(); r != nil {
			m.panicked(r, &m.batch)
		}
	}()
	m.opt.Receiver.ReceiveBatch(&m.batch)
}

// alone handles the message of a sender that has just set running on its own goroutine, on the shortest way, and whatever has
// come in meanwhile. False: it is to go the other way.
func (m *Combining) alone(message any) (taken bool) {
	if !m.plain {
		return false
	}
	returned, tired := false, false
	defer func() {
		if returned {
			return // asking recover each time is a hundredth of a put
		}
		taken = true
		m.batch.current = nil
		m.panicked(recover(), &m.batch)
		m.run(nil, m.opt.InlineBatches)
	}()
	taken, owed := m.single.ReceiveSingle(message)
	returned = true
	if taken {
		if m.handled++; m.handled%toldEvery == 0 {
			m.told.Store(m.handled)
			tired = m.tired()
		}
	}
	if taken && !m.state.CompareAndSwap(running, 0) {
		m.run(nil, m.opt.InlineBatches)
	}
	if owed {
		m.single.Settle(message)
	}
	if tired {
		runtime.Gosched()
	}
	return taken
}

func (m *Combining) panicked(reason, message any) {
	stack := debug.Stack()
	m.panics.Add(1)
	if b, ok := message.(*Batch); !ok {
		messages.Refuse(message, messages.ErrPanicked)
	} else if b.current != nil {
		l := b.current
		b.current = nil
		messages.Refuse(l.Message(), messages.ErrPanicked)
	}
	if m.opt.OnPanic != nil {
		m.opt.OnPanic(reason, stack)
		return
	}
	m.invoker.EscalateFailure(reason, message)
	m.handleSystem() // the supervisor's first step is to suspend this mailbox
}

// handleSystem delivers what has come in of system messages, in order.
func (m *Combining) handleSystem() {
	for {
		l, n := reverse(m.system.Swap(nil), nil)
		if n == 0 {
			return
		}
		for l != nil {
			next := l.Next()
			m.handleOneSystem(l.Message())
			l = next
		}
	}
}

func (m *Combining) handleOneSystem(message any) {
	switch message.(type) {
	case *actor.SuspendMailbox:
		m.suspended = true
	case *actor.ResumeMailbox:
		m.suspended = false
	case *actor.Stop:
		m.leave()
		m.invokeSystem(message)
		m.suspended = false
		if m.cause == nil {
			m.cause = messages.ErrClosed
		}
	default:
		m.invokeSystem(message)
	}
}

func (m *Combining) invokeSystem(message any) {
	defer func() {
		if r := recover(); r != nil {
			m.panicked(r, message)
		}
	}()
	m.invoker.InvokeSystemMessage(message)
}
