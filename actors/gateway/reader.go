package gateway

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/actormq/actormq/messages/remoting"
)

const (
	readBufferBytes = 16 << 10
	// largeFrame is what a connection may have on its own; a larger frame is charged to the common budget before it is read.
	largeFrame = 64 << 10
	// burstBytes of answers are written even if the burst of requests goes on.
	burstBytes = 256 << 10
)

// read handles frames until the stream ends or is out of step, and says why.
func (c *Conn) read() error {
	limits := remoting.Limits{FrameBytes: c.shared.opt.FrameBytes}
	defer c.release()
	if err := c.secure(); err != nil {
		return err
	}
	defer c.narrow()
	for {
		c.fit()
		if c.whole() == 0 && !c.goesOn() || c.out.bytes.Load() >= burstBytes {
			c.release()
		}
		if !c.admitted() {
			return errStopped
		}
		large, err := c.admitLarge()
		if err != nil {
			return err
		}
		if n := c.fill(); n > 0 && large == 0 {
			if err := c.view(n, limits); err != nil {
				return err
			}
			continue
		}
		cmd, err := remoting.ReadCommand(c.in, limits)
		if large > 0 {
			err = errors.Join(err, c.paced.end())
		}
		if err != nil {
			c.shared.large.give(large)
			return err
		}
		c.dispatch(cmd, large, false)
	}
}

// admitted waits until the reader may take one more request; false: the connection has ended. At whichever look there is no room, the reader
// writes what it holds back: that may be all that is waited for.
func (c *Conn) admitted() bool {
	return c.gate.await(func() bool {
		if c.open() {
			return true
		}
		c.release()
		return c.open()
	}, c.closed)
}

// view handles the next frame, n bytes that are in the read buffer, where it lies.
func (c *Conn) view(n int, limits remoting.Limits) error {
	frame, _ := c.in.Peek(n) // it is buffered
	cmd, err := c.frames.Command(frame, limits)
	if err != nil {
		return err
	}
	c.dispatch(cmd, 0, true)
	_, _ = c.in.Discard(n) // it has just been peeked
	return nil
}

// goesOn tells whether the rest of a frame that has begun is looked for before answers are written: mostly it is there already, and then the
// answers go together. The read writes them itself, before it has to wait.
func (c *Conn) goesOn() bool { return c.holds && c.in.Buffered() > 0 }

// release writes the answers that the reader has held back. It comes before all that the reader waits for.
func (c *Conn) release() {
	c.arrival.left = 0
	if c.holding {
		c.holding = false
		c.out.finish()
	}
}

// whole is the size of the next frame if all of it has been read from the socket already, else 0.
func (c *Conn) whole() int {
	n := c.in.Buffered()
	if n < lengthBytes {
		return 0
	}
	frame, _ := c.length() // it is buffered
	if int64(n-lengthBytes) < frame {
		return 0
	}
	return lengthBytes + int(frame)
}

// lengthBytes is the field that a frame begins with: how many bytes follow.
const lengthBytes = 4

// length waits for that of the next frame. Of an error the frame reader tells: it meets the same one.
func (c *Conn) length() (int64, error) {
	word, err := c.in.Peek(lengthBytes)
	if err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint32(word)), nil
}

// fill waits until all of the next frame is in the buffer, and returns its size; 0: it is too large, or does not come.
func (c *Conn) fill() int {
	n, err := c.length()
	if err != nil || n+lengthBytes > int64(c.in.Size()) || n > min(largeFrame, int64(c.shared.opt.FrameBytes)) {
		return 0
	}
	if _, err := c.in.Peek(lengthBytes + int(n)); err != nil {
		return 0 // the frame reader meets the same error and words it
	}
	return lengthBytes + int(n)
}

// admitLarge waits for the next frame and, if it is a large one, for its part of the common budget. The frame must then
// arrive steadily.
func (c *Conn) admitLarge() (int64, error) {
	n, err := c.length()
	if err != nil {
		return 0, nil //nolint:nilerr // the frame reader meets the same error and words it
	}
	if n <= largeFrame || n > int64(c.shared.opt.FrameBytes) {
		return 0, nil
	}
	c.release() // others may have what is waited for
	if !c.shared.large.take(n, c.closed) {
		return 0, errStopped
	}
	c.paced.begin()
	return n, nil
}

// dispatch hands a command on; a lent one lies in the read buffer and is the request's only until dispatch returns.
func (c *Conn) dispatch(cmd *remoting.Command, large int64, lent bool) {
	now := c.arrived()
	if cmd.IsResponse() {
		if lent {
			cmd = cmd.Own()
		}
		c.shared.large.give(large)
		if t := c.tunnel.Load(); t == nil || !t.answer(cmd) {
			c.self.Send(response{cmd})
		}
		return
	}
	if !c.enter() {
		c.shared.large.give(large)
		return
	}
	s := c.shared.service.Load()
	route, known := s.Ports[c.port].Routes[cmd.Code]
	relay := known && s.relays(c, cmd)
	borrows := lent && known && route.Borrows && !relay
	if lent && !borrows {
		cmd = cmd.Own()
	}
	if c.binary.Load() != cmd.Binary {
		c.binary.Store(cmd.Binary)
	}
	r := &Request{Command: cmd, Conn: c, At: now, large: large}
	if borrows {
		r.own = *cmd
		r.Command = &r.own
		defer r.own.Forget()
	}
	switch {
	case s.Ports[c.port].Check != nil && c.refused(r, &s.Ports[c.port]):
	case !known:
		r.Fail(remoting.ResponseRequestCodeNotSupported, fmt.Sprintf(" request type %d not supported", cmd.Code))
	case relay:
		c.relay(s.Relay, r)
	default:
		c.serve(r, route)
	}
}

// enter counts a request in, once the gateway serves; false: the connection has ended before.
func (c *Conn) enter() bool {
	for {
		c.gate.inFlight.Add(1)
		if c.paused.Load() == 0 { // a pause waits for whoever was counted before it
			if !c.relayed.Load() || c.cause.Load() == nil {
				return true
			}
			c.leave() // what lies in the buffer is made on another connection
			return false
		}
		c.leave()
		c.release()
		if !c.gate.await(func() bool { return c.paused.Load() == 0 }, c.closed) {
			return false
		}
	}
}

// serve has this node handle a request.
func (c *Conn) serve(r *Request, route Route) {
	c.note(r)
	switch {
	case route.RefuseWhenStopping && c.shared.stopping.Load():
		r.Fail(remoting.ResponseServiceNotAvailable, "service not available now. The broker is stopping.")
	case r.writes == aside:
		c.handle(r, route)
	case route.Lane == Quick:
		r.quick = true
		c.holding = c.holding || c.out.claim()
		c.handle(r, route)
	case route.Lane == Ordered:
		c.release()
		c.handle(r, route)
	default:
		go c.slow(r, route)
	}
}

// slow handles a request once few enough others of the connection, and of all, are being handled, and its answer has room.
func (c *Conn) slow(r *Request, route Route) {
	if c.takeTurn() {
		defer func() { <-c.turns }()
		select {
		case c.shared.slow <- struct{}{}:
			defer func() { <-c.shared.slow }()
			c.handle(r, route)
			return
		case <-c.closed:
		}
	}
	r.Fail(remoting.ResponseSystemError, ErrConnectionClosed.Error())
}

// takeTurn waits until few enough slow requests of the connection are being handled, and the peer takes its answers: those are
// large ones, often. False: the connection has ended before.
func (c *Conn) takeTurn() bool {
	select {
	case c.turns <- struct{}{}:
	case <-c.closed:
		return false
	}
	select {
	case c.looks <- struct{}{}:
		defer func() { <-c.looks }()
		if c.room.await(func() bool { return !c.Congested() }, c.closed) {
			return true
		}
	case <-c.closed:
	}
	<-c.turns
	return false
}

// handle runs a handler; a panic costs its request only.
func (c *Conn) handle(r *Request, route Route) {
	defer func() {
		if reason := recover(); reason != nil {
			c.shared.opt.Logger.Error().Stringer("request", r.Command).Interface("panic", reason).
				Bytes("stack", debug.Stack()).Msg("BUG: a request handler panicked")
			r.Fail(remoting.ResponseSystemError, "handling the request panicked")
		}
	}()
	route.Handle(r)
}

// refused asks the port's check; a request that it does not let through is answered.
func (c *Conn) refused(r *Request, p *Port) bool {
	err := p.Check(r)
	if err != nil {
		r.Fail(remoting.ResponseSystemError, err.Error())
	}
	return err != nil
}
