package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	library "github.com/asynkron/protoactor-go/remote"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/actormq/actormq/system/remote/wire"
)

// errRule: a peer has sent what it may not.
var errRule = errors.New("against the rules of remoting")

// maxNameBytes bounds the name of an actor that answers go to.
const maxNameBytes = 128

// guard looks at what peers send before the library does.
type guard struct {
	open     []string
	anywhere bool // a peer may introduce itself with any address: its certificate says who it is
	log      zerolog.Logger
	noise    zerolog.Logger // for what peers can cause at will: a few lines a minute
	self     atomic.Pointer[string]
	refusals atomic.Int64
	streams  sync.WaitGroup

	mu    sync.Mutex
	gates map[string]*gate // by the address that a peer has introduced itself with
}

func newGuard(cfg Config) *guard {
	return &guard{open: cfg.Open, anywhere: cfg.mutual(), log: cfg.Logger, noise: cfg.noise, gates: map[string]*gate{}}
}

// unary refuses the library's calls beside the stream: it panics in them.
func (g *guard) unary(ctx context.Context, _ any, info *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
	g.refuse(ctx, fmt.Errorf("%w: %s", errRule, info.FullMethod))
	return nil, status.Error(codes.Unimplemented, "not served")
}

// stream serves the stream of one peer. A panic ends the stream, not the process.
func (g *guard) stream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	g.streams.Add(1)
	defer g.streams.Done()
	w := &watched{ServerStream: ss, guard: g}
	defer w.end()
	defer func() {
		if r := recover(); r != nil {
			g.log.Error().Interface("panic", r).Bytes("stack", debug.Stack()).Msg("a stream of a remote peer panicked")
			err = status.Error(codes.Internal, "a bug")
		}
	}()
	return next(srv, w)
}

func (g *guard) refuse(ctx context.Context, why error) {
	g.refusals.Add(1)
	e := g.noise.Warn().Err(why)
	if p, ok := peer.FromContext(ctx); ok {
		e = e.Stringer("peer", p.Addr)
	}
	e.Msg("a remote peer is refused")
}

// watched is the stream of one peer.
type watched struct {
	grpc.ServerStream
	guard *guard
	from  string // what the peer has introduced itself with
	gate  *gate
}

func (w *watched) end() {
	if w.gate != nil {
		w.guard.leave(w.from)
	}
}

// RecvMsg implements grpc.ServerStream.
func (w *watched) RecvMsg(m any) error {
	if err := w.gate.wait(w.Context()); err != nil {
		return err
	}
	if err := w.ServerStream.RecvMsg(m); err != nil {
		if errors.Is(err, errFrame) || status.Code(err) == codes.Internal || status.Code(err) == codes.ResourceExhausted {
			w.guard.refuse(w.Context(), err)
		}
		return err
	}
	if err := w.look(m); err != nil {
		w.guard.refuse(w.Context(), err)
		return status.Error(codes.InvalidArgument, err.Error())
	}
	return nil
}

func (w *watched) look(m any) error {
	frame, ok := m.(*library.RemoteMessage)
	if !ok {
		return fmt.Errorf("%w: %T", errRule, m)
	}
	switch t := frame.GetMessageType().(type) {
	case *library.RemoteMessage_ConnectRequest:
		return w.introduce(t.ConnectRequest.GetServerConnection().GetAddress())
	case *library.RemoteMessage_MessageBatch:
		return w.batch(t.MessageBatch)
	default:
		return fmt.Errorf("%w: %T", errRule, t)
	}
}

// introduce notes where a peer can be reached. Answers go there, so it must be where the peer is.
func (w *watched) introduce(address string) error {
	if w.gate != nil {
		return fmt.Errorf("%w: it introduces itself twice", errRule)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil || len(address) > maxNameBytes {
		return fmt.Errorf("%w: it says that its address is %.80q", errRule, address)
	}
	if p, ok := peer.FromContext(w.Context()); ok && !w.guard.anywhere {
		at, ok := p.Addr.(*net.TCPAddr)
		if said := net.ParseIP(host); !ok || said == nil || !said.Equal(at.IP) {
			return fmt.Errorf("%w: it says that its address is %s, and connects from %s", errRule, address, p.Addr)
		}
	}
	if p, ok := peer.FromContext(w.Context()); ok {
		if t, ok := p.AuthInfo.(ticket); ok {
			t.visitor.introduced.Store(true)
		}
	}
	w.from, w.gate = address, w.guard.enter(address)
	return nil
}

func (w *watched) batch(b *library.MessageBatch) error {
	if w.gate == nil {
		return fmt.Errorf("%w: it does not say who it is", errRule)
	}
	self := *w.guard.self.Load()
	for _, t := range b.GetTargets() {
		if t.GetAddress() != self || !slices.Contains(w.guard.open, t.GetId()) || t.GetRequestId() != 0 {
			return fmt.Errorf("%w: a message for %.80q at %.80q", errRule, t.GetId(), t.GetAddress())
		}
	}
	for _, s := range b.GetSenders() {
		if s.GetAddress() != w.from || len(s.GetId()) > maxNameBytes || s.GetRequestId() != 0 {
			return fmt.Errorf("%w: a message from %.80q at %.80q, by the peer %s", errRule, s.GetId(), s.GetAddress(), w.from)
		}
	}
	for _, name := range b.GetTypeNames() {
		if name != string(wire.EnvelopeName) {
			return fmt.Errorf("%w: a message of type %.80q", errRule, name)
		}
	}
	bytes := 0
	for _, e := range b.GetEnvelopes() {
		if !within(e.GetTypeId(), b.GetTypeNames()) || !within(e.GetTarget(), b.GetTargets()) || !within(e.GetSender()-1, b.GetSenders()) ||
			e.GetSerializerId() != 0 || e.GetTargetRequestId() != 0 || e.GetSenderRequestId() != 0 || e.GetMessageHeader() != nil {
			return fmt.Errorf("%w: a message that names what is not there", errRule)
		}
		bytes += len(e.GetMessageData())
	}
	w.gate.add(len(b.GetEnvelopes()), bytes)
	return nil
}

func within[T any](i int32, list []T) bool { return i >= 0 && int(i) < len(list) }
