package messages

import (
	"sync/atomic"
	"time"
)

// RemarkDuplicate is in the remark of a put that is refused because a message with its unique key is stored already.
const RemarkDuplicate = "a message with this unique key is stored already"

// PutResult tells what became of a put (AppendMessageResult and PutMessageStatus of spec/store.md §3.3).
type PutResult struct {
	Status PutStatus
	// Alone: no other put waited for a replica. Who is told may write an answer at once, on the goroutine that tells him, if that does not block.
	Alone            bool
	PhysicalOffset   PhysicalOffset // of the (first) record
	QueueOffset      QueueOffset    // of the (first) record
	Bytes            int32          // of all records
	Count            int32          // records: 1, or the size of the batch
	StoreTimestampMs int64
}

// End is the physical offset behind the last record.
func (r *PutResult) End() PhysicalOffset { return r.PhysicalOffset + PhysicalOffset(r.Bytes) }

// PutMessage asks the writer to append Records, which the caller has encoded with queue offset, physical offset and store
// timestamp left zero. It is pooled by the caller: whoever sends it must not touch it until it is complete, and whoever
// completes it must not touch it afterwards.
//
// It is complete when every promise is met: the writer opens it with one promise (appended) and may hand it to the
// flusher (durable) and the replicator (replicated), each of which holds one more. Whoever meets the last one wakes the
// caller.
type PutMessage struct {
	link Link

	Records    []byte // one encoded record, or several of one batch back to back
	Count      int32  // records in Records, at least 1
	Queue      QueueKey
	SysFlag    int32 // transaction bits decide whether the queue advances
	WaitStored bool  // WAIT: wait for flush and replicas as configured
	Multi      bool  // Further is not empty

	// What everybody touches stands together, in three cache lines.
	shared   bool // somebody besides the writer holds a promise; set before the message is handed on
	inline   bool // completed on the caller's own goroutine: nobody else has seen the message
	promises atomic.Int32
	state    atomic.Uint32 // open, complete, parked or called
	park     chan struct{}

	// Result and Err are set by the actors and valid once complete. Err is the cause behind a status that is not OK.
	Result PutResult
	Err    error

	// OnDone, when set, is called instead of waking a waiter. It runs on an actor's goroutine: it must not block, must not
	// send to the writer synchronously, and owns the message from then on.
	OnDone func(*PutMessage)

	Deadline time.Time // for every promise; zero: none

	replica       ReplicaWait // the message, as the one who waits for replicas holds it
	replicaStatus PutStatus   // what replicas have not done; valid once their promise is met
	here          bool        // what ReplicaWait.Here tells

	// Further are the other queues of a single record (INNER_MULTI_DISPATCH): the writer adds its queue offset in each to the
	// record, whose properties have PropertiesBytes. EncodedBytes is the writer's: how long the record was without them.
	Further         []QueueKey
	PropertiesBytes int
	EncodedBytes    int

	// Charged is what the caller has been admitted with, in bytes; actors do not look at it.
	Charged int64
	// Scratch is room for the caller's own copy of the message that it encodes; actors do not look at it.
	Scratch Message
	// Tell is the caller's, for its OnDone; actors do not look at it.
	Tell func(PutResult, error)
}

// States of a put, as its caller and those who answer it see it.
const (
	putOpen     = iota
	putComplete // every promise is met
	putParked   // open, and the caller waits on park
	putCalled   // open, and the caller is not to park but to look again
)

// NewPutMessage returns a message ready for use; keep it in a pool.
func NewPutMessage() *PutMessage {
	p := &PutMessage{park: make(chan struct{}, 1)}
	p.link.Bind(p)
	p.replica.put = p
	p.replica.link.Bind(&p.replica)
	p.promises.Store(1)
	return p
}

// MailboxLink returns the link by which a mailbox chains the message.
func (p *PutMessage) MailboxLink() *Link { return &p.link }

// Reset makes a completed message ready for the next put; Records keeps its capacity.
func (p *PutMessage) Reset() {
	p.Records = p.Records[:0]
	p.Count, p.SysFlag, p.WaitStored = 0, 0, false
	if p.Multi {
		p.Multi, p.Further, p.PropertiesBytes, p.EncodedBytes = false, nil, 0, 0
	}
	p.Queue, p.Deadline = QueueKey{}, time.Time{}
	p.Result, p.OnDone, p.Tell = PutResult{}, nil, nil
	p.Scratch = Message{}
	p.Reopen()
}

// Reopen makes a completed message ready to be put once more, with the same records.
func (p *PutMessage) Reopen() {
	if p.Err != nil {
		p.Err = nil
	}
	if p.inline {
		p.inline = false
		return
	}
	p.shared, p.replicaStatus = false, PutOK
	p.promises.Store(1)
	p.state.Store(putOpen)
}

// Promise adds an open promise; the one who adds it still holds another, and calls it before it hands the message on.
func (p *PutMessage) Promise() {
	p.shared = true
	p.promises.Add(1)
}

// Fulfil meets one promise. The last one completes the message.
func (p *PutMessage) Fulfil() {
	if p.shared && p.promises.Add(-1) != 0 {
		return
	}
	if p.replicaStatus != PutOK && p.Result.Status.Stored() && p.Err == nil {
		p.Result.Status = p.replicaStatus // what a replica lacks counts more than a flush (spec/store.md §3.7)
	}
	if done := p.OnDone; done != nil {
		done(p)
		return
	}
	if p.state.Swap(putComplete) == putParked {
		p.park <- struct{}{}
	}
}

// FulfilInline is Fulfil for a message that is handled on its caller's own goroutine, before Post returns: it needs no
// synchronisation.
func (p *PutMessage) FulfilInline() {
	if p.shared || p.OnDone != nil {
		p.Fulfil()
		return
	}
	p.inline = true
}

// Refuse completes a message that nothing was done for: the status is SERVICE_NOT_AVAILABLE. Only the holder of the one
// open promise may call it.
func (p *PutMessage) Refuse(cause error) {
	p.Result.Status, p.Err = ServiceNotAvailable, cause
	p.Fulfil()
}

// Fail completes a message with a status and its cause, in the place of Fulfil.
func (p *PutMessage) Fail(status PutStatus, cause error) {
	p.Result.Status, p.Err = status, cause
	p.Fulfil()
}

// Done tells whether the message is complete; only its caller asks. It is meaningless when OnDone is set.
func (p *PutMessage) Done() bool { return p.inline || p.state.Load() == putComplete }

// Wait returns when the message is complete; every promise carries a deadline, so it ends. Only the caller waits. It parks
// without looking again: a waiter that stays awake fights the one who appends for its cache lines (docs/adr/0002).
func (p *PutMessage) Wait() {
	if p.Done() {
		return
	}
	if p.state.CompareAndSwap(putOpen, putParked) {
		<-p.park
	}
}

// Park implements mailbox.Waiting: it returns when the message is complete (true) or Unpark has been called (false). Only the
// caller parks.
func (p *PutMessage) Park() (complete bool) {
	for {
		if p.state.CompareAndSwap(putOpen, putParked) {
			<-p.park
			return p.state.Load() == putComplete
		}
		if p.state.CompareAndSwap(putCalled, putOpen) {
			return false
		}
		if p.state.Load() == putComplete {
			return true
		}
	}
}

// Unpark implements mailbox.Waiting: it ends a Park, the one under way or the next one. Only who holds the message, still open,
// calls it.
func (p *PutMessage) Unpark() {
	for {
		if p.state.CompareAndSwap(putParked, putOpen) {
			p.park <- struct{}{}
			return
		}
		if p.state.CompareAndSwap(putOpen, putCalled) {
			return
		}
	}
}
