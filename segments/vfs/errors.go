package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

var (
	errNotRegular = errors.New("not a regular file")
	errRange      = errors.New("the range is not in the file")
)

// pathError names the operation and the path, once, and marks a full disk; the cause stays. The result is an
// *fs.PathError or nil.
func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: mark(bare(err))}
}

// rangeError is pathError with the place in the file.
func rangeError(op, name string, off, n int64, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: fmt.Errorf("%d bytes at %d: %w", n, off, mark(bare(err)))}
}

// bare takes off the operation and the path that package os has put on.
func bare(err error) error {
	switch e := err.(type) { //nolint:errorlint // only the outermost may be taken off
	case *fs.PathError:
		return e.Err
	case *os.LinkError:
		return e.Err
	case *os.SyscallError:
		return e.Err
	}
	return err
}

func mark(err error) error {
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	if full && !errors.Is(err, ErrNoSpace) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return err
}

// explainMap names the limit that a mapping has most likely met.
func explainMap(err error) error {
	if errors.Is(err, syscall.ENOMEM) {
		return fmt.Errorf("%w: too many mappings (vm.max_map_count), or no address space left", err)
	}
	return err
}

// checkMap refuses a mapping that would fault at once, or that does not fit the address space.
func checkMap(n, size int64) error {
	if n < 1 || n > size || int64(int(n)) != n {
		return fmt.Errorf("cannot map %d bytes of %d: %w", n, size, fs.ErrInvalid)
	}
	return nil
}

// checkSpan refuses [off, off+n) when it is negative, overflows or ends behind limit.
func checkSpan(off, n, limit int64) error {
	if off < 0 || n < 0 || n > limit || off > limit-n {
		return errRange
	}
	return nil
}
