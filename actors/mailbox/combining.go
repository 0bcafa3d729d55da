package mailbox

import (
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

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
	// comes in a batch. A panic is told to OnPanic; the message then is the actor's to answer.
	ReceiveSingle(message any) bool
}

// DefaultLimit bounds a mailbox whose options name no limit.
const DefaultLimit = 1 << 16

// busy is the mark at the bottom of the list while somebody runs the actor.
var busy = messages.NewLink(nil)

// Combining is the mailbox. It implements actor.Mailbox; Post is the way in for messages that carry a Link.
type Combining struct {
	// head is the whole protocol: nil = idle; busy = running, nothing queued; else running with a list of newer messages,
	// the newest first, that ends in busy.
	head   atomic.Pointer[messages.Link]
	queued atomic.Int64 // messages in the list that count against the limit
	since  atomic.Int64 // when the first one in the list came, in ns since made; 0: there is none, or nobody asks

	// Senders on other cores write the line above all the time; what the runner reads must not share it.
	_ [128 - 24]byte

	made time.Time

	opt        Options
	single     SingleReceiver // opt.Receiver, when it is one
	invoker    actor.MessageInvoker
	dispatcher actor.Dispatcher
	goOn       func() // bound once, so that scheduling does not allocate

	// Only the runner touches these; head hands them over.
	batch     Batch
	todo      *messages.Link // on its way to another goroutine
	held      *messages.Link // kept while suspended, oldest first
	suspended bool
	cause     error // set once closed
	plain     bool  // a claimed message may go straight to single: nothing else is to be looked at

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
	m.head.Store(busy) // claimed until Start: others may know the actor's name, or have the mailbox, before the actor can run
	return m
}

// Producer is the MailboxProducer that hands this one mailbox to the one actor that is spawned with it.
func (m *Combining) Producer() actor.MailboxProducer {
	return func() actor.Mailbox { return m }
}

// Post sends a message by its own link. It does not allocate. The error is messages.ErrBusy when the mailbox is full; then
// the message was not taken. A closed mailbox takes the message and refuses it.
func (m *Combining) Post(l *messages.Link) error {
	if m.head.CompareAndSwap(nil, busy) {
		if m.plain {
			m.alone(l)
		} else {
			l.SetNext(nil)
			m.start(l)
		}
		return nil
	}
	if m.queued.Add(1) > int64(m.opt.Limit) {
		m.queued.Add(-1)
		return messages.ErrBusy
	}
	m.push(l)
	return nil
}

// push queues a message that has been counted, or runs it when the mailbox has become idle.
func (m *Combining) push(l *messages.Link) {
	for {
		h := m.head.Load()
		if h == nil {
			if m.head.CompareAndSwap(nil, busy) {
				m.noneQueued()
				m.queued.Add(-1)
				l.SetNext(nil)
				m.start(l)
				return
			}
			continue
		}
		l.SetNext(h)
		if m.opt.TimeQueueing && (h == busy || m.since.Load() == 0) {
			m.since.Store(int64(time.Since(m.made)) + 1)
		}
		if m.head.CompareAndSwap(h, l) {
			return
		}
	}
}

// Queueing is how long messages have been waiting behind the running one, 0 when none is or nobody notes it. Safe for any
// goroutine.
func (m *Combining) Queueing() time.Duration {
	since := m.since.Load()
	if since == 0 {
		return 0
	}
	return time.Since(m.made) - time.Duration(since)
}

// noneQueued notes that the list was taken. A message that comes at the same time may lose its mark to it: the next one
// marks again.
func (m *Combining) noneQueued() {
	if m.opt.TimeQueueing {
		m.since.Store(0)
	}
}

// PostUserMessage implements actor.Mailbox. A message with a Link is posted by it; it is refused when the mailbox is full.
// Any other message is wrapped and exempt from the limit.
func (m *Combining) PostUserMessage(message any) {
	linked, ok := message.(messages.Linked)
	if !ok {
		m.queued.Add(1)
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
	m.queued.Add(1)
	m.push(messages.NewForeignLink(poke{}))
}

// RegisterHandlers implements actor.Mailbox.
func (m *Combining) RegisterHandlers(invoker actor.MessageInvoker, dispatcher actor.Dispatcher) {
	m.invoker, m.dispatcher = invoker, dispatcher
}

// Start implements actor.Mailbox: what has come since New is handled from now on, or once the gate is open.
func (m *Combining) Start() {
	if m.opt.Gate == nil || !m.opt.Gate.holds(m) {
		m.begin()
	}
}

// begin gives the claim of New up.
func (m *Combining) begin() {
	if !m.head.CompareAndSwap(busy, nil) {
		m.start(m.take())
	}
}

// UserMessageCount implements actor.Mailbox: the messages queued behind the running one.
func (m *Combining) UserMessageCount() int { return int(m.queued.Load()) }

// Close makes the mailbox refuse everything that is queued and everything that comes later, with the cause. Only the
// first cause counts.
func (m *Combining) Close(cause error) {
	m.queued.Add(1)
	m.push(messages.NewForeignLink(closing{cause: cause}))
}

// poke makes the runner look at the system messages; closing makes it refuse user messages.
type (
	poke    struct{}
	closing struct{ cause error }
)

// alone handles the one message of a sender that has just claimed the mailbox, on the shortest way.
func (m *Combining) alone(l *messages.Link) {
	if !m.receiveSingle(l.Message()) {
		l.SetNext(nil)
		m.run(l, m.opt.InlineBatches)
		return
	}
	if !m.head.CompareAndSwap(busy, nil) {
		m.run(m.take(), m.opt.InlineBatches)
	}
}

// start runs the actor for whoever has just claimed the mailbox.
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

// run handles a chain and whatever has come in meanwhile. A positive budget counts batches; a negative one never ends.
func (m *Combining) run(l *messages.Link, budget int) {
	for {
		m.handle(l)
		m.plain = m.single != nil && m.opt.InlineBatches > 0 && m.cause == nil && !m.suspended
		if m.head.CompareAndSwap(busy, nil) {
			return
		}
		l = m.take()
		if budget--; budget == 0 {
			m.todo = l
			m.dispatcher.Schedule(m.goOn)
			return
		}
	}
}

// take empties the list and returns it oldest first.
func (m *Combining) take() *messages.Link {
	oldest, n := reverse(m.head.Swap(busy), busy)
	m.noneQueued()
	m.queued.Add(-n)
	return oldest
}

// reverse turns a chain around, up to its end mark, and counts it.
func reverse(l, end *messages.Link) (oldest *messages.Link, n int64) {
	for ; l != end; n++ {
		next := l.Next()
		l.SetNext(oldest)
		oldest, l = l, next
	}
	return oldest, n
}
