package remote

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	library "github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// reach opens the stream to a peer, and waits for it to be there. When the host stops meanwhile the library gets a stream that leads
// nowhere, as it would sleep after an error.
func (h *Host) reach(
	_ context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	ctx, cancel := context.WithCancel(h.stopping)
	patience := time.AfterFunc(reachTimeout, cancel)
	stream, err := streamer(ctx, desc, cc, method, append(opts, grpc.WaitForReady(true))...)
	if err == nil && !patience.Stop() {
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel()
		if h.stopping.Err() != nil {
			return nowhere{ctx: ctx, introduced: new(atomic.Bool)}, nil
		}
		return nil, err
	}
	o := &outgoing{ClientStream: stream, host: h, address: cc.Target(), end: cancel}
	h.farewells.open(o)
	return o, nil
}

// outgoing is the stream to a peer. Its end is an event, of which the library takes note on a goroutine of its own; a host must not
// stop in the middle of that.
type outgoing struct {
	grpc.ClientStream
	host    *Host
	address string
	end     context.CancelFunc
	heard   bool // the peer has answered; before, an error is no event

	forgotten bool // guarded by farewells: its end is no event, as the library knows it already
}

// RecvMsg implements grpc.ClientStream.
func (o *outgoing) RecvMsg(m any) error {
	err := o.ClientStream.RecvMsg(m)
	if err == nil {
		o.heard = true
		return nil
	}
	o.end()
	if !o.host.farewells.expect(o, o.heard && err != io.EOF) {
		return io.EOF
	}
	return err
}

// farewells are the ends of streams that the library has not taken note of yet.
type farewells struct {
	mu      sync.Mutex
	streams map[*outgoing]struct{}
	ending  map[string]int // streams whose end is an event that is about to come, by address
	waiter  chan struct{}  // not nil: the host stops; closed when none is ending
}

// open notes a stream.
func (f *farewells) open(o *outgoing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.streams[o] = struct{}{}
}

// forget: the library is told of the end of the streams to an address.
func (f *farewells) forget(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for o := range f.streams {
		o.forgotten = o.forgotten || o.address == address
	}
}

// expect notes that a stream has ended, and tells whether the library may hear of it, which makes an event. Not while the host stops, and
// not of one that it was told to forget: an event that is late would end the next connection to the peer.
func (f *farewells) expect(o *outgoing, event bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.streams, o)
	if f.waiter != nil || o.forgotten {
		return false
	}
	if event {
		f.ending[o.address]++
	}
	return true
}

// taken: the library has taken note of the end of a stream.
func (f *farewells) taken(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ending[address] > 1 {
		f.ending[address]--
	} else {
		delete(f.ending, address)
	}
	if f.waiter != nil && len(f.ending) == 0 {
		select {
		case <-f.waiter:
		default:
			close(f.waiter)
		}
	}
}

// wait lets no more events come, and waits for those that are about to, not for ever.
func (f *farewells) wait() {
	f.mu.Lock()
	f.waiter = make(chan struct{})
	none := len(f.ending) == 0
	f.mu.Unlock()
	if none {
		return
	}
	select {
	case <-f.waiter:
	case <-time.After(handshakeTimeout):
	}
}

// nowhere is a stream that takes everything and says nothing but that it is there, once.
type nowhere struct {
	ctx        context.Context //nolint:containedctx // a stream has one
	introduced *atomic.Bool
}

// Header implements grpc.ClientStream.
func (nowhere) Header() (metadata.MD, error) { return nil, io.EOF }

// Trailer implements grpc.ClientStream.
func (nowhere) Trailer() metadata.MD { return nil }

// CloseSend implements grpc.ClientStream.
func (nowhere) CloseSend() error { return nil }

// Context implements grpc.ClientStream.
func (n nowhere) Context() context.Context { return n.ctx }

// SendMsg implements grpc.ClientStream.
func (nowhere) SendMsg(any) error { return nil }

// RecvMsg implements grpc.ClientStream.
func (n nowhere) RecvMsg(m any) error {
	into, ok := m.(*library.RemoteMessage)
	if !ok {
		return fmt.Errorf("a stream of %T", m)
	}
	if n.introduced.Swap(true) {
		return io.EOF
	}
	into.MessageType = &library.RemoteMessage_ConnectResponse{ConnectResponse: &library.ConnectResponse{}}
	return nil
}
