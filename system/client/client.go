package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/actormq/actormq/messages/remoting"
)

// Options of a client. The zero value of a field is its default.
type Options struct {
	NameServers    []string      // host:port; asked in this order until one answers; no default
	Timeout        time.Duration // for dialling, for writing, and for an answer; default 3 s
	MaxConnections int           // addresses at a time; default 64
	MaxInFlight    int           // unanswered requests a connection; default 16,384, which is one held pull for each of MaxQueues
	FrameBytes     int           // largest answer; default 16 MiB (spec/remoting.md §1.1)

	TLS       *tls.Config // speak TLS, as it says; nil: do not
	AccessKey string      // of the account that signs the requests; empty: they are not signed
	SecretKey string

	// Lost, when set, is told that the connection to an address has ended; not when the client is closed.
	Lost func(address string)

	// Greet, when set, is called by the first call on a connection, and by each one until it says that it is done: whoever is asked may want to
	// know who asks. What ask sends comes in front of the call's request; state is that of the connection's TLS, nil: it is in the clear. Its
	// error is the call's.
	Greet func(ctx context.Context, address string, state *tls.ConnectionState, ask Ask) (done bool, err error)

	// Dial opens a connection; default a net.Dialer for TCP, TLS is put on top of it.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// Ask sends a request by a connection and returns its answer, whatever its code.
type Ask = func(ctx context.Context, request *remoting.Command) (*remoting.Command, error)

func (o Options) defaults() Options {
	if o.Timeout <= 0 {
		o.Timeout = 3 * time.Second
	}
	if o.MaxConnections <= 0 {
		o.MaxConnections = 64
	}
	if o.MaxInFlight <= 0 {
		o.MaxInFlight = MaxQueues
	}
	if o.Dial == nil {
		o.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", address)
		}
	}
	return o
}

// Client has a connection for each address that it has asked. Safe for concurrent use; Close it.
type Client struct {
	opt     Options
	ctx     context.Context // of the connections: ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex
	links map[string]*link // those that have not ended; nil: closed
}

// New returns a client. It connects when it is first asked for something.
func New(opt Options) *Client {
	c := &Client{opt: opt.defaults(), links: map[string]*link{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Close ends all connections; calls that wait fail with ErrClosed. It returns when nothing of the client runs any more.
func (c *Client) Close() {
	c.mu.Lock()
	c.links = nil
	c.mu.Unlock()
	c.cancel()
	c.running.Wait()
}

// Call sends a request and waits for its answer, whatever its code: at most until the context ends, or for Options.Timeout
// when the context has no deadline. The request belongs to the client until Call returns.
func (c *Client) Call(ctx context.Context, address string, request *remoting.Command) (*remoting.Command, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = c.within(ctx, c.opt.Timeout)
		defer cancel()
	}
	answer, err := c.call(ctx, address, request)
	if err != nil {
		return nil, fmt.Errorf("%s at %s: %w", remoting.RequestName(request.Code), address, err)
	}
	return answer, nil
}

func (c *Client) call(ctx context.Context, address string, request *remoting.Command) (*remoting.Command, error) {
	l, err := c.link(address)
	if err != nil {
		return nil, err
	}
	return l.call(ctx, request)
}

// within bounds a context; that its end is a missing answer is then told by its cause.
func (c *Client) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("%w in %v", ErrNoAnswer, d))
}

// ask sends a request and takes apart what may come back: an answer with one of the codes that are good, or an error. wait is
// what the peer may take beyond the usual.
func (c *Client) ask(ctx context.Context, address string, request *remoting.Command, wait time.Duration, good ...int) (*remoting.Command, error) {
	ctx, cancel := c.within(ctx, c.opt.Timeout+wait)
	defer cancel()
	answer, err := c.Call(ctx, address, request)
	if err != nil {
		return nil, err
	}
	if answer.Code == remoting.ResponseSuccess || slices.Contains(good, answer.Code) {
		return answer, nil
	}
	return nil, &RefusedError{Request: request.Code, Address: address, Code: answer.Code, Remark: answer.Remark}
}

// link is the one connection to the address, which may still be dialling.
func (c *Client) link(address string) (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.links == nil {
		return nil, ErrClosed
	}
	if l := c.links[address]; l != nil {
		return l, nil
	}
	if len(c.links) >= c.opt.MaxConnections {
		return nil, fmt.Errorf("%w: %d connections", ErrLimit, len(c.links))
	}
	l := newLink(c.opt, address)
	c.links[address] = l
	c.running.Go(func() { c.run(address, l) })
	return l, nil
}

// run lives as long as the link. A link is out of the table before its end is told: who tries again gets a new one.
func (c *Client) run(address string, l *link) {
	err := l.run(c.ctx)
	if c.ctx.Err() != nil {
		err = ErrClosed
	} else {
		err = fmt.Errorf("%w: %w", ErrConnection, err)
	}
	c.mu.Lock()
	if c.links[address] == l {
		delete(c.links, address)
	}
	c.mu.Unlock()
	l.end(err)
	if c.opt.Lost != nil && c.ctx.Err() == nil {
		c.opt.Lost(address)
	}
}

// causeOf says why a context has ended.
func causeOf(ctx context.Context) error {
	err := context.Cause(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", ErrNoAnswer, err) // the caller's own deadline
	}
	return err
}
