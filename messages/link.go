package messages

// Link lets a message stand in a combining mailbox without an allocation: embed it by value and bind it once, when the
// message is made. A message is in one mailbox at a time.
type Link struct {
	next    *Link
	message any
	since   int64
	foreign bool
}

// Linked is a message that carries its own Link.
type Linked interface {
	MailboxLink() *Link
}

// NewLink returns a link of its own for a message.
func NewLink(message any) *Link { return &Link{message: message} }

// NewForeignLink wraps a message that has no Link: a mailbox delivers it on its own, not in a batch.
func NewForeignLink(message any) *Link { return &Link{message: message, foreign: true} }

// Bind names the message that the link stands for.
func (l *Link) Bind(message any) { l.message = message }

// Message returns the bound message.
func (l *Link) Message() any { return l.message }

// Foreign tells whether the message has no Link of its own.
func (l *Link) Foreign() bool { return l.foreign }

// Next returns the link behind this one in its chain.
func (l *Link) Next() *Link { return l.next }

// SetNext chains a link behind this one; only the mailbox that holds both calls it.
func (l *Link) SetNext(next *Link) { l.next = next }

// Since is when the message came, in the mailbox's own time; only the mailbox uses it.
func (l *Link) Since() int64 { return l.since }

// SetSince notes when the message came; only the mailbox calls it.
func (l *Link) SetSince(ns int64) { l.since = ns }

// NextRef is where the link behind this one is kept; only the mailbox that holds both uses it.
func (l *Link) NextRef() **Link { return &l.next }
