package remoting

import (
	"errors"
	"fmt"
)

// Errors that a caller can decide on; test them with errors.Is. After the first three the connection is out of step and
// must be closed.
var (
	// ErrFrameTooLarge: the frame is longer than the limit; when reading, nothing was allocated for it.
	ErrFrameTooLarge = errors.New("remoting frame too large")
	// ErrBadFrame: the lengths or the serialize type before the header are impossible.
	ErrBadFrame = errors.New("bad remoting frame")
	// ErrBadHeader: the header is not of its codec, or has too many ext fields.
	ErrBadHeader = errors.New("bad remoting header")
	// ErrFieldMissing: a required ext field is absent; inside a [*FieldError].
	ErrFieldMissing = errors.New("missing")
	// ErrFieldInvalid: an ext field is not a number of its width; inside a [*FieldError].
	ErrFieldInvalid = errors.New("not a number of its width")
)

// FieldError names the ext field that is missing or cannot be converted.
type FieldError struct {
	Name  string // as on the wire: "queueId", or "e" in the short form
	Value string // empty when missing
	Cause error  // ErrFieldMissing or ErrFieldInvalid
}

func (e *FieldError) Error() string {
	if errors.Is(e.Cause, ErrFieldMissing) {
		return fmt.Sprintf("ext field %q is missing", e.Name)
	}
	return fmt.Sprintf("ext field %q: %.40q: %v", e.Name, e.Value, e.Cause)
}

// Unwrap returns the sentinel.
func (e *FieldError) Unwrap() error { return e.Cause }
