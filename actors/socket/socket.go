package socket

import (
	"net"
	"syscall"
	"time"
)

// directBytes is the most that a call copies without the runtime's knowledge: the collector waits for it.
const directBytes = 256 << 10

// Socket is a connection as its reader and its writer see it: at most one goroutine reads, and one writes, at a time.
type Socket struct {
	conn   net.Conn
	direct syscall.RawConn // nil: the connection is used as it is

	in     transfer
	out    transfer
	held   func() bool // before is to be called before a read waits
	before func()
	since  time.Time // reads have found something at once ever since; zero: the last one has waited
}

// turnTime is how long a reader goes on that finds something each time. A peer with many requests under way sends the next ones while those
// before are being handled, and the reader would not wait for anything until the runtime takes its processor away, after 10 ms.
const turnTime = 500 * time.Microsecond

// transfer is the call under way in one direction.
type transfer struct {
	bufs [][]byte
	wait bool // until the peer has sent, or taken, something
	had  bool // it has waited
	n    int
	err  syscall.Errno
	call func(fd uintptr) bool // bound once
	iov  []vector              // what bufs is for the system
}

// Of returns the socket of a connection, which stays the owner's to close.
func Of(conn net.Conn) *Socket {
	s := &Socket{conn: conn, held: func() bool { return false }}
	if c, ok := conn.(*net.TCPConn); ok && possible {
		s.direct, _ = c.SyscallConn() // without one it is used as it is
	}
	s.in.call = func(fd uintptr) bool { return s.in.done(readInto(fd, &s.in)) || s.held() }
	s.out.call = func(fd uintptr) bool { return s.out.done(writeFrom(fd, &s.out)) }
	return s
}

// BeforeWait has fn called by reads that are about to wait while held is true, on their goroutine, and tells whether they do that: where the
// connection is used as it is, they do not. Held is false after fn, which may write, wait and close the connection. Call it before anything is
// read.
func (s *Socket) BeforeWait(held func() bool, fn func()) bool {
	s.held, s.before = held, fn
	return s.direct != nil
}

// done notes what a call has done, and tells whether it is over.
func (t *transfer) done(n int, err syscall.Errno) bool {
	t.n, t.err = n, err
	over := err != syscall.EAGAIN || !t.wait
	t.had = t.had || !over
	return over
}

// turn has the reader give way now and then to those whose connections have something to read too.
func (s *Socket) turn() {
	waited := s.in.had
	s.in.had = false
	switch {
	case waited:
		s.since = time.Time{}
	case s.since.IsZero():
		s.since = time.Now()
	case time.Since(s.since) >= turnTime:
		s.since = time.Time{}
		if s.held() {
			s.before()
		}
		giveWay()
	}
}

// Read implements io.Reader. A reader that never has to wait lets others read in between.
func (s *Socket) Read(b []byte) (int, error) {
	if s.direct == nil || len(b) == 0 {
		return s.conn.Read(b)
	}
	s.turn()
	t := &s.in
	b = b[:min(len(b), directBytes)]
	t.bufs, t.wait = append(t.bufs[:0], b), true
	err := s.direct.Read(t.call)
	if err == nil && t.err == syscall.EAGAIN {
		t.had = false
		s.before() // not within the call, whose end Close waits for
		err = s.direct.Read(t.call)
	}
	t.bufs[0] = nil
	if err == nil && t.err == 0 && t.n > 0 {
		return t.n, nil
	}
	if err != nil {
		return 0, err
	}
	if t.err != 0 { // the kernel tells of it once
		return 0, &net.OpError{Op: "read", Net: "tcp", Source: s.conn.LocalAddr(), Addr: s.conn.RemoteAddr(), Err: t.err}
	}
	return s.conn.Read(b) // it meets the same end, and words it
}

// Write writes all the parts, and waits for the peer to take them. It uses the parts up.
func (s *Socket) Write(parts *net.Buffers) (int64, error) {
	sum, err := s.push(parts, true)
	if err == nil && len(*parts) > 0 { // too much for a call, or an error that package net words
		var rest int64
		rest, err = parts.WriteTo(s.conn)
		sum += rest
	}
	return sum, err
}

// WriteSlow is Write of parts that may lie in pages which are on the disk: the runtime is told, and others go on meanwhile.
func (s *Socket) WriteSlow(parts *net.Buffers) (int64, error) { return parts.WriteTo(s.conn) }

// Offer writes as much of the parts as the peer takes at once, without waiting; what is left in them is for Write. It leaves all of
// them where the connection can't be used directly.
func (s *Socket) Offer(parts *net.Buffers) error {
	_, err := s.push(parts, false)
	return err
}

// push writes directly for as long as something is taken.
func (s *Socket) push(parts *net.Buffers, wait bool) (sum int64, err error) {
	if s.direct == nil || len(*parts) > maxParts || size(*parts) > directBytes {
		return 0, nil
	}
	for len(*parts) > 0 {
		n, err := s.write(*parts, wait)
		if n == 0 || err != nil {
			return sum, err
		}
		sum += int64(n)
		consume(parts, n)
	}
	return sum, nil
}

// write makes one call that writes something; 0 without an error where package net is to word the error.
func (s *Socket) write(parts [][]byte, wait bool) (int, error) {
	t := &s.out
	t.bufs, t.wait = parts, wait
	err := s.direct.Write(t.call)
	t.bufs = nil
	if err != nil || t.err != 0 {
		return 0, err
	}
	return t.n, nil
}

func size(parts [][]byte) int {
	n := 0
	for _, b := range parts {
		n += len(b)
	}
	return n
}

// consume takes n bytes off the front.
func consume(parts *net.Buffers, n int) {
	for len(*parts) > 0 && n >= len((*parts)[0]) {
		n -= len((*parts)[0])
		(*parts)[0] = nil
		*parts = (*parts)[1:]
	}
	if n > 0 {
		(*parts)[0] = (*parts)[0][n:]
	}
}
