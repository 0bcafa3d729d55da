package actors

import (
	"fmt"
	"runtime/debug"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
)

// Protect runs fn on a goroutine that no mailbox guards, or in the middle of a message whose sender must not be left without
// an answer. A panic is a bug and becomes an error: it wraps messages.ErrPanicked, and has the stack in its text; a memory
// fault wraps vfs.ErrFault.
func Protect(what string, fn func() error) (err error) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if vfs.IsFault(r) {
			err = vfs.FaultError(what, r)
			return
		}
		err = fmt.Errorf("%s: %w: %v\n%s", what, messages.ErrPanicked, r, debug.Stack())
	}()
	return fn()
}
