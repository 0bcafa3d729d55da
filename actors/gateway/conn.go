package gateway

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/socket"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
)

// Errors of calls to a client.
var (
	// ErrConnectionClosed: the connection has ended before the answer came.
	ErrConnectionClosed = errors.New("connection closed")
	// ErrCallTimeout: the client did not answer in time.
	ErrCallTimeout = errors.New("the client did not answer in time")
	// ErrSlowClient: the client does not take what is waiting for it; nothing more is pushed to it.
	ErrSlowClient = errors.New("the client is too slow")
)

// Tenant is something that lives on a connection and ends with it: a held pull.
type Tenant interface {
	// Evict is called once, when the connection ends or the gateway stops, unless the tenant has moved out before. It must
	// not block.
	Evict()
}

var _ messages.ClientChannel = (*Conn)(nil)

// Conn is one connection, from its acceptance to its end. Its methods are safe for any goroutine and never block.
type Conn struct {
	id            uint64
	name          string         // for people: ID
	remote, local netip.AddrPort // of the socket
	who           atomic.Pointer[party]
	nonce         *[NonceBytes]byte // asked of the peer; only handlers on the reader look
	sock          net.Conn
	in            *bufio.Reader
	paced         *pacedReader // what in reads from
	frames        remoting.View
	arrival       arrival
	wire          atomic.Pointer[tls.Conn]
	port          int // of the service's
	shared        *shared
	self          actors.Peer

	out    outbox
	gate   *gate
	turns  chan struct{} // of slow requests that are being handled
	looks  chan struct{} // of the one slow request that waits for room
	room   *gate         // opens when the outbox has room
	parked atomic.Int64  // requests that are held back; the gate does not count them
	opaque atomic.Int32  // of our own requests
	binary atomic.Bool   // the codec of the last request
	heard  atomic.Int64  // when the last frame was read, in ns

	holds       bool  // a read calls release before it waits; only the reader looks
	holding     bool  // the reader is the outbox's writer; only the reader looks
	width       width // of in; only the reader looks
	draining    atomic.Bool
	paused      atomic.Int32             // above 0: nothing is handled until the gateway serves again
	relayed     atomic.Bool              // the peer is a node that relays
	peerIs      atomic.Pointer[identity] // what it has said of itself
	unnotedTold bool                     // that this is too much; only the reader looks
	tunnel      atomic.Pointer[tunnel]   // to the node that leads; nil: none
	relaying    atomic.Int64             // bytes of the requests that were handed on, and are not answered
	again       []*Request               // of a tunnel that was ended by a pause; the connection's actor only
	closed      chan struct{}
	closing     sync.Once
	cause       atomic.Pointer[error]

	mu      sync.Mutex
	tenants map[Tenant]struct{} // nil: nobody may move in any more
}

func newConn(id uint64, sock net.Conn, port int, shared *shared) *Conn {
	direct := socket.Of(sock)
	paced := &pacedReader{sock: sock, from: direct}
	c := &Conn{
		id: id, sock: sock, port: port, shared: shared, in: bufio.NewReaderSize(paced, readBufferBytes), paced: paced,
		gate: newGate(), room: newGate(), turns: make(chan struct{}, shared.opt.MaxSlowEach), looks: make(chan struct{}, 1), closed: make(chan struct{}), tenants: map[Tenant]struct{}{},
	}
	c.remote, c.local = addrOf(sock.RemoteAddr()), addrOf(sock.LocalAddr())
	c.who.Store(&party{addr: c.remote, text: c.remote.String()})
	c.name = fmt.Sprintf("%s#%d", c.remote, id)
	c.heard.Store(time.Now().UnixNano())
	c.out.sock = direct
	c.holds = direct.BeforeWait(func() bool { return c.holding }, c.release)
	c.out.onWrote = func() {
		c.gate.poke()
		c.room.poke()
	}
	c.out.onBroken = func(err error) { c.Close(fmt.Errorf("write: %w", err)) }
	return c
}

func addrOf(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	at := tcp.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

// ID names the connection; no other one of this gateway ever has the same. Implements messages.ClientChannel.
func (c *Conn) ID() string { return c.name }

// Local is the address that the peer has connected to.
func (c *Conn) Local() netip.AddrPort { return c.local }

// Port is the name of the port that the peer has connected to.
func (c *Conn) Port() string { return c.shared.service.Load().Ports[c.port].Name }

// Closed is closed when the connection is.
func (c *Conn) Closed() <-chan struct{} { return c.closed }

// Close ends the connection; the first cause counts. Answers that are not written yet are lost. Implements
// messages.ClientChannel.
func (c *Conn) Close(cause error) {
	c.closing.Do(func() {
		c.cause.Store(&cause)
		close(c.closed)
		_ = c.sock.Close() // nothing can be done about it, and nothing depends on it
	})
}

// Cause is why the connection has ended, nil while it is open.
func (c *Conn) Cause() error {
	if cause := c.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}

// Tell hands a message of another actor to Service.OnTell, which turns it into something to push. Implements
// messages.ClientChannel.
func (c *Conn) Tell(message any) {
	if tell := c.shared.service.Load().OnTell; tell != nil {
		tell(c, message)
	}
}

// Push sends a one-way request to the client, in the codec of its last request. It fails with ErrConnectionClosed, or with
// ErrSlowClient when too much is waiting to be written.
func (c *Conn) Push(request *remoting.Command) error {
	if err := c.pushable(); err != nil {
		return err
	}
	request.Flag |= remoting.FlagOneWay
	request.Opaque, request.Binary = c.opaque.Add(1), c.binary.Load()
	c.send(request)
	return nil
}

// Call sends a request to the client and waits, beside the caller, for its response: the envelope is completed once, with
// the response or ErrCallTimeout, ErrConnectionClosed or ErrSlowClient.
func (c *Conn) Call(request *remoting.Command, timeout time.Duration) *messages.Answer[*remoting.Command] {
	answer := messages.NewAnswer[*remoting.Command]()
	if err := c.pushable(); err != nil {
		answer.Refuse(err)
		return answer
	}
	request.Flag &^= remoting.FlagOneWay
	request.Opaque, request.Binary = c.opaque.Add(1), c.binary.Load()
	c.self.Send(call{request: request, timeout: timeout, answer: answer})
	return answer
}

func (c *Conn) pushable() error {
	select {
	case <-c.closed:
		return ErrConnectionClosed
	default:
	}
	if c.Congested() {
		return ErrSlowClient
	}
	return nil
}

// Congested tells whether MaxQueuedBytes wait to be written: large answers should rather be kept back.
func (c *Conn) Congested() bool { return c.out.bytes.Load() >= c.shared.opt.MaxQueuedBytes }

// MoveIn makes t a tenant; false when the connection is ending: the caller then ends t itself.
func (c *Conn) MoveIn(t Tenant) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tenants == nil {
		return false
	}
	c.tenants[t] = struct{}{}
	return true
}

// MoveOut ends a tenancy; false when it had ended already.
func (c *Conn) MoveOut(t Tenant) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, lived := c.tenants[t]
	delete(c.tenants, t)
	return lived
}

// Tenants is their number.
func (c *Conn) Tenants() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.tenants)
}

// evict ends all tenancies, and lets nobody in any more, or not until it may be lived in again.
func (c *Conn) evict() {
	c.mu.Lock()
	all := c.tenants
	c.tenants = nil
	c.mu.Unlock()
	for t := range all {
		t.Evict()
	}
}

// send frames a command and puts it into the outbox.
func (c *Conn) send(cmd *remoting.Command) {
	if f := c.framed(cmd, nil, nil); f != nil {
		c.out.put(f)
	}
}

// framed is the frame of a command, with the fields of h in the place of its own unless h is nil, and with the records of a get
// as its body if there is one; nil when there is nothing to send.
func (c *Conn) framed(cmd *remoting.Command, h remoting.Header, found *messages.GetResult) *frame {
	f := framePool.Get().(*frame)
	body := len(cmd.Body)
	if found != nil {
		f.hold, f.tail, body = found, found.Records, found.Bytes
	}
	var err error
	if f.head, err = cmd.AppendTyped(f.head[:0], h, body); err != nil {
		f.free()
		return c.unsendable(cmd, err)
	}
	if found == nil {
		f.attach(cmd.Body)
	}
	f.bytes = int64(len(f.head) + body)
	return f
}

// attach makes body the frame's: a short one is copied behind the header, so that one slice goes to the socket.
func (f *frame) attach(body []byte) {
	const short = 4 << 10
	if len(body) <= short {
		f.head = append(f.head, body...)
		return
	}
	f.own = [1][]byte{body}
	f.tail = f.own[:]
}

// unsendable answers in the place of a response that does not fit into a frame; a request of ours is only reported.
func (c *Conn) unsendable(cmd *remoting.Command, cause error) *frame {
	c.shared.opt.Logger.Error().Err(cause).Str("command", cmd.String()).Msg("a command can't be framed")
	if !cmd.IsResponse() {
		return nil
	}
	const longest = 1024
	text := cause.Error()
	return c.framed(&remoting.Command{
		Code: remoting.ResponseSystemError, Remark: text[:min(len(text), longest)], Version: remoting.Version,
		Opaque: cmd.Opaque, Flag: remoting.FlagResponse, Binary: cmd.Binary,
	}, nil, nil)
}

// leave counts a request out.
func (c *Conn) leave() {
	c.gate.inFlight.Add(-1)
	c.gate.poke()
	c.settled()
}

// settled tells a draining connection's actor that its last request may have been answered.
func (c *Conn) settled() {
	if c.draining.Load() && c.answered() {
		c.self.Send(drained{})
	}
}

// answered tells whether no request is unanswered.
func (c *Conn) answered() bool { return c.gate.inFlight.Load() == 0 && c.parked.Load() == 0 }

// open tells whether the reader may take one more request.
func (c *Conn) open() bool {
	return c.paused.Load() == 0 && c.gate.inFlight.Load() < int64(c.shared.opt.MaxInFlight) && !c.Congested() &&
		c.relaying.Load() < c.shared.opt.MaxQueuedBytes
}
