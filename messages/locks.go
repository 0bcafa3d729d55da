package messages

// MessageQueue names a queue of a broker, as clients do (spec/remoting.md §11.2).
type MessageQueue struct {
	BrokerName string
	QueueID    int32
	Topic      string
}

// LockQueues asks for the sole right of a client to consume queues of a group in order (spec/remoting.md §11.2): for 60 s, or
// until UnlockQueues. It renews what the client holds. The answer is what it holds now of the queues, in their order.
//
// Sender: the gateway. Receiver: the lock keeper. Bound: the keeper's mailbox, ErrBusy beyond.
type LockQueues struct {
	link Link

	Group    string
	ClientID string
	Queues   []MessageQueue
	Answer   *Answer[[]MessageQueue]
}

// MailboxLink returns the link by which a mailbox chains the message.
func (m *LockQueues) MailboxLink() *Link { m.link.Bind(m); return &m.link }

// Refuse answers with an error.
func (m *LockQueues) Refuse(cause error) { m.Answer.Refuse(cause) }

// UnlockQueues gives locks back; those that the client does not hold stay as they are.
//
// Sender: the gateway. Receiver: the lock keeper. Answer: may be nil (one-way); else nil once it is done. Bound: the
// keeper's mailbox; what is refused with ErrBusy expires by itself.
type UnlockQueues struct {
	link Link

	Group    string
	ClientID string
	Queues   []MessageQueue
	Answer   *Answer[struct{}]
}

// MailboxLink returns the link by which a mailbox chains the message.
func (m *UnlockQueues) MailboxLink() *Link { m.link.Bind(m); return &m.link }

// Refuse answers with an error.
func (m *UnlockQueues) Refuse(cause error) { m.Answer.Refuse(cause) }

// LocksTick is the lock keeper's own timer: it forgets locks that have expired.
type LocksTick struct{}
