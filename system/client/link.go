package client

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/messages/remoting"
)

// link is a connection: its goroutine dials, then reads and hands answers out; callers write, one at a time.
type link struct {
	opt   Options
	ready chan struct{} // closed once conn is there
	done  chan struct{} // closed at the end
	conn  net.Conn      // not before ready
	err   error         // why it has ended; not before done

	address  string
	state    *tls.ConnectionState // nil: in the clear; not before ready
	greeted  atomic.Bool
	greeting chan struct{} // one at a time

	writing sync.Mutex

	mu      sync.Mutex
	opaque  int32
	waiting map[int32]chan *remoting.Command // each takes one answer without anybody receiving
}

func newLink(opt Options, address string) *link {
	return &link{
		opt: opt, address: address, greeting: make(chan struct{}, 1), ready: make(chan struct{}), done: make(chan struct{}), waiting: map[int32]chan *remoting.Command{},
	}
}

// run returns why the connection has ended: never without an error.
func (l *link) run(ctx context.Context) error {
	dial, cancel := context.WithTimeout(ctx, l.opt.Timeout)
	defer cancel()
	conn, err := l.opt.Dial(dial, l.address)
	if err != nil {
		return err
	}
	if l.opt.TLS != nil {
		if conn, err = handshake(dial, conn, l.address, l.opt.TLS); err != nil {
			return err
		}
	}
	if wire, ok := conn.(*tls.Conn); ok {
		state := wire.ConnectionState()
		l.state = &state
	}
	closeConn := sync.OnceFunc(func() { _ = conn.Close() })
	defer closeConn()
	defer context.AfterFunc(ctx, closeConn)()
	l.conn = conn
	close(l.ready)
	return l.read(bufio.NewReader(conn))
}

// handshake puts TLS on a connection; it is closed when that fails.
func handshake(ctx context.Context, conn net.Conn, address string, cfg *tls.Config) (net.Conn, error) {
	if cfg.ServerName == "" {
		cfg = cfg.Clone()
		cfg.ServerName, _, _ = net.SplitHostPort(address)
	}
	secure := tls.Client(conn, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	return secure, nil
}

func (l *link) end(err error) {
	l.err = err
	close(l.done)
}

// read hands out answers until the connection ends.
func (l *link) read(r *bufio.Reader) error {
	for {
		c, err := remoting.ReadCommand(r, remoting.Limits{FrameBytes: l.opt.FrameBytes})
		if errors.Is(err, io.EOF) {
			return errors.New("the peer has closed the connection")
		}
		if err != nil {
			return err
		}
		// A broker asks only clients that have registered by a heartbeat; this one never does.
		if c.IsResponse() {
			l.deliver(c)
		}
	}
}

// deliver drops what nobody waits for: its caller has given up, or there never was one.
func (l *link) deliver(c *remoting.Command) {
	if waiter := l.forget(c.Opaque); waiter != nil {
		waiter <- c
	}
}

func (l *link) forget(opaque int32) chan *remoting.Command {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiter := l.waiting[opaque]
	delete(l.waiting, opaque)
	return waiter
}

// expect numbers a request and makes the place for its answer.
func (l *link) expect(request *remoting.Command) (chan *remoting.Command, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= l.opt.MaxInFlight {
		return nil, fmt.Errorf("%w: %d requests in flight", ErrLimit, len(l.waiting))
	}
	for { // after 2³² requests an old one may still wait
		l.opaque++
		if _, taken := l.waiting[l.opaque]; !taken {
			break
		}
	}
	request.Opaque = l.opaque
	waiter := make(chan *remoting.Command, 1)
	l.waiting[l.opaque] = waiter
	return waiter, nil
}

func (l *link) call(ctx context.Context, request *remoting.Command) (*remoting.Command, error) {
	select {
	case <-l.ready:
	case <-l.done:
		return nil, l.err
	case <-ctx.Done():
		return nil, causeOf(ctx)
	}
	if err := l.greet(ctx); err != nil {
		return nil, err
	}
	return l.ask(ctx, request)
}

// greet tells whoever is asked who asks, one call at a time.
func (l *link) greet(ctx context.Context) error {
	if l.opt.Greet == nil || l.greeted.Load() {
		return nil
	}
	select {
	case l.greeting <- struct{}{}:
		defer func() { <-l.greeting }()
	case <-ctx.Done():
		return causeOf(ctx)
	}
	if l.greeted.Load() {
		return nil
	}
	done, err := l.opt.Greet(ctx, l.address, l.state, l.ask)
	l.greeted.Store(done)
	return err
}

// ask is call on a connection that is there.
func (l *link) ask(ctx context.Context, request *remoting.Command) (*remoting.Command, error) {
	waiter, err := l.expect(request)
	if err != nil {
		return nil, err
	}
	defer l.forget(request.Opaque)
	if err := l.write(ctx, request); err != nil {
		return nil, err
	}
	select {
	case answer := <-waiter:
		return answer, nil
	case <-ctx.Done():
		return nil, causeOf(ctx)
	case <-l.done:
	}
	select { // it may have come just before the end
	case answer := <-waiter:
		return answer, nil
	default:
		return nil, l.err
	}
}

// write sends the frame as a whole. After a failure the connection is out of step: it is closed, its reader ends it.
func (l *link) write(ctx context.Context, request *remoting.Command) error {
	if l.opt.AccessKey != "" {
		request.Sign(l.opt.AccessKey, l.opt.SecretKey)
	}
	frame, err := request.Append(nil)
	if err != nil {
		return err
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	if ctx.Err() != nil {
		return causeOf(ctx)
	}
	err = l.conn.SetWriteDeadline(time.Now().Add(l.opt.Timeout))
	if err == nil {
		_, err = l.conn.Write(frame)
	}
	if err == nil {
		return nil
	}
	_ = l.conn.Close()
	return fmt.Errorf("%w: %w", ErrConnection, err)
}
