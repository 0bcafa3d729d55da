package messages

import "time"

// TagFilter decides on a consume-queue unit before the log is touched. It is pure and safe for concurrent use.
type TagFilter func(tagsCode int64) bool

// GetMessage asks for messages of one queue from an offset on.
type GetMessage struct {
	Queue       QueueKey
	Offset      QueueOffset
	MaxMessages int       // at most; the store's own limits apply too
	MaxBytes    int       // 0: the store's limit
	Tags        TagFilter // nil: all
	WillRead    bool      // the caller goes through the records' bytes: they are fetched into the cache on the way
}

// GetResult is what a get has found. Records lie in the log itself, uncopied: they are valid until Release, which the
// caller calls exactly once. Touching them can fault when the disk fails (segments/vfs.Guard).
type GetResult struct {
	Status     GetStatus
	NextOffset QueueOffset // where to go on
	MinOffset  QueueOffset
	MaxOffset  QueueOffset // behind the last readable message
	Records    [][]byte    // whole records, raw
	Bytes      int         // of all records
	Behind     int64       // bytes between the last record looked at and the end of the log
	Oldest     int64       // the same from the first one of Records; where there are none, of no meaning

	// OnRelease, when set, takes the empty result back for its next use.
	OnRelease func(*GetResult)

	holds []Releaser
}

// Releaser is something that is held while a result is in use.
type Releaser interface {
	Release()
}

// Hold keeps something until the result is released.
func (r *GetResult) Hold(h Releaser) { r.holds = append(r.holds, h) }

// Release lets go of the log; the result must not be used afterwards.
func (r *GetResult) Release() {
	for _, h := range r.holds {
		h.Release()
	}
	clear(r.Records)
	clear(r.holds)
	again := r.OnRelease
	*r = GetResult{Records: r.Records[:0], holds: r.holds[:0]}
	if again != nil {
		again(r)
	}
}

// ParkPull holds a read back until a message arrives in its queue at or behind Offset that passes Tags, or the deadline
// passes. The pull hold calls Wake exactly once, on its own goroutine: Wake must not block.
type ParkPull struct {
	Queue    QueueKey
	Offset   QueueOffset
	Tags     TagFilter
	Deadline time.Time
	Wake     func(WakeReason)
}

// Refuse wakes the pull because nobody will hold it.
func (p *ParkPull) Refuse(error) { p.Wake(WakeClosed) }

// UnparkPull takes a parked pull out again (its connection has gone); it is woken with WakeClosed if it was still held.
type UnparkPull struct {
	Pull *ParkPull
}

// WakeReason says why a parked pull was woken.
type WakeReason int

// Reasons of a wake-up.
const (
	WakeArrived WakeReason = iota // a message is there: read again
	WakeExpired                   // the deadline has passed
	WakeClosed                    // the store is stopping, or holds too many pulls: answer at once
)
