package consumequeue

import (
	"errors"
	"fmt"

	"github.com/actormq/actormq/messages"
)

// Errors of a queue; test them with errors.Is. Damage in a file is a *segments.CorruptionError.
var (
	// ErrGap: a unit behind the end was given, units are missing between (a *PlaceError has the numbers).
	ErrGap = errors.New("units are missing before this one")
	// ErrOrder: a record further back in the log than the last one, or a new record for an offset that is taken.
	ErrOrder = errors.New("unit out of order")
	// ErrUnit: a unit that names no record (zeros, a filler, or numbers that make no sense).
	ErrUnit = errors.New("not a valid unit")
	// ErrBelowMin: the offset is below the first readable one.
	ErrBelowMin = errors.New("queue offset below the minimum")
	// ErrAboveMax: the offset is behind the end of the queue.
	ErrAboveMax = errors.New("queue offset above the maximum")
	// ErrChanged: the queue was cut or deleted while it was read; ask again.
	ErrChanged = errors.New("queue was cut while it was read")
	// ErrUnsynced: a sync has failed: what can be read need not be on the disk, and a later sync that does not fail says nothing else.
	ErrUnsynced = errors.New("not made durable")
	// ErrDestroyed: the queue has been deleted.
	ErrDestroyed = errors.New("queue has been deleted")
	// ErrTopic: the topic cannot be a folder name.
	ErrTopic = errors.New("topic is not a folder name")
	// ErrOptions: the options make no sense.
	ErrOptions = errors.New("invalid consume-queue options")
)

// PlaceError is a unit that does not belong where it was to go. Err is ErrGap or ErrOrder.
type PlaceError struct {
	Queue       messages.QueueKey
	At, Max     messages.QueueOffset    // asked for, and the end of the queue
	Physical    messages.PhysicalOffset // of the record
	PhysicalEnd messages.PhysicalOffset // of the queue's last record
	Err         error
}

func (e *PlaceError) Error() string {
	return fmt.Sprintf("consume queue %s/%d: unit for queue offset %d (physical offset %d), the queue ends at %d (%d): %v",
		e.Queue.Topic, e.Queue.QueueID, e.At, e.Physical, e.Max, e.PhysicalEnd, e.Err)
}

// Unwrap returns ErrGap or ErrOrder.
func (e *PlaceError) Unwrap() error { return e.Err }

// fail names the queue in an error.
func (q *Queue) fail(what string, err error) error {
	return fmt.Errorf("consume queue %s/%d: %s: %w", q.key.Topic, q.key.QueueID, what, err)
}
