package gateway

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// TLSMode says which connections a gateway takes: RocketMQ's tls.server.mode (spec/remoting.md §1.7).
type TLSMode int

// The modes. The first byte of a connection tells what it is: a TLS handshake begins with 0x16, a frame with 0x00, because no
// frame is that long.
const (
	TLSDisabled   TLSMode = iota // frames only: the first record of TLS is a frame that is too long
	TLSPermissive                // both
	TLSEnforcing                 // TLS only
)

// String returns RocketMQ's name of the mode.
func (m TLSMode) String() string { return [...]string{"disabled", "permissive", "enforcing"}[m] }

const handshakeRecord = 0x16

// errPlain ends a connection without TLS where it is a must.
var errPlain = errors.New("the connection is not encrypted, and this port takes no other")

// secure looks at the first byte of a connection and shakes hands when that begins TLS. Only the reader calls it, before
// there can be anything to write.
func (c *Conn) secure() error {
	if c.shared.opt.TLSMode == TLSDisabled {
		return nil
	}
	first, err := c.in.Peek(1)
	switch {
	case err != nil:
		return nil //nolint:nilerr // the frame reader meets the same error and words it
	case first[0] == handshakeRecord:
		return c.handshake()
	case c.shared.opt.TLSMode == TLSEnforcing:
		return errPlain
	}
	return nil
}

// handshake computes in turns, so that those who begin thousands of them do not take all processors, and has a deadline.
func (c *Conn) handshake() error {
	if err := c.sock.SetDeadline(time.Now().Add(c.shared.opt.HandshakeTimeout)); err != nil {
		return err
	}
	from := &sniffed{Conn: c.sock, in: c.in, turns: c.shared.handshakes, closed: c.closed}
	if err := from.take(); err != nil {
		return err
	}
	defer from.end()
	wire := tls.Server(from, c.shared.service.Load().TLS)
	if err := wire.Handshake(); err != nil {
		return fmt.Errorf("TLS handshake: %w", err)
	}
	if err := c.sock.SetDeadline(time.Time{}); err != nil {
		return err
	}
	c.paced, c.holds = &pacedReader{sock: wire, from: wire}, false
	c.in = bufio.NewReaderSize(c.paced, readBufferBytes)
	c.out.wire = bufio.NewWriterSize(wire, tlsRecordBytes)
	c.wire.Store(wire)
	return nil
}

// tlsRecordBytes is the most that one record of TLS carries.
const tlsRecordBytes = 16 << 10

// sniffed is a socket of which some bytes have been read already. During the handshake whoever waits for its peer lets others
// have the turn: peers that do not go on keep nobody from beginning. Only the reader uses the turn.
type sniffed struct {
	net.Conn
	in     io.Reader
	turns  chan struct{} // nil: the handshake is over
	closed <-chan struct{}
	mine   bool
}

// Read implements io.Reader.
func (s *sniffed) Read(b []byte) (int, error) {
	if s.turns == nil {
		return s.in.Read(b)
	}
	s.leave()
	n, err := s.in.Read(b)
	if turnErr := s.take(); err == nil {
		err = turnErr
	}
	return n, err
}

func (s *sniffed) take() error {
	select {
	case s.turns <- struct{}{}:
		s.mine = true
		return nil
	case <-s.closed:
		return errStopped
	}
}

func (s *sniffed) leave() {
	if s.mine {
		s.mine = false
		<-s.turns
	}
}

// end gives the turn back for good.
func (s *sniffed) end() {
	s.leave()
	s.turns = nil
}

// goodbye tells the peer that nothing more will be written; false when the connection has no way to say so. What TLS writes
// for that has a deadline of its own.
func (c *Conn) goodbye() bool {
	if wire := c.wire.Load(); wire != nil && wire.CloseWrite() != nil {
		return false
	}
	half, ok := c.sock.(interface{ CloseWrite() error })
	return ok && half.CloseWrite() == nil
}
