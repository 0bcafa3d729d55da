package gateway

import (
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
)

// Request is a request of a peer on its way through a handler. Exactly one of Answer, AnswerRecords, OK, OKBody, Fail and
// Abandon ends it; later calls do nothing. They are safe for any goroutine and never block. What they are given belongs to
// the request from then on. A one-way request is ended the same way, and nothing is sent.
type Request struct {
	*remoting.Command
	Conn *Conn
	At   time.Time // when it was read

	large   int64 // bytes to give back to the budget
	quick   bool  // handled on the reader, which holds answers back
	parked  bool  // not counted in flight
	settled atomic.Bool
}

// Answer sends the response; build it with Command.Answer.
func (r *Request) Answer(c *remoting.Command) {
	if r.settled.Swap(true) {
		return
	}
	if !r.IsOneWay() {
		r.Conn.send(c, nil)
	}
	r.end()
}

// AnswerRecords sends the response with the records of a get as its body, straight from the log; the result is released
// once they are written, or cannot be.
func (r *Request) AnswerRecords(c *remoting.Command, found *messages.GetResult) {
	if r.settled.Swap(true) {
		found.Release()
		return
	}
	if r.IsOneWay() {
		found.Release()
	} else {
		r.Conn.send(c, found)
	}
	r.end()
}

// Fail answers with a code and a remark, without ext fields.
func (r *Request) Fail(code int, remark string) { r.Answer(r.Command.Answer(code, remark)) }

// OK answers with SUCCESS and the header's ext fields; a nil header gives none.
func (r *Request) OK(h remoting.Header) {
	c := r.Command.Answer(remoting.ResponseSuccess, "")
	if h != nil {
		c.ExtFields = remoting.ToExt(h)
	}
	r.Answer(c)
}

// OKBody answers with SUCCESS and v as JSON.
func (r *Request) OKBody(v any) {
	c := r.Command.Answer(remoting.ResponseSuccess, "")
	if err := c.EncodeBody(v); err != nil {
		r.Fail(remoting.ResponseSystemError, err.Error())
		return
	}
	r.Answer(c)
}

// Abandon ends the request without an answer and closes the connection: for the few requests where a client takes an
// error for a fact (spec/remoting.md §0.1).
func (r *Request) Abandon(why error) {
	if r.settled.Swap(true) {
		return
	}
	r.Conn.Close(why)
	r.end()
}

// Park says that the request is held back: it no longer counts as in flight, so that it does not keep its connection from
// sending others. It is called at most once, by the handler, before it returns. The request still has to be ended.
func (r *Request) Park() {
	r.parked = true
	r.Conn.parked.Add(1)
	r.Conn.leave()
}

// Pause says that the handler is about to wait for something: a handler of the lane Quick calls it before it does, on the
// goroutine that it was called on, so that answers at hand are written first.
func (r *Request) Pause() {
	if r.quick {
		r.Conn.release()
	}
}

func (r *Request) end() {
	if r.large > 0 {
		r.Conn.shared.large.give(r.large)
	}
	if r.parked {
		r.Conn.parked.Add(-1)
		r.Conn.settled()
	} else {
		r.Conn.leave()
	}
}
