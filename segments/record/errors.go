package record

import (
	"errors"
	"fmt"
)

// What [Parse] can find instead of a record; test with errors.Is.
var (
	// ErrUnallocated: size and magic are zero: nothing was ever written here.
	ErrUnallocated = errors.New("unallocated space")
	// ErrBadMagic: these bytes begin no record.
	ErrBadMagic = errors.New("bad magic")
	// ErrNewerVersion: a magic of RocketMQ's series that this codec does not know; not damage, unless a bit has flipped.
	ErrNewerVersion = errors.New("record of a newer version")
	// ErrBadSize: TOTALSIZE is negative or below the smallest record.
	ErrBadSize = errors.New("bad record size")
	// ErrTruncated: the record goes beyond the readable bytes: torn, or its size is damaged.
	ErrTruncated = errors.New("record is cut off")
	// ErrBadLengths: the lengths inside the record contradict TOTALSIZE.
	ErrBadLengths = errors.New("bad lengths in the record")
	// ErrBadCRC: the body does not match its checksum.
	ErrBadCRC = errors.New("bad body CRC")
	// ErrTorn: a part of the record never reached the disk.
	ErrTorn = errors.New("record is torn")
)

// ErrorKind names what [Parse] found; see the sentinel of the same name.
type ErrorKind int

// The kinds of an [Error].
const (
	Unallocated ErrorKind = iota + 1
	BadMagic
	NewerVersion
	BadSize
	Truncated
	BadLengths
	BadCRC
	Torn
)

var sentinels = [...]error{
	Unallocated:  ErrUnallocated,
	BadMagic:     ErrBadMagic,
	NewerVersion: ErrNewerVersion,
	BadSize:      ErrBadSize,
	Truncated:    ErrTruncated,
	BadLengths:   ErrBadLengths,
	BadCRC:       ErrBadCRC,
	Torn:         ErrTorn,
}

// Error says why bytes are not a record. It wraps the sentinel of its kind. The caller adds file and offset.
type Error struct {
	Kind   ErrorKind
	Offset int    // of the field that is wrong, in bytes from the start of the record
	Detail string // what stands there and what was expected
}

func (e *Error) Error() string {
	text := fmt.Sprintf("record: %v at byte %d", e.Unwrap(), e.Offset)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Unwrap returns the sentinel of the kind.
func (e *Error) Unwrap() error {
	if e.Kind < Unallocated || e.Kind > Torn {
		return nil
	}
	return sentinels[e.Kind]
}

func newError(kind ErrorKind, offset int, format string, args ...any) error {
	return &Error{Kind: kind, Offset: offset, Detail: fmt.Sprintf(format, args...)}
}
