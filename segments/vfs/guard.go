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

// fault is the value of the panic that a memory fault at an address is.
type fault interface {
	error
	Addr() uintptr
}

// IsFault tells whether the value of a panic is a memory fault at an address, rather than a bug.
func IsFault(recovered any) bool {
	_, is := recovered.(fault)
	return is
}

// FaultError turns a recovered panic value into an error when it is a memory fault at an address, and panics again with
// the same value when it is not.
func FaultError(what string, recovered any) error {
	if f, ok := recovered.(fault); ok {
		return fmt.Errorf("%s: %w at address %#x: %w", what, ErrFault, f.Addr(), f)
	}
	panic(recovered)
}
