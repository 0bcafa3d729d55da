package messages

import (
	"errors"
	"time"
)

// GroupTransactions is the consumer group whose offsets of the half queue and the op queue say how far transactions have been
// worked off (spec/store.md §11.4).
const GroupTransactions = "CID_RMQ_SYS_TRANS"

// Why a transaction can't be ended; test them with errors.Is.
var (
	// ErrNoHalf: there is no half message at the physical offset.
	ErrNoHalf = errors.New("no half message there")
	// ErrTransactionGroup: the half message belongs to another producer group.
	ErrTransactionGroup = errors.New("the producer group is not that of the half message")
	// ErrTransactionOffset: the half message has another queue offset.
	ErrTransactionOffset = errors.New("the queue offset is not that of the half message")
	// ErrTransactionOver: the transaction has been rolled back, or given up after too many checks; it can't be committed.
	ErrTransactionOver = errors.New("the transaction is over")
)

// Half names a half message: the undecided message of a transaction.
type Half struct {
	Group          string // of producers
	QueueOffset    QueueOffset
	PhysicalOffset PhysicalOffset
}

// EndTransaction commits or rolls back a half message (spec/store.md §11.2). Done is called exactly once, on an actor's
// goroutine: it must not block. No error means that the transaction has ended, as asked for or, if it had ended before, as it did
// then; a commit's result is that of the committed message, zero when it had been committed before. The errors are those above,
// or why a message could not be stored, with its status. When nothing was ended the half message stays undecided.
//
// Sender: the gateway, an embedder. Receiver: the transaction actor. Bound: its mailbox, ErrBusy beyond.
type EndTransaction struct {
	link Link

	Half
	Commit   bool      // else roll back
	Deadline time.Time // of all that has to be stored; zero: 5 s from when it is begun
	Done     func(PutResult, error)
}

// MailboxLink returns the link by which a mailbox chains the message.
func (m *EndTransaction) MailboxLink() *Link { m.link.Bind(m); return &m.link }

// Refuse answers with an error.
func (m *EndTransaction) Refuse(cause error) {
	m.Done(PutResult{Status: ServiceNotAvailable}, cause)
}

// HalfPrepared tells that half messages have been stored.
//
// Sender: whoever stores them, through a bell. Receiver: the transaction actor. No answer. Bound: one pending.
type HalfPrepared struct{}

// TransactionTick is the transaction actor's own timer (transactionCheckInterval): time for a round.
type TransactionTick struct{}

// CheckTransaction asks what has become of a transaction. Whoever knows ends it by Half.
type CheckTransaction struct {
	Half

	Message StoredMessage // as the producer has sent it: topic and queue are the real ones; offsets and properties are the half's
	Times   int           // how often it has been asked, this time included
}
