package messages

import "time"

// AppendReplica asks the writer of a slave to append bytes of its master's log as they are: parts of records, the blank at
// the end of a segment, whatever stands there (spec/store.md §12.2). At is the place of the first byte: the end of the log,
// or, while it is empty, where it begins. The bytes lie in one segment. The sender must not touch them until Done is complete.
//
// Sender: the follower. Receiver: writer. Bound: one at a time.
type AppendReplica struct {
	link Link

	At    PhysicalOffset
	Bytes []byte
	Done  *PutMessage // completed when the bytes are readable; PutOK, or Err says why nothing was appended
}

// NewAppendReplica returns a message that can be sent again and again.
func NewAppendReplica() *AppendReplica {
	m := &AppendReplica{Done: NewPutMessage()}
	m.link.Bind(m)
	return m
}

// MailboxLink returns the link by which a mailbox chains the message.
func (m *AppendReplica) MailboxLink() *Link { return &m.link }

// Refuse completes a message that nothing was done for.
func (m *AppendReplica) Refuse(cause error) { m.Done.Refuse(cause) }

// ReplicaWait is a put that waits until a replica has it (SYNC_MASTER). It is a part of the put, so that the put can stand in
// two mailboxes at once, the flusher's and this one's.
//
// Sender: the writer. Receiver: the replicator. Bound: the replicator's mailbox; beyond it the put is told
// FLUSH_SLAVE_TIMEOUT.
type ReplicaWait struct {
	link Link
	put  *PutMessage

	End      PhysicalOffset // a replica has the put when it has everything below
	Deadline time.Time
}

// MailboxLink returns the link by which a mailbox chains the message.
func (w *ReplicaWait) MailboxLink() *Link { return &w.link }

// AwaitReplica adds the promise that a replica has the put, and returns who holds it. The writer calls it while it holds a
// promise itself, before the put is handed on to anybody else.
func (p *PutMessage) AwaitReplica(deadline time.Time) *ReplicaWait {
	if !p.Deadline.IsZero() && p.Deadline.Before(deadline) {
		deadline = p.Deadline
	}
	p.replica.End, p.replica.Deadline, p.here = p.Result.End(), deadline, false
	p.Promise()
	return &p.replica
}

// Settle meets the promise: PutOK, or what is told to the caller instead. The put must not be touched afterwards.
func (w *ReplicaWait) Settle(status PutStatus) {
	w.put.replicaStatus = status
	w.put.Fulfil()
}

// SetHere says that the put was alone: it is sent to replicas by the goroutine that tells of it. It is said before that.
func (w *ReplicaWait) SetHere() { w.put.here = true }

// Here tells whether it was said.
func (w *ReplicaWait) Here() bool { return w.put.here }

// SettleAlone is Settle of the only put that was waiting.
func (w *ReplicaWait) SettleAlone(status PutStatus) {
	w.put.Result.Alone = true
	w.Settle(status)
}

// Refuse meets the promise where nobody waits for replicas any more.
func (w *ReplicaWait) Refuse(error) { w.Settle(SlaveNotAvailable) }

// FollowMaster tells the follower where the master of its broker replicates from: what a name server says, where no option
// does (haMasterAddress).
//
// Sender: registration at a name server. Receiver: follower. Bound: one for each answer of a name server.
type FollowMaster struct {
	Address string // host:port
}

// Replica is a slave that is connected to this master.
type Replica struct {
	Address string         // of its end of the connection
	Acked   PhysicalOffset // it has said that it has everything below
	Node    string         // of a replica group: who it is
}

// Following is how a slave gets on with its master.
type Following struct {
	Master    string // host:port
	Connected bool   // the master has answered on this connection
	Err       error  // why the last connection has ended, or could not be made; nil while Connected
}
