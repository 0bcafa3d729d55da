package messages

// LogAppended tells the flusher and the replicator that the log's end has moved. One at most is pending.
type LogAppended struct {
	UpTo PhysicalOffset
}

// Failed tells every storage actor, and the store, that one of them has failed for good: nothing more is acknowledged.
type Failed struct {
	Role  string
	Cause error
}
