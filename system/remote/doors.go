package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"
	"google.golang.org/grpc/credentials"
)

// preface is what every connection of HTTP/2 begins with (RFC 9113 §3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

var (
	errTooMany   = errors.New("too many connections")
	errNotHTTP2  = errors.New("it does not speak HTTP/2")
	errStopping  = errors.New("the host is stopping")
	errSilent    = errors.New("nobody has introduced himself on it")
	errNoTickets = errors.New("the doors are for connections that come in")
)

// doors lets connections in: no more than maxConnections, that speak the protocol, and under TLS. It knows all of them.
type doors struct {
	inner   credentials.TransportCredentials
	noise   zerolog.Logger // see guard
	refused atomic.Int64

	knocked chan struct{} // closed when the first one has come
	knock   sync.Once

	mu     sync.Mutex
	open   map[*visitor]struct{}
	closed bool
}

// ServerHandshake implements credentials.TransportCredentials. gRPC bounds its time.
func (d *doors) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	v := &visitor{Conn: raw, doors: d}
	conn, info, err := d.admit(v)
	if err != nil {
		_ = v.Close() // nothing was said that could get lost
		if errors.Is(err, errStopping) || errors.Is(err, io.EOF) {
			return nil, nil, io.EOF // who says nothing has only looked whether the port is open
		}
		d.refused.Add(1)
		d.noise.Warn().Err(err).Stringer("peer", raw.RemoteAddr()).Msg("a connection to the remote port is refused")
		return nil, nil, err
	}
	return conn, info, nil
}

func (d *doors) admit(v *visitor) (net.Conn, credentials.AuthInfo, error) {
	if err := d.enter(v); err != nil {
		return nil, nil, err
	}
	conn, info, err := d.inner.ServerHandshake(v)
	if err != nil {
		return nil, nil, err
	}
	begin := make([]byte, len(preface))
	if n, err := io.ReadFull(conn, begin); err != nil {
		return nil, nil, fmt.Errorf("%w: %w after %d bytes", errNotHTTP2, err, n)
	}
	if string(begin) != preface {
		return nil, nil, fmt.Errorf("%w: it begins with %q", errNotHTTP2, begin)
	}
	v.inside.Store(true)
	return &replayed{Conn: conn, begin: bytes.NewReader(begin)}, ticket{info, v}, nil
}

func (d *doors) enter(v *visitor) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return errStopping
	case len(d.open) >= maxConnections:
		return fmt.Errorf("%w: %d", errTooMany, len(d.open))
	}
	d.open[v] = struct{}{}
	d.knock.Do(func() { close(d.knocked) })
	return nil
}

// close closes every connection, and those that come.
func (d *doors) close() {
	d.mu.Lock()
	d.closed = true
	var all []*visitor
	for v := range d.open {
		all = append(all, v)
	}
	d.mu.Unlock()
	for _, v := range all {
		_ = v.Close() // its streams end, whatever it says
	}
}

// ClientHandshake implements credentials.TransportCredentials.
func (d *doors) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errNoTickets
}

// Info implements credentials.TransportCredentials.
func (d *doors) Info() credentials.ProtocolInfo { return d.inner.Info() }

// Clone implements credentials.TransportCredentials.
func (d *doors) Clone() credentials.TransportCredentials { return d }

// OverrideServerName implements credentials.TransportCredentials.
func (d *doors) OverrideServerName(string) error { return errNoTickets }

// visitor is a connection that the doors know until it is closed.
type visitor struct {
	net.Conn
	doors      *doors
	inside     atomic.Bool // it was let in
	introduced atomic.Bool // a peer has said who it is
	left       sync.Once
}

// Close implements net.Conn. gRPC tells nobody why it closes a connection; one on which nothing sensible was said is noted.
func (v *visitor) Close() error {
	v.left.Do(func() {
		d := v.doors
		d.mu.Lock()
		delete(d.open, v)
		closed := d.closed
		d.mu.Unlock()
		if v.inside.Load() && !v.introduced.Load() && !closed {
			d.refused.Add(1)
			d.noise.Warn().Err(errSilent).Stringer("peer", v.RemoteAddr()).Msg("a connection to the remote port is refused")
		}
	})
	return v.Conn.Close()
}

// ticket is what a stream knows of its connection.
type ticket struct {
	credentials.AuthInfo
	visitor *visitor
}

// replayed is a connection whose first bytes have been looked at.
type replayed struct {
	net.Conn
	begin *bytes.Reader
}

// Read implements net.Conn.
func (r *replayed) Read(b []byte) (int, error) {
	if r.begin.Len() > 0 {
		return r.begin.Read(b)
	}
	return r.Conn.Read(b)
}
