package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/actormq/actormq/messages/remoting"
)

// Options bound what peers may take. The zero value of a field is its default.
type Options struct {
	MaxConnections int           // of all ports together; one more is closed at once; default 8192
	MaxInFlight    int           // unanswered requests a connection, held pulls not counted; default 1024
	MaxQueuedBytes int64         // answers a connection that wait to be written; default 8 MiB
	MaxLargeBytes  int64         // all frames above 64 KiB that are being read or handled; default 128 MiB, at least one frame
	MaxSlow        int           // requests of the lane Slow that run at once; default 64
	MaxSlowEach    int           // of them, those of one connection; default 4
	FrameBytes     int           // largest frame; default 16 MiB (spec/remoting.md §1.1)
	IdleTimeout    time.Duration // without a frame read or written; default 120 s
	WriteTimeout   time.Duration // for a peer that takes nothing; default 30 s
	Logger         zerolog.Logger

	TLSMode          TLSMode       // default TLSDisabled
	HandshakeTimeout time.Duration // from the first byte of TLS; default 10 s
	MaxHandshakes    int           // that compute at once; default 32
}

// Defaults returns the options with every zero field filled in.
func (o Options) Defaults() Options {
	o.MaxConnections = cmp.Or(o.MaxConnections, 8192)
	o.MaxInFlight = cmp.Or(o.MaxInFlight, 1024)
	o.MaxQueuedBytes = cmp.Or(o.MaxQueuedBytes, 8<<20)
	o.MaxLargeBytes = cmp.Or(o.MaxLargeBytes, 128<<20)
	o.MaxSlow = cmp.Or(o.MaxSlow, 64)
	o.MaxSlowEach = cmp.Or(o.MaxSlowEach, 4)
	o.FrameBytes = cmp.Or(o.FrameBytes, remoting.DefaultFrameBytes)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 120*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 30*time.Second)
	o.HandshakeTimeout = cmp.Or(o.HandshakeTimeout, 10*time.Second)
	o.MaxHandshakes = cmp.Or(o.MaxHandshakes, 32)
	return o
}

// ErrOptions: an option is out of its range; the message lists every problem.
var ErrOptions = errors.New("bad gateway options")

// Validate returns all problems of filled-in options at once, or nil.
func (o Options) Validate() error {
	var bad []error
	for _, c := range []struct {
		name  string
		value int64
		least int64
	}{
		{"MaxConnections", int64(o.MaxConnections), 1},
		{"MaxInFlight", int64(o.MaxInFlight), 1},
		{"MaxQueuedBytes", o.MaxQueuedBytes, 1},
		{"MaxLargeBytes", o.MaxLargeBytes, int64(o.FrameBytes)},
		{"MaxSlow", int64(o.MaxSlow), 1},
		{"MaxSlowEach", int64(o.MaxSlowEach), 1},
		{"FrameBytes", int64(o.FrameBytes), 1024},
		{"IdleTimeout", int64(o.IdleTimeout), 1},
		{"WriteTimeout", int64(o.WriteTimeout), 1},
		{"HandshakeTimeout", int64(o.HandshakeTimeout), 1},
		{"MaxHandshakes", int64(o.MaxHandshakes), 1},
	} {
		if c.value < c.least {
			bad = append(bad, fmt.Errorf("%s is %d: at least %d", c.name, c.value, c.least))
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrOptions, errors.Join(bad...))
}

// Port is one address to listen on and what it serves.
type Port struct {
	Name    string // for logs: "broker", "namesrv", "vip"
	Address string // host:port; port 0 takes a free one
	Routes  Routes
	// Check, when set, is asked about every request before its handler: an error is the refusal, its text the remark. It runs on
	// the connection's reader and must not block.
	Check func(*Request) error
}

// Routes are the request codes that a port serves; any other is answered with code 3. The table is not changed once a
// gateway has it.
type Routes map[int]Route

// Route says how the requests of one code are handled.
type Route struct {
	// Handle answers the request, now or later: it calls exactly one of the answering methods of Request, also for a
	// one-way request.
	Handle func(*Request)
	Lane   Lane
	// RefuseWhenStopping: while the gateway stops, the request is refused with SERVICE_NOT_AVAILABLE, on which clients try
	// another broker; else it is still served.
	RefuseWhenStopping bool
	// Borrows: a Quick handler is through with the request's strings, ext fields and body when it returns, and so is whoever it
	// has given them to: they may lie in the connection's read buffer, and are taken away then. It copies what it keeps.
	// Everything else of a request, and answering it, is not concerned.
	Borrows bool
}

// Lane says on which goroutine a request is handled.
type Lane int

const (
	// Quick handlers never wait: they run on the connection's reader, and the answers of a burst are written together.
	Quick Lane = iota
	// Ordered handlers may wait for an actor: they run on the connection's reader, in order, and answers of others are not
	// held up meanwhile.
	Ordered
	// Slow handlers may take long, or answer much (a search, a list): each has a goroutine of its own, MaxSlow at once, MaxSlowEach of
	// one connection, and none begins while its connection's answers pile up.
	Slow
)
