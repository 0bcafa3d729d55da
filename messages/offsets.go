package messages

import "time"

// NoOffset is the consumer offset of a group that has none for a queue.
const NoOffset QueueOffset = -1

// CommitOffset says how far a group has consumed a queue: the next offset it wants. It may go backwards: that is counted and
// logged (and refused when the keeper is told to, unless a reset is expected). A negative offset, and a topic or group that
// the file could not name, are ignored. It is durable with the next save.
//
// Sender: the gateway, an embedder. Receiver: the offset keeper. Answer: may be nil (one-way); else nil once the offset
// is published. Bound: the keeper's mailbox; beyond it the commit is refused with ErrBusy, a later one makes up for it.
type CommitOffset struct {
	link Link

	Group  string
	Queue  QueueKey
	Offset QueueOffset
	Answer *Answer[struct{}]
}

// MailboxLink returns the link by which a mailbox chains the message.
func (m *CommitOffset) MailboxLink() *Link { m.link.Bind(m); return &m.link }

// Refuse answers with an error.
func (m *CommitOffset) Refuse(cause error) { m.Answer.Refuse(cause) }

// QueryOffset asks for a group's offset of a queue, behind every commit that the same sender has sent before. The answer is
// NoOffset when there is none.
//
// Sender: the gateway. Receiver: the offset keeper. Bound: the keeper's mailbox, ErrBusy beyond.
type QueryOffset struct {
	link Link

	Group  string
	Queue  QueueKey
	Answer *Answer[QueueOffset]
}

// MailboxLink returns the link by which a mailbox chains the message.
func (m *QueryOffset) MailboxLink() *Link { m.link.Bind(m); return &m.link }

// Refuse answers with an error.
func (m *QueryOffset) Refuse(cause error) { m.Answer.Refuse(cause) }

// CloneOffsets gives a group the offsets of another one (CLONE_GROUP_OFFSET, spec/remoting.md §17.4): of a topic, in place
// of those it has there, or of all topics except the other group's retry topic. The answer comes once that is durable: the
// number of topics that were copied.
//
// Sender: the gateway, tools. Receiver: the offset keeper. Bound: the keeper's mailbox, ErrBusy beyond.
type CloneOffsets struct {
	link Link

	From, To string // groups
	Topic    string // empty: all
	Answer   *Answer[int]
}

// MailboxLink returns the link by which a mailbox chains the message.
func (m *CloneOffsets) MailboxLink() *Link { m.link.Bind(m); return &m.link }

// Refuse answers with an error.
func (m *CloneOffsets) Refuse(cause error) { m.Answer.Refuse(cause) }

// RemoveOffsets forgets the offsets of a group, of a topic, or of a group in a topic. The answer comes once that is durable:
// how many pairs of topic and group are gone.
//
// Sender: deletion of a topic or a group. Receiver: the offset keeper. Bound: the keeper's mailbox, ErrBusy beyond.
type RemoveOffsets struct {
	link Link

	Group  string // empty: of every group
	Topic  string // empty: of every topic; not both empty
	Answer *Answer[int]
}

// MailboxLink returns the link by which a mailbox chains the message.
func (m *RemoveOffsets) MailboxLink() *Link { m.link.Bind(m); return &m.link }

// Refuse answers with an error.
func (m *RemoveOffsets) Refuse(cause error) { m.Answer.Refuse(cause) }

// MergeOffsets takes over the offsets of the master (spec/store.md §12.7), each when it is higher than the own one. JSON is
// the body of GET_ALL_CONSUMER_OFFSET. What Wanted refuses is left out: it is asked when the message is handled, so that a removal
// which was sent meanwhile stays one. The answer comes once they are published; they are durable with the next save.
//
// Sender: the slave's synchronisation. Receiver: the offset keeper. Bound: one at a time.
type MergeOffsets struct {
	link Link

	JSON   []byte
	Lower  bool                    // take lower ones too, as RocketMQ does
	Wanted func(topic string) bool // nil: all; the receiver calls it
	Answer *Answer[struct{}]
}

// MailboxLink returns the link by which a mailbox chains the message.
func (m *MergeOffsets) MailboxLink() *Link { m.link.Bind(m); return &m.link }

// Refuse answers with an error.
func (m *MergeOffsets) Refuse(cause error) { m.Answer.Refuse(cause) }

// ExpectReset announces that a group's clients are about to commit lower offsets of a topic, because an operator has asked for
// it: until then such commits are neither refused nor counted.
//
// Sender: the gateway (INVOKE_BROKER_TO_RESET_OFFSET). Receiver: the offset keeper. No answer. Bound: the keeper's mailbox.
type ExpectReset struct {
	link Link

	Group, Topic string
	Until        time.Time
}

// MailboxLink returns the link by which a mailbox chains the message.
func (m *ExpectReset) MailboxLink() *Link { m.link.Bind(m); return &m.link }

// SaveOffsets asks for every offset to be made durable that was committed before. The answer is the error of the write.
//
// Sender: stop, backup. Receiver: the offset keeper. Bound: the keeper's mailbox, ErrBusy beyond.
type SaveOffsets struct {
	link Link

	Answer *Answer[struct{}]
}

// MailboxLink returns the link by which a mailbox chains the message.
func (m *SaveOffsets) MailboxLink() *Link { m.link.Bind(m); return &m.link }

// Refuse answers with an error.
func (m *SaveOffsets) Refuse(cause error) { m.Answer.Refuse(cause) }

// SaveOffsetsTick is the offset keeper's own timer (flushConsumerOffsetInterval).
type SaveOffsetsTick struct{}
