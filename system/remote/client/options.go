package client

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/actormq/actormq/system/remote"
	"github.com/actormq/actormq/system/remote/wire"
)

// Why a request failed.
var (
	// ErrClosed: the client has been closed. A put that was under way may be stored.
	ErrClosed = errors.New("the client of the store is closed")
	// ErrBusy: MaxInFlight requests are under way.
	ErrBusy = errors.New("too many requests are under way")
	// ErrNoAnswer: it was sent, and not answered in time. A put may be stored all the same.
	ErrNoAnswer = errors.New("no answer in time")
	// ErrUnreachable: in all the time no node took the request. Nothing was stored.
	ErrUnreachable = errors.New("no node has taken the request")
	// ErrAnswer: the node has answered what makes no sense.
	ErrAnswer = errors.New("the answer can't be read")
	// ErrNoQueues: the topic has no queues, or not those that were named.
	ErrNoQueues = errors.New("there is no queue to read")
	// ErrOptions: the options make no sense.
	ErrOptions = errors.New("bad options of the store's client")
)

// RefusedError is the answer of a node that will not carry out a request: asking again does not help.
type RefusedError struct {
	Code wire.Code
	Text string
}

func (e *RefusedError) Error() string { return fmt.Sprintf("refused (%v): %s", e.Code, e.Text) }

// StatusError is the answer to a put whose status is not PUT_OK, with the node's words.
type StatusError struct {
	Status string
	Text   string
}

func (e *StatusError) Error() string { return e.Status + ": " + e.Text }

// Options are what a client is made of. The zero value of a field is its default.
type Options struct {
	Resolver Resolver // required
	// Listen is where nodes connect to with their answers; default 127.0.0.1 and any port. Elsewhere than on loopback both TLS
	// configurations are required, with certificates on both sides. Advertise is how nodes reach it, if that is another address.
	Listen, Advertise string
	Server, Client    *tls.Config // for connections from nodes and to nodes

	Timeout          time.Duration // of a request that has no deadline; default 5 s
	MaxInFlight      int           // requests under way, at most; default and limit 1024
	MaxInFlightBytes int           // of messages on their way to nodes; default 8 MiB. One goes whatever its size
	Logger           zerolog.Logger
}

// Pauses and periods of a client.
const (
	helloTimeout   = time.Second     // for a node to say who it is
	attemptTimeout = 2 * time.Second // for an answer, before it is asked again; twice as long each time
	maxAttempt     = 8 * time.Second
	firstPause     = 20 * time.Millisecond // after a refusal; twice as long each time
	maxPause       = time.Second
	renewEvery     = 2 * time.Second        // of a subscription
	ackEvery       = 100 * time.Millisecond // while something was acknowledged that the node does not know
)

const (
	mostInFlight = 1024
	// maxRequestBytes is far above what nodes take: what is longer than a frame would end the connection.
	maxRequestBytes = remote.MaxFrameBytes / 2
)

func (o Options) defaults() Options {
	o.Listen = cmp.Or(o.Listen, "127.0.0.1:0")
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	o.MaxInFlight = cmp.Or(o.MaxInFlight, mostInFlight)
	o.MaxInFlightBytes = cmp.Or(o.MaxInFlightBytes, 8<<20)
	return o
}

func (o Options) validate() error {
	if o.Resolver == nil {
		return fmt.Errorf("%w: Resolver is missing", ErrOptions)
	}
	if o.MaxInFlight < 1 || o.MaxInFlight > mostInFlight || o.MaxInFlightBytes < 1 || o.Timeout < 0 {
		return fmt.Errorf("%w: MaxInFlight is 1 to %d, MaxInFlightBytes and Timeout are above 0", ErrOptions, mostInFlight)
	}
	return nil
}
