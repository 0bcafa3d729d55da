package messages

// AwaitDispatched asks a dispatcher to answer once all of its builders have built every record below UpTo, with the
// physical offset that they have reached. An offset behind the end of the log waits until the log grows; one that is
// reached already (0: any) is answered at once, so it also asks for the position. It is refused when a builder has
// failed.
//
// Sender: stop, recovery, replication, tests. Receiver: a dispatcher. Bound: 1024 may wait, more are refused with ErrBusy.
type AwaitDispatched struct {
	UpTo   PhysicalOffset
	Answer *Answer[PhysicalOffset]
}

// Refuse answers with an error.
func (m AwaitDispatched) Refuse(cause error) { m.Answer.Refuse(cause) }

// FlushQueues asks a queue builder to make every unit durable that is in its queues. The answer is the store timestamp in
// ms of the last record that is built, 0 when there was none; the flusher is told it by QueuesFlushed before, unless a
// queue lacks units.
//
// Sender: stop. Receiver: a queue builder. Bound: one for each caller that waits.
type FlushQueues struct {
	Answer *Answer[int64]
}

// Refuse answers with an error.
func (m FlushQueues) Refuse(cause error) { m.Answer.Refuse(cause) }

// FlushIndex asks the index builder to make every entry durable that it has put. The answer is the store timestamp in ms
// of the last record that is built, 0 when there was none; the flusher is told it by IndexFlushed before.
//
// Sender: stop. Receiver: the index builder. Bound: one for each caller that waits.
type FlushIndex struct {
	Answer *Answer[int64]
}

// Refuse answers with an error.
func (m FlushIndex) Refuse(cause error) { m.Answer.Refuse(cause) }

// RebuildQueue asks a queue builder to read the log again from the end of a queue on, and to append what the queue lacks:
// it does so by itself at a gap, and can be asked again once the log has been mended. The answer is the queue offset behind
// the last unit; an error says why the queue still lacks records.
//
// Sender: repair, an operator. Receiver: the queue builder of that queue's shard. Bound: one for each caller that waits.
type RebuildQueue struct {
	Queue  QueueKey
	Answer *Answer[QueueOffset]
}

// Refuse answers with an error.
func (m RebuildQueue) Refuse(cause error) { m.Answer.Refuse(cause) }

// DestroyTopic asks a queue builder to delete the queues of a topic, in two steps. The first, with Below -1, is sent before the
// writer forgets the topic's offsets: from then on a message with queue offset 0 replaces a queue that has others. The second
// has the log's end at which they were forgotten: queues that have nothing from there on are deleted. Each is answered when
// it is done, the second when the deletion is durable.
//
// Sender: deletion of a topic. Receiver: the queue builder of each shard. Bound: one for each caller that waits.
type DestroyTopic struct {
	Topic  string
	Below  PhysicalOffset
	Answer *Answer[struct{}]
}

// Refuse answers with an error.
func (m DestroyTopic) Refuse(cause error) { m.Answer.Refuse(cause) }

// DestroyQueue asks a queue builder to delete a queue with its files. It is answered when the deletion is durable; a queue
// that is not there is no error. A message that comes later makes a queue that begins at its offset.
// A queue with a record at or behind Below stays; 0 is no limit.
//
// Sender: cleaner, deletion of a topic. Receiver: the queue builder of that queue's shard. Bound: one for each caller that
// waits.
type DestroyQueue struct {
	Queue     QueueKey
	Below     PhysicalOffset
	KeepRange bool // an empty queue stays, that begins where this one ends: its offsets go on
	Answer    *Answer[struct{}]
}

// Refuse answers with an error.
func (m DestroyQueue) Refuse(cause error) { m.Answer.Refuse(cause) }
