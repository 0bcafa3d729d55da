package messages

// LogDamage tells that a dispatcher found no record in [From, To) of the log that it can believe: what stood there is not
// dispatched; dispatching goes on at To. Err says why, with file and offset in the file (a *segments.CorruptionError)
// where there is a file.
//
// Sender: a dispatcher, through its OnDamage callback. Receiver: the store's events. Bound: once for each place.
type LogDamage struct {
	From, To PhysicalOffset
	Err      error
}

// QueueProblem tells that a record does not fit into its consume queue. No unit is ever put at another place than its own
// (spec/store.md §16, W26).
//
// Sender: a queue builder, through its OnProblem callback. Receiver: the store's events. Bound: once for each change of a
// queue's state; refused records are told the 1st, 2nd, 4th, 8th … time for each queue.
type QueueProblem struct {
	Kind           ProblemKind
	Queue          QueueKey
	QueueOffset    QueueOffset    // of the record; where the queue ends, for QueueRebuilt
	PhysicalOffset PhysicalOffset // of the record, -1: none
	Count          int64          // records refused so far, for RecordRefused
	Err            error          // nil for QueueRebuilt
}

// ProblemKind says what became of the queue.
type ProblemKind int

// Kinds of problems.
const (
	// QueueGap: units are missing before the record. The log is read again from the end of the queue on; meanwhile the
	// queue does not grow.
	QueueGap ProblemKind = iota + 1
	// QueueRebuilt: the missing units are there, the queue grows again.
	QueueRebuilt
	// QueueStuck: the log does not hold the missing records. The queue stays as it is, without the later ones: they are in
	// the log, and are found once it has been mended (RebuildQueue, or a restart).
	QueueStuck
	// QueueRestarted: the log does not hold the missing records, nor any that the queue names: it begins anew at the record.
	QueueRestarted
	// RecordRefused: the record has no place in a queue (its offset is taken by another record, its topic is no folder name):
	// it is left out.
	RecordRefused
)

var problemNames = [...]string{
	QueueGap: "gap", QueueRebuilt: "rebuilt", QueueStuck: "stuck", QueueRestarted: "restarted", RecordRefused: "refused",
}

func (k ProblemKind) String() string { return name(problemNames[:], int(k)) }
