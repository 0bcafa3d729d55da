package client

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/actormq/actormq/messages/remoting"
)

// Errors that a caller can decide on; test them with errors.Is.
var (
	// ErrConnection: the peer can't be reached, or the connection was lost before the answer came.
	ErrConnection = errors.New("no connection")
	// ErrNoAnswer: the peer has not answered in time; what it was asked to do may be done all the same.
	ErrNoAnswer = errors.New("no answer")
	// ErrClosed: the client has been closed.
	ErrClosed = errors.New("client is closed")
	// ErrLimit: too many connections, requests in flight, or queues.
	ErrLimit = errors.New("limit reached")
)

// RefusedError is an answer with a code that is no success.
type RefusedError struct {
	Request int // code of the request
	Address string
	Code    int
	Remark  string // as the peer sent it
}

// Error names the codes and the first line of the remark.
func (e *RefusedError) Error() string {
	remark, _, _ := strings.Cut(e.Remark, "\n")
	return fmt.Sprintf("%s at %s: %s (%d): %s", remoting.RequestName(e.Request), e.Address, remoting.ResponseName(e.Code), e.Code, remark)
}

// HasCode tells whether err is a refusal with one of the codes.
func HasCode(err error, codes ...int) bool {
	var no *RefusedError
	return errors.As(err, &no) && slices.Contains(codes, no.Code)
}

// Unreached tells whether err says that the peer was not reached or stayed silent: another one, or a later time, may help.
func Unreached(err error) bool { return errors.Is(err, ErrConnection) || errors.Is(err, ErrNoAnswer) }
