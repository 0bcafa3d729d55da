package memfs

import (
	"errors"
	"fmt"
	"io/fs"
)

// Kind is a sort of operation.
type Kind int

// Kinds of operations. Reading through a mapping, and unmapping, are none.
const (
	KindOpen Kind = iota
	KindCreate
	KindRemove
	KindRename
	KindMkdir
	KindList
	KindStat
	KindSyncDir
	KindLock
	KindUsage
	KindRead
	KindWrite
	KindTruncate
	KindAllocate
	KindDataSync
	KindWriteback
	KindMap
	KindPopulate
	KindLockPages
	KindClose
)

var kindNames = [...]string{
	"open", "create", "remove", "rename", "mkdir", "list", "stat", "sync folder", "lock", "usage",
	"read", "write", "truncate", "allocate", "sync", "start writing", "map", "populate", "lock in memory", "close",
}

// String names the kind as errors do.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("kind %d", int(k))
	}
	return kindNames[k]
}

// Changes tells whether the operation changes what the disk holds, or what a power cut leaves of it: those after which a
// loop over all crash points need look.
func (k Kind) Changes() bool {
	switch k {
	case KindCreate, KindRemove, KindRename, KindMkdir, KindSyncDir, KindLock,
		KindWrite, KindTruncate, KindAllocate, KindDataSync:
		return true
	}
	return false
}

// Op is one operation that is about to happen.
type Op struct {
	Kind Kind
	Name string // as the caller wrote it; of a file: the path it was opened by
	To   string // the new name of a rename
	Off  int64  // bytes; the size of a truncate
	N    int64  // bytes
}

// Inject has hook called before each operation, outside all locks: it may block, to stall the operation, and may call
// Clone and Crash. An error that it returns is returned by the operation, which does not happen; Short makes a part of a
// write happen; a close happens all the same. A nil hook ends it. Safe for concurrent use.
func (d *Disk) Inject(hook func(Op) error) {
	if hook == nil {
		d.hook.Store(nil)
		return
	}
	d.hook.Store(&hook)
}

func (d *Disk) before(op Op) error {
	hook := d.hook.Load()
	if hook == nil {
		return nil
	}
	return (*hook)(op)
}

type shortError struct {
	n     int
	cause error
}

// Short is an error for Inject: the first n bytes of the write happen, then it fails with cause.
func Short(n int, cause error) error { return &shortError{n: n, cause: cause} }

func (e *shortError) Error() string { return fmt.Sprintf("after %d bytes: %v", e.n, e.cause) }

func (e *shortError) Unwrap() error { return e.cause }

// opError names operation and path, as the real disk does.
func opError(op Op, err error) error {
	if err == nil {
		return nil
	}
	verb := op.Kind.String()
	switch op.Kind {
	case KindRename:
		verb += " to " + op.To + " from"
	case KindTruncate:
		err = fmt.Errorf("to %d bytes: %w", op.Off, err)
	case KindRead, KindWrite, KindAllocate, KindWriteback, KindMap, KindPopulate, KindLockPages:
		err = fmt.Errorf("%d bytes at %d: %w", op.N, op.Off, err)
	}
	return &fs.PathError{Op: verb, Path: op.Name, Err: err}
}

// span refuses [off, off+n) when it is negative, overflows or ends behind limit.
func span(off, n, limit int64) error {
	if off < 0 || n < 0 || n > limit || off > limit-n {
		return errors.New("the range is not in the file")
	}
	return nil
}
