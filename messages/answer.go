package messages

import (
	"context"
	"sync/atomic"
)

// Refusable is a request whose sender waits for an answer. A mailbox that closes, and an actor that has failed, calls
// Refuse for each request that it will not handle.
type Refusable interface {
	Refuse(cause error)
}

// Refuse refuses a message that is a request, and does nothing for any other.
func Refuse(message any, cause error) {
	if r, ok := message.(Refusable); ok {
		r.Refuse(cause)
	}
}

// Answer is the self-addressed envelope inside a request: the first Complete counts, later ones are ignored. It is safe
// for concurrent use. The put path does not use it (see [PutMessage]); it allocates.
type Answer[T any] struct {
	done atomic.Bool
	ch   chan struct{}
	val  T
	err  error
}

// NewAnswer returns an open envelope.
func NewAnswer[T any]() *Answer[T] { return &Answer[T]{ch: make(chan struct{})} }

// Complete answers the request. It never blocks; only the first call counts. A nil envelope (nobody waits) is allowed.
func (a *Answer[T]) Complete(val T, err error) {
	if a == nil || !a.done.CompareAndSwap(false, true) {
		return
	}
	a.val, a.err = val, err
	close(a.ch)
}

// Refuse completes the request with an error.
func (a *Answer[T]) Refuse(cause error) {
	var zero T
	a.Complete(zero, cause)
}

// Done is closed once the answer is there.
func (a *Answer[T]) Done() <-chan struct{} { return a.ch }

// Wait returns the answer, or the context's error when it ends first; the request may then still take effect.
func (a *Answer[T]) Wait(ctx context.Context) (T, error) {
	select {
	case <-a.ch:
		return a.val, a.err
	case <-ctx.Done():
		var zero T
		return zero, context.Cause(ctx)
	}
}
