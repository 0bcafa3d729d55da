package messages

// FlushTick is the flusher's own timer (flushIntervalCommitLog).
type FlushTick struct{}

// FlushNow asks the flusher to make everything durable that is appended, and to write the checkpoint. A stop uses it.
type FlushNow struct {
	Answer *Answer[PhysicalOffset] // the flushed end
}

// Refuse answers with an error.
func (m FlushNow) Refuse(cause error) { m.Answer.Refuse(cause) }

// CommitNow asks the committer to make everything readable that is appended.
type CommitNow struct {
	Answer *Answer[PhysicalOffset] // the readable end
}

// Refuse answers with an error.
func (m CommitNow) Refuse(cause error) { m.Answer.Refuse(cause) }

// QueuesFlushed tells the flusher that every consume queue is durable up to the records of this store timestamp.
type QueuesFlushed struct {
	StoreTimestampMs int64
}

// IndexFlushed tells the flusher that the index is durable up to the records of this store timestamp.
type IndexFlushed struct {
	StoreTimestampMs int64
}
