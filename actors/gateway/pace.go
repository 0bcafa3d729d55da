package gateway

import (
	"io"
	"net"
	"time"
)

// A large frame holds a part of the common budget while it arrives, so it has to arrive steadily: after largeGrace, at
// largeRate bytes a second at least on average. Whoever claims a length and then sends nothing is cut off after the grace.
const (
	largeGrace = 2 * time.Second
	largeRate  = 256 << 10
)

// pacedReader is the socket as the connection's reader sees it. Only that goroutine uses it.
type pacedReader struct {
	sock  net.Conn
	from  io.Reader // sock, or a shorter way to it
	began time.Time // of the large frame that is arriving; zero: none
	got   int64     // its bytes

	unread []byte // comes before what the socket has: left over from a smaller buffer
	filled bool   // a read has filled all the room that the buffer had
	most   int    // bytes that a read has brought into the buffer
	read   bool   // there was one since that was looked at
}

// begin says that a large frame is arriving.
func (p *pacedReader) begin() { p.began, p.got = time.Now(), 0 }

// end says that it is there.
func (p *pacedReader) end() error {
	p.began = time.Time{}
	return p.sock.SetReadDeadline(time.Time{})
}

// Read implements io.Reader.
func (p *pacedReader) Read(b []byte) (int, error) {
	if len(p.unread) > 0 {
		n := copy(b, p.unread)
		p.unread = p.unread[n:]
		return n, nil
	}
	if !p.began.IsZero() {
		due := p.began.Add(largeGrace + time.Duration(p.got)*time.Second/largeRate)
		if err := p.sock.SetReadDeadline(due); err != nil {
			return 0, err
		}
	}
	n, err := p.from.Read(b)
	p.got += int64(n)
	p.read = true
	if p.began.IsZero() { // a large frame is read into its own place
		p.filled, p.most = p.filled || n == len(b), max(p.most, n)
	}
	return n, err
}
