package reput

import (
	"fmt"
	"runtime/debug"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
)

// panicError is a panic that was recovered.
type panicError struct {
	reason any
	stack  []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("%v: %v", messages.ErrPanicked, e.reason) }

func (e *panicError) Unwrap() error { return messages.ErrPanicked }

// recovered turns the value of a panic into an error: of a memory fault in a map, or of a bug.
func recovered(what string, reason any) error {
	if vfs.IsFault(reason) {
		return vfs.FaultError(what, reason)
	}
	return &panicError{reason: reason, stack: debug.Stack()}
}
