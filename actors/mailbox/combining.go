package mailbox

import (
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
)

// Options configure a mailbox.
type Options struct {
	// Limit is the number of messages that may be queued behind the running one. 0 means DefaultLimit.
	Limit int
	// InlineBatches is how many batches a sender handles before it hands over to a goroutine. 0: always on a goroutine.
	InlineBatches int
	// TimeQueueing lets Queueing tell how long messages have been waiting behind the running one.
	TimeQueueing bool
	// Receiver, when set, is handed the batches instead of the actor's Receive: the same actor, without the way through
	// its context. Everything else goes to Receive, never at the same time.
	Receiver BatchReceiver
	// Gate, when set, keeps the actor from running until it is opened.
	Gate *Gate
	// OnPanic is told of a panic in the actor's Receive, with the stack, after the message has been refused. When it is
	// nil, the panic goes to the actor's supervisor, whose default is to restart the actor.
	OnPanic func(reason any, stack []byte)
}

// BatchReceiver is an actor that takes its batches directly.
type BatchReceiver interface {
	ReceiveBatch(*Batch)
}

// SingleReceiver is a BatchReceiver that has a shorter way for the message of a sender that found it idle.
type SingleReceiver interface {
	BatchReceiver
	// ReceiveSingle handles the message on its sender's goroutine, before Post returns. False: it was left untouched, and
	// comes in a batch. A panic is told to OnPanic; the message then is the actor's to answer. Owed: all that is left is to tell the
	// sender, which Settle does on the same goroutine once others may run the actor.
	ReceiveSingle(message any) (taken, owed bool)
	// Settle tells the sender of a message that ReceiveSingle has left owed; it must not touch the actor's state.
	Settle(message any)
}

// DefaultLimit bounds a mailbox whose options name no limit.
const DefaultLimit = 1 << 16

// The bits of Combining.state. 0 is idle.
const (
	running  = 1 << iota // somebody runs the actor; everybody else only adds to the lists
	queued               // posted may hold messages
	waiting              // senders may be waiting for their turn
	called               // one of them has been called, and is on its way
	starving             // one of them has waited for longer than patience: nobody goes first any more
)

// Combining is the mailbox. It implements actor.Mailbox; Post and PostWaiting are the ways in for messages that carry a Link.
type Combining struct {
	// state is the whole protocol: whoever sets running runs the actor, and takes care of what the other bits tell of before
	// it lets go.
	state  atomic.Uint32
	count  atomic.Int64                  // messages in the lists that count against the limit
	posted atomic.Pointer[messages.Link] // messages in order, the newest first
	since  atomic.Int64                  // when the first one of them came, in ns since made; 0: there is none, or nobody asks
	line   line

	// Senders on other cores write the lines above all the time; what the runner reads must not share them.
	_ [128 - 64]byte

	made time.Time

	opt        Options
	single     SingleReceiver // opt.Receiver, when it is one
	invoker    actor.MessageInvoker
	dispatcher actor.Dispatcher
	goOn       func() // bound once, so that scheduling does not allocate

	// Only the runner touches these; state hands them over.
	batch     Batch
	todo      *messages.Link // on its way to another goroutine
	held      *messages.Link // kept while suspended, oldest first
	suspended bool
	cause     error // set once closed
	plain     bool  // a claimed message may go straight to single: nothing else is to be looked at
	handled   int64
	pace      pace

	told   atomic.Int64 // handled, as others see it: not told with every message, as that costs more than it is worth
	panics atomic.Int64

	system atomic.Pointer[messages.Link] // system messages, the newest first
}

var _ actor.Mailbox = (*Combining)(nil)

// New returns a mailbox for one actor; give it to the actor's props through Producer.
func New(opt Options) *Combining {
	if opt.Limit <= 0 {
		opt.Limit = DefaultLimit
	}
	m := &Combining{opt: opt, made: time.Now()}
	m.single, _ = opt.Receiver.(SingleReceiver)
	m.goOn = m.resume
	m.state.Store(running) // claimed until Start: others may know the actor's name, or have the mailbox, before the actor can run
	return m
}

// Producer is the MailboxProducer that hands this one mailbox to the one actor that is spawned with it.
func (m *Combining) Producer() actor.MailboxProducer {
	return func() actor.Mailbox { return m }
}

// Post sends a message by its own link. It does not allocate. The error is messages.ErrBusy when the mailbox is full; then
// the message was not taken. A closed mailbox takes the message and refuses it.
func (m *Combining) Post(l *messages.Link) error {
	if m.state.CompareAndSwap(0, running) {
		if !m.alone(l.Message()) {
			m.claimed(l)
		}
		return nil
	}
	if !m.counted() {
		return messages.ErrBusy
	}
	m.push(l)
	return nil
}

// PostHere is Post for an actor that runs on goroutines of its own otherwise: one that is idle handles this message, and no other, before
// PostHere returns. The message says that its receiver must not block. What comes meanwhile is handled on a goroutine.
func (m *Combining) PostHere(l *messages.Link) error {
	if !m.state.CompareAndSwap(0, running) {
		return m.Post(l)
	}
	if m.system.Load() != nil {
		m.claimed(l)
		return nil
	}
	l.SetNext(nil)
	m.run(l, 1)
	return nil
}

// counted counts a message that is going to be queued; false: there are too many.
func (m *Combining) counted() bool {
	if m.count.Add(1) <= int64(m.opt.Limit) {
		return true
	}
	m.count.Add(-1)
	return false
}

// Lend sends a message without a link of its own from a goroutine that has nothing else to do and may block: it runs the actor
// itself, for as long as there is work, when nobody does.
func (m *Combining) Lend(message any) {
	m.count.Add(1)
	if m.queue(messages.NewForeignLink(message)) {
		m.run(m.take(), -1)
	}
}

// push queues a message that has been counted, and runs what is queued when the mailbox has become idle.
func (m *Combining) push(l *messages.Link) {
	if m.queue(l) {
		m.start(m.take())
	}
}

// queue queues a message that has been counted. True: nobody was running the actor, and the caller is to do it now.
func (m *Combining) queue(l *messages.Link) (claimed bool) {
	for {
		h := m.posted.Load()
		l.SetNext(h)
		if m.opt.TimeQueueing && (h == nil || m.since.Load() == 0) {
			m.since.Store(m.now())
		}
		if m.posted.CompareAndSwap(h, l) {
			return m.add(queued)
		}
	}
}

// add sets a bit. True: nobody was running the actor, and the caller is to do it now.
func (m *Combining) add(bit uint32) (claimed bool) {
	for {
		s := m.state.Load()
		switch {
		case s&running == 0:
			if m.state.CompareAndSwap(s, s|bit|running) {
				return true
			}
		case s&bit != 0 || m.state.CompareAndSwap(s, s|bit):
			return false
		}
	}
}

// now is the time in ns since made, never 0.
func (m *Combining) now() int64 { return int64(time.Since(m.made)) + 1 }

// Queueing is how long messages have been waiting behind the running one, 0 when none is or nobody notes it. Safe for any
// goroutine.
func (m *Combining) Queueing() time.Duration {
	longest := time.Duration(0)
	for _, since := range []int64{m.since.Load(), m.line.since.Load()} {
		if m.opt.TimeQueueing && since != 0 {
			longest = max(longest, time.Duration(m.now()-since))
		}
	}
	return longest
}

// PostUserMessage implements actor.Mailbox. A message with a Link is posted by it; it is refused when the mailbox is full.
// Any other message is wrapped and exempt from the limit.
func (m *Combining) PostUserMessage(message any) {
	linked, ok := message.(messages.Linked)
	if !ok {
		m.count.Add(1)
		m.push(messages.NewForeignLink(message))
		return
	}
	if err := m.Post(linked.MailboxLink()); err != nil {
		messages.Refuse(message, err)
	}
}

// PostSystemMessage implements actor.Mailbox.
func (m *Combining) PostSystemMessage(message any) {
	l := messages.NewForeignLink(message)
	for {
		h := m.system.Load()
		l.SetNext(h)
		if m.system.CompareAndSwap(h, l) {
			break
		}
	}
	m.count.Add(1)
	m.push(messages.NewForeignLink(poke{}))
}

// RegisterHandlers implements actor.Mailbox.
func (m *Combining) RegisterHandlers(invoker actor.MessageInvoker, dispatcher actor.Dispatcher) {
	m.invoker, m.dispatcher = invoker, dispatcher
	if a, ok := invoker.(actor.Context); ok {
		actors.Enter(a.ActorSystem(), a.Self(), m)
	}
}

// leave takes the actor out of the census.
func (m *Combining) leave() {
	if a, ok := m.invoker.(actor.Context); ok {
		actors.Leave(a.ActorSystem(), a.Self())
	}
}

// Start implements actor.Mailbox: what has come since New is handled from now on, or once the gate is open.
func (m *Combining) Start() {
	if m.opt.Gate == nil || !m.opt.Gate.holds(m) {
		m.begin()
	}
}

// begin gives the claim of New up.
func (m *Combining) begin() {
	if !m.state.CompareAndSwap(running, 0) {
		m.start(m.take())
	}
}

// UserMessageCount implements actor.Mailbox: the messages queued behind the running one.
func (m *Combining) UserMessageCount() int { return int(m.count.Load()) }

// toldEvery is after how many messages of senders that found the actor idle Handled is brought up to date.
const toldEvery = 64

// Handled implements actors.Counted: how many messages have been handled, of which fewer than 64 may be missing.
func (m *Combining) Handled() int64 { return m.told.Load() }

// Panics implements actors.Counted.
func (m *Combining) Panics() int64 { return m.panics.Load() }

// Close makes the mailbox refuse everything that is queued and everything that comes later, with the cause. Only the
// first cause counts.
func (m *Combining) Close(cause error) {
	m.count.Add(1)
	m.push(messages.NewForeignLink(closing{cause: cause}))
}

// poke makes the runner look at the system messages; closing makes it refuse user messages.
type (
	poke    struct{}
	closing struct{ cause error }
)

// claimed handles the message of a sender that has just set running, when alone did not.
func (m *Combining) claimed(l *messages.Link) {
	l.SetNext(nil)
	m.start(l)
}

// start runs the actor for whoever has just set running.
func (m *Combining) start(l *messages.Link) {
	if m.opt.InlineBatches == 0 {
		m.todo = l
		m.dispatcher.Schedule(m.goOn)
		return
	}
	m.run(l, m.opt.InlineBatches)
}

// resume runs the actor on a goroutine of its own, until the mailbox is empty.
func (m *Combining) resume() {
	roomyStack(0)
	l := m.todo
	m.todo = nil
	m.run(l, -1)
}

// roomyStack grows the stack of a new goroutine once, while it is empty: it begins with 2 KiB, and what an actor does under the
// library's context would make it grow, and be copied, on the way down. It saves a tenth of the CPU time of one send at a time.
//
//go:noinline
func roomyStack(i int) byte {
	var room [7 << 10]byte
	return room[i]
}

// run handles a chain and whatever has come in meanwhile, and lets go. A positive budget counts batches; a negative one never
// ends.
func (m *Combining) run(l *messages.Link, budget int) {
	for {
		m.handle(l)
		m.told.Store(m.handled)
		m.plain = m.single != nil && m.opt.InlineBatches > 0 && m.cause == nil && !m.suspended
		if l = m.letGo(); l == nil {
			return
		}
		if budget--; budget == 0 {
			m.todo = l
			m.dispatcher.Schedule(m.goOn)
			return
		}
	}
}

// letGo gives the actor up, to a waiting sender if there is one, or returns what is to be handled first.
func (m *Combining) letGo() *messages.Link {
	for {
		s := m.state.Load()
		switch {
		case s&(queued|starving) != 0:
			if l := m.take(); l != nil {
				return l
			}
		case s&waiting == 0 || s&called != 0: // who has been called looks at the others when it lets go
			if m.state.CompareAndSwap(s, s&^running) {
				return nil
			}
		case m.callNext():
			return nil
		}
	}
}

// take empties the list of what was posted, and returns it oldest first; the senders that wait come behind it when one of them
// is starving. They are taken first: what one of them has posted before it began to wait is in the list then.
func (m *Combining) take() *messages.Link {
	var line *messages.Link
	if m.state.And(^uint32(queued|starving))&starving != 0 {
		m.state.And(^uint32(waiting))
		line = m.takeLine()
	}
	oldest, n := reverse(m.posted.Swap(nil), line)
	if m.opt.TimeQueueing {
		// A message that comes at the same time may lose its mark to this: the next one marks again.
		m.since.Store(0)
	}
	m.count.Add(-n)
	return oldest
}

// reverse turns a chain around, in front of another one, and counts it.
func reverse(l, behind *messages.Link) (oldest *messages.Link, n int64) {
	for oldest = behind; l != nil; n++ {
		next := l.Next()
		l.SetNext(oldest)
		oldest, l = l, next
	}
	return oldest, n
}
