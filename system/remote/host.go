package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	library "github.com/asynkron/protoactor-go/remote"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
)

// ErrConfig: a host can't be started as it is told to.
var ErrConfig = errors.New("bad configuration of remoting")

// Bounds of what a host takes and keeps; a peer that goes beyond is refused or held up.
const (
	// MaxFrameBytes is the largest message of the library, which puts up to batchMessages of ours into one. Both sides bound the bytes
	// that they have in flight far below.
	MaxFrameBytes = 32 << 20
	// MaxUnhandledBytes and MaxUnhandled are what is taken from one peer and not handled yet.
	MaxUnhandledBytes = 16 << 20
	MaxUnhandled      = 8192

	batchMessages    = 256
	maxBatchReceived = 1024 // other peers may have other settings
	maxConnections   = 1024
	queueCapacity    = 64 // to begin with, it grows
	handshakeTimeout = 10 * time.Second
	keepaliveEvery   = 10 * time.Second
	reachTimeout     = 20 * time.Second // then what waits for a peer is dropped
)

// Config is what a host is made of.
type Config struct {
	Listen    string // HOST:PORT; port 0 chooses one
	Advertise string // HOST:PORT by which peers reach it; empty: where it listens
	// TLS is for connections that come in and that go out, both or neither; it is asked anew for each. Nil: none. The server must ask for
	// certificates and check them (tls.RequireAndVerifyClientCert) when it listens elsewhere than on loopback.
	TLS    func() (server, client *tls.Config)
	Open   []string // names of the actors that peers may send to
	Logger zerolog.Logger
	noise  zerolog.Logger // for what peers can cause at will
}

func (c Config) validate() error {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("%w: listen on %q: %w", ErrConfig, c.Listen, err)
	}
	if c.Advertise != "" && port == "0" {
		return fmt.Errorf("%w: who says by which address it is reached must choose the port too", ErrConfig)
	}
	if c.TLS != nil {
		if server, client := c.TLS(); server == nil || client == nil {
			return fmt.Errorf("%w: TLS is for both directions or for none", ErrConfig)
		}
	}
	ip := net.ParseIP(host)
	if messages.IsLoopback(host) {
		return nil
	}
	if !c.mutual() {
		return fmt.Errorf("%w: %s is not loopback: whoever reaches it could write and read, so both sides have to show certificates", ErrConfig, c.Listen)
	}
	if c.Advertise == "" && (ip == nil || ip.IsUnspecified()) {
		return fmt.Errorf("%w: %s is no address that peers can connect to: say which", ErrConfig, c.Listen)
	}
	return nil
}

// mutual tells whether peers prove who they are.
func (c Config) mutual() bool {
	if c.TLS == nil {
		return false
	}
	server, _ := c.TLS()
	return server.ClientAuth == tls.RequireAndVerifyClientCert
}

// Host is an actor system of its own on the network. Safe for concurrent use.
type Host struct {
	System *actor.ActorSystem
	cfg    Config
	remote *library.Remote
	guard  *guard
	doors  *doors

	farewells farewells

	stopping context.Context // ended by Stop
	stop     context.CancelFunc
	stopped  sync.Once
}

// linesAMinute are as many as peers can cause by breaking rules; Refused counts all.
const linesAMinute = 10

// Start opens the port. What the library panics at comes as an error.
func Start(cfg Config) (h *Host, err error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	host, text, _ := net.SplitHostPort(cfg.Listen)
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%w: port %q", ErrConfig, text)
	}
	cfg.noise = cfg.Logger.Sample(&zerolog.BurstSampler{Burst: linesAMinute, Period: time.Minute})
	h = &Host{
		System: actor.NewActorSystem(system.ActorLogging(cfg.Logger), actor.WithDeadLetterThrottleInterval(10*time.Millisecond)),
		cfg:    cfg, guard: newGuard(cfg), doors: &doors{noise: cfg.noise, open: map[*visitor]struct{}{}, knocked: make(chan struct{})},
		farewells: farewells{streams: map[*outgoing]struct{}{}, ending: map[string]int{}},
	}
	h.stopping, h.stop = context.WithCancel(context.Background())
	c := library.Configure(host, int(port), library.WithAdvertisedHost(cfg.Advertise), library.WithEndpointWriterBatchSize(batchMessages),
		library.WithEndpointWriterQueueSize(queueCapacity), library.WithServerOptions(h.serverOptions()...),
		library.WithDialOptions(h.dialOptions()...))
	if v6 := net.ParseIP(host); v6 != nil && v6.To4() == nil {
		c.Host = "[" + host + "]"
	}
	c.MaxRetryCount = 1 // the waiting is in reach
	h.remote = library.NewRemote(h.System, c)
	defer func() {
		if r := recover(); r != nil {
			h.stop()
			h.System.Shutdown()
			h, err = nil, fmt.Errorf("start remoting: %v", r)
		}
	}()
	h.guard.self.Store(&cfg.Advertise)
	h.remote.Start()
	h.Watch(func(address string, connected bool) { // it is called behind the library's own
		if !connected {
			h.farewells.taken(address)
		}
	})
	self := h.Address()
	h.guard.self.Store(&self)
	return h, h.knock()
}

// knock connects to the host, and returns when it has been let in: the library serves on a goroutine of its own, and does not say when.
func (h *Host) knock() error {
	ctx, cancel := context.WithTimeout(h.stopping, handshakeTimeout)
	defer cancel()
	at := h.cfg.Listen
	if h.cfg.Advertise == "" {
		at = h.Address()
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", at)
	if err == nil {
		select {
		case <-h.doors.knocked:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		err = errors.Join(err, conn.Close())
	}
	if err != nil {
		h.Stop()
		return fmt.Errorf("start remoting: %w", err)
	}
	return nil
}

// Address is by what peers reach the host: HOST:PORT.
func (h *Host) Address() string { return h.System.Address() }

// Handled says that so many messages, of so many bytes of payload, that the peer at an address has sent have been handled: as many more
// are read from it.
func (h *Host) Handled(address string, messages, bytes int) {
	h.guard.handled(address, messages, bytes)
}

// Forget drops the connection to a peer and what waits for it.
func (h *Host) Forget(address string) {
	h.farewells.forget(address)
	h.System.EventStream.Publish(&library.EndpointTerminatedEvent{Address: address})
}

// Watch calls fn, which must not block, with the address of each peer that the connection to has been made or lost. The function that
// it returns ends that.
func (h *Host) Watch(fn func(address string, connected bool)) (end func()) {
	sub := h.System.EventStream.Subscribe(func(event any) {
		switch e := event.(type) {
		case *library.EndpointConnectedEvent:
			fn(e.Address, true)
		case *library.EndpointTerminatedEvent:
			fn(e.Address, false)
		}
	})
	return func() { h.System.EventStream.Unsubscribe(sub) }
}

// Refused counts peers that were refused: connections that spoke something else, and messages against the rules.
func (h *Host) Refused() int64 { return h.guard.refusals.Load() + h.doors.refused.Load() }

// Stop closes the port and all connections; actors of the system should have ended before. Only the first call does something.
func (h *Host) Stop() {
	h.stopped.Do(func() {
		h.stop()
		h.doors.close()
		h.guard.streams.Wait()
		h.farewells.wait()
		h.shutdown()
		h.System.Shutdown()
	})
}

// shutdown ends the library. It can panic when a connection ends at the same moment: then only its server is left to be ended.
func (h *Host) shutdown() {
	defer func() {
		if r := recover(); r != nil {
			h.cfg.Logger.Debug().Interface("panic", r).Msg("stopping remoting")
			h.remote.Shutdown(false)
		}
	}()
	h.remote.Shutdown(true)
}

func (h *Host) serverOptions() []grpc.ServerOption {
	h.doors.inner = h.credentials()
	return []grpc.ServerOption{
		grpc.Creds(h.doors), grpc.ForceServerCodec(codec{}), grpc.MaxRecvMsgSize(MaxFrameBytes), grpc.MaxConcurrentStreams(4),
		grpc.MaxHeaderListSize(8 << 10), grpc.ConnectionTimeout(handshakeTimeout),
		grpc.StreamInterceptor(h.guard.stream), grpc.UnaryInterceptor(h.guard.unary), grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveEvery, Timeout: keepaliveEvery}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveEvery / 2, PermitWithoutStream: true}),
	}
}

func (h *Host) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(h.credentials()), grpc.WithStreamInterceptor(h.reach),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<20), grpc.MaxCallSendMsgSize(MaxFrameBytes)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: 2 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveEvery, Timeout: keepaliveEvery / 2, PermitWithoutStream: true}),
		grpc.WithIdleTimeout(0), grpc.WithDisableServiceConfig(),
	}
}
