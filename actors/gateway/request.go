package gateway

import (
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
)

// Request is a request of a peer on its way through a handler. Exactly one of Answer, Reply, ReplyRecords, OK, OKBody, Fail and
// Abandon ends it; later calls do nothing. They are safe for any goroutine and never block. What they are given belongs to
// the request from then on. A one-way request is ended the same way, and nothing is sent.
type Request struct {
	*remoting.Command
	Conn *Conn
	At   time.Time // when it was read

	own     remoting.Command // backs Command when it is borrowed
	large   int64            // bytes to give back to the budget
	kept    int64            // bytes that count as being relayed
	quick   bool             // handled on the reader, which holds answers back
	parked  bool             // not counted in flight
	writes  writer           // of the answer
	again   bool             // handed on, or handled, for another time: what it says of the peer is known
	settled atomic.Bool
	told    func(code int) // of whoever wants to know the answer's code
}

// OnAnswer has fn told the code of the answer, when there is one; it must not block. Call it before the request is handed on.
func (r *Request) OnAnswer(fn func(code int)) { r.told = fn }

// tell tells whoever wants to know.
func (r *Request) tell(code int) {
	if r.told != nil {
		r.told(code)
	}
}

// Answer sends the response; build it with Command.Answer.
func (r *Request) Answer(c *remoting.Command) {
	if r.settled.Swap(true) {
		return
	}
	r.tell(c.Code)
	if !r.IsOneWay() {
		r.Conn.send(c)
	}
	r.end()
}

// Reply answers with a code, a remark ("" is none) and the ext fields of h (nil: none), which is not kept. Nothing is allocated.
func (r *Request) Reply(code int, remark string, h remoting.Header) { r.reply(code, remark, h, nil) }

// ReplyRecords is Reply with the records of a get as the body, straight from the log; the result is released once they are
// written, or cannot be.
func (r *Request) ReplyRecords(code int, remark string, h remoting.Header, found *messages.GetResult) {
	r.reply(code, remark, h, found)
}

func (r *Request) reply(code int, remark string, h remoting.Header, found *messages.GetResult) {
	if once := !r.settled.Swap(true); once {
		r.tell(code)
		defer r.end()
		if !r.IsOneWay() {
			c := r.Command.Reply(code, remark)
			if f := r.Conn.framed(&c, h, found); f != nil {
				r.write(f)
			}
			return
		}
	}
	if found != nil {
		found.Release()
	}
}

// writer is who writes an answer, if nobody is writing.
type writer uint8

const (
	other  writer = iota // a goroutine that is made for it
	aside                // who answers, on a goroutine that may wait for the socket
	prompt               // who answers, without waiting
)

func (r *Request) write(f *frame) {
	switch out := &r.Conn.out; r.writes {
	case aside:
		out.putWriting(f)
	case prompt:
		out.putPrompt(f)
	default:
		out.put(f)
	}
}

// Prompt says that no other request is about to be answered by the goroutine that answers this one: Reply then writes the answer itself, as far
// as the peer takes it at once, instead of waking a goroutine for that.
func (r *Request) Prompt() { r.writes = prompt }

// Fail answers with a code and a remark, without ext fields.
func (r *Request) Fail(code int, remark string) { r.Reply(code, remark, nil) }

// OK answers with SUCCESS and the header's ext fields; a nil header gives none.
func (r *Request) OK(h remoting.Header) { r.Reply(remoting.ResponseSuccess, "", h) }

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
//
// To a node that relays an answer says so, and that node does it to its client: with the connection others of its requests would end, which
// it would make again, this one first.
func (r *Request) Abandon(why error) {
	if r.Conn.Relayed() {
		r.Fail(remoting.ResponseRelayAbandon, why.Error())
		return
	}
	if r.settled.Swap(true) {
		return
	}
	r.Conn.Close(why)
	r.end()
}

// Park says that the request is held back: it no longer counts as in flight, so that it does not keep its connection from
// sending others. It is called at most once, by who handles the request. The request still has to be ended.
func (r *Request) Park() {
	r.parked = true
	r.Conn.parked.Add(1)
	r.Conn.leave()
}

// Go goes on with the request on a goroutine of its own, which may wait for the disk or the peer; what the peer has sent
// behind is handled meanwhile. It writes its answer itself if nobody else is writing, so that none is made for that. A panic
// costs the request only. The handler has copied what it needs of a borrowed request (Route.Borrows).
func (r *Request) Go(handle func(*Request)) {
	r.quick, r.writes = false, aside
	go r.Conn.handle(r, Route{Handle: handle})
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
	if r.kept > 0 {
		r.Conn.relaying.Add(-r.kept)
		r.Conn.gate.poke()
	}
	if r.parked {
		r.Conn.parked.Add(-1)
		r.Conn.settled()
	} else {
		r.Conn.leave()
	}
}
