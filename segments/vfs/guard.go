package vfs

import (
	"fmt"
	"runtime/debug"
)

// Guard runs fn, which touches mappings, and turns a memory fault in it into an error that wraps ErrFault instead of the
// end of the process. Any other panic goes on. It costs a few nanoseconds and does not allocate when fn does not.
func Guard(what string, fn func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if r := recover(); r != nil {
			err = FaultError(what, r)
		}
	}()
	return fn()
}

// FaultError turns a recovered panic value into an error when it is a memory fault at an address, and panics again with
// the same value when it is not.
func FaultError(what string, recovered any) error {
	if f, ok := recovered.(interface {
		error
		Addr() uintptr
	}); ok {
		return fmt.Errorf("%s: %w at address %#x: %w", what, ErrFault, f.Addr(), f)
	}
	panic(recovered)
}
