package segments

import (
	"errors"
	"fmt"
)

// Errors of segments; test them with errors.Is.
var (
	// ErrGone: the segment is being deleted; no new reader may enter.
	ErrGone = errors.New("segment is being deleted")
	// ErrName: the file's name is not a segment name of 20 digits.
	ErrName = errors.New("not a segment name")
	// ErrSize: the file's length is not the configured segment size.
	ErrSize = errors.New("wrong segment size")
)

// CorruptionError says where a file is damaged and how. Err tells the kind (for a record: the errors of package record).
type CorruptionError struct {
	File   string
	Offset int64 // bytes from the start of the file
	Err    error
}

func (e *CorruptionError) Error() string {
	return fmt.Sprintf("%s: corrupt at offset %d: %v", e.File, e.Offset, e.Err)
}

// Unwrap returns the kind of damage.
func (e *CorruptionError) Unwrap() error { return e.Err }
