package messages

import "errors"

// Errors that a caller can decide on; test them with errors.Is.
var (
	// ErrClosed: the actor or the store has stopped taking requests.
	ErrClosed = errors.New("closed")
	// ErrBusy: a bounded queue is full; try again later.
	ErrBusy = errors.New("busy: the queue is full")
	// ErrFailed: a storage actor has failed for good; the wrapped cause says why.
	ErrFailed = errors.New("storage actor failed")
	// ErrDiskFull: the disk is too full to take more messages; the message says which, how full, and the limit.
	ErrDiskFull = errors.New("the disk is full")
	// ErrPanicked: handling the request panicked; whether it took effect is unknown.
	ErrPanicked = errors.New("handling the request panicked")
)
