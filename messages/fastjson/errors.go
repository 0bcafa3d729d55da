package fastjson

import (
	"errors"
	"fmt"
)

// Causes inside an [*Error]; test them with errors.Is.
var (
	// ErrSyntax: the text is not of the dialect.
	ErrSyntax = errors.New("bad json")
	// ErrTooDeep: objects and arrays are nested deeper than MaxDepth, or object keys stand inside object keys more than
	// twice.
	ErrTooDeep = errors.New("json nested too deep")
	// ErrTooLarge: the text, its strict form or the decoded value is over the limit.
	ErrTooLarge = errors.New("json too large")
	// ErrType: a value does not fit into the Go value that is to take it, or a Go type has no JSON form here.
	ErrType = errors.New("json value does not fit")
)

// Error tells where in the text something was wrong.
type Error struct {
	Offset int    // byte offset in the input; for ErrType in the strict form of the input
	Field  string // for Unmarshal: names of the members on the way, joined by dots, empty at the top
	Cause  error  // one of the sentinels
	Detail string // what was found
}

func (e *Error) Error() string {
	where := fmt.Sprintf("at byte %d", e.Offset)
	if e.Field != "" {
		where += " in " + e.Field
	}
	return fmt.Sprintf("%v %s: %s", e.Cause, where, e.Detail)
}

// Unwrap returns the sentinel.
func (e *Error) Unwrap() error { return e.Cause }
