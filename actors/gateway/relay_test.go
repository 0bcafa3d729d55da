package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages/remoting"
)

const (
	codeTell  = 901
	codeGreet = 902
	codeLeave = 903
	codeClose = 904
	codeWait  = 905
	codeBeat  = remoting.RequestHeartbeat
	codeBye   = remoting.RequestUnregisterClient
)

// seat says who leads.
type seat struct {
	mu      sync.Mutex
	address string
	changed chan struct{}
}

func (s *seat) leader() (string, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.address, s.changed
}

func (s *seat) set(address string) {
	s.leader()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.address = address
	close(s.changed)
	s.changed = make(chan struct{})
}

// member is a gateway that leads or relays.
type member struct {
	*gateway.Gateway
	name          string
	seat          *seat
	relayed, lost atomic.Int64
	asked         atomic.Int64 // for what ends a connection
	beats         chan string
	held          chan *gateway.Request
	waits         chan *gateway.Request
	mute          atomic.Bool // it does not answer what clients say of themselves
	narrow        bool        // what it relays has little room on its way
}

func join(t *testing.T, name string, s *seat) *member {
	t.Helper()
	return joinWith(t, gateway.Options{}, name, s)
}

func joinWith(t *testing.T, opt gateway.Options, name string, s *seat) *member {
	t.Helper()
	m := &member{name: name, seat: s, beats: make(chan string, 100), held: make(chan *gateway.Request, 100), waits: make(chan *gateway.Request, 100)}
	m.Gateway = start(t, opt, gateway.Routes{})
	m.pause(t)
	return m
}

func (m *member) pause(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, m.Suspend(ctx))
}

// pausing begins a pause that waits for something.
func (m *member) pausing(t *testing.T) <-chan error {
	t.Helper()
	paused := make(chan error, 1)
	go func() { paused <- m.Suspend(t.Context()) }()
	quiet(t, paused)
	return paused
}

func (m *member) serve(t *testing.T, leads bool) {
	t.Helper()
	said := func(r *gateway.Request) {
		if m.beats <- string(r.Body); m.mute.Load() {
			m.waits <- r
			return
		}
		r.OK(nil)
	}
	s := gateway.Service{Beat: codeBeat, Bye: codeBye, Ports: []gateway.Port{{Name: "test", Routes: gateway.Routes{
		codeTell: {Handle: func(r *gateway.Request) {
			a := r.Command.Answer(0, m.name)
			a.Body = append([]byte(nil), r.Body...)
			r.Answer(a)
		}, Borrows: true},
		codeBeat: {Lane: gateway.Ordered, Handle: said},
		codeBye:  {Lane: gateway.Ordered, Handle: said},
		codeGreet: {Handle: func(r *gateway.Request) {
			if !leads {
				r.Fail(remoting.ResponseServiceNotAvailable, "")
				return
			}
			r.Conn.SetRelayed()
			r.OK(nil)
		}},
		codeWait: {Handle: func(r *gateway.Request) { m.waits <- r }},
		codeLeave: {Handle: func(r *gateway.Request) {
			m.asked.Add(1)
			r.Abandon(errors.New("no answer"))
		}},
		codeClose: {Handle: func(r *gateway.Request) {
			m.asked.Add(1)
			r.Conn.Close(errors.New("closed"))
			r.OK(nil)
		}},
		remoting.RequestPullMessage: {Handle: func(r *gateway.Request) {
			r.Park()
			m.held <- r
		}},
	}}}}
	if !leads {
		s.Relay = m.relay()
	}
	require.NoError(t, m.Serve(s))
}

// relay hands everything on to whoever leads.
func (m *member) relay() *gateway.Relay {
	return &gateway.Relay{
		Takes: func(c *remoting.Command) bool { return c.Code != codeGreet }, Held: remoting.RequestPullMessage, Leader: m.seat.leader, Patience: patience,
		Dial: func(ctx context.Context, address string, _ bool) (net.Conn, error) {
			var d net.Dialer
			sock, err := d.DialContext(ctx, "tcp", address)
			if err == nil && m.narrow {
				err = sock.(*net.TCPConn).SetWriteBuffer(4 << 10)
			}
			return sock, err
		},
		Hello:   func() *remoting.Command { return remoting.NewRequest(codeGreet, nil) },
		Relayed: &m.relayed, Failed: &m.lost,
	}
}

// relays serves nothing itself.
func (m *member) relays(t *testing.T, relay *gateway.Relay) {
	t.Helper()
	require.NoError(t, m.Serve(gateway.Service{Relay: relay, Ports: []gateway.Port{{
		Name: "test", Routes: gateway.Routes{codeTell: {}, remoting.RequestPullMessage: {}},
	}}}))
}

// relaying is a leader, a node that relays to it, and a client of that.
func relaying(t *testing.T) (s *seat, leader, node *member, p *peer) {
	t.Helper()
	s = new(seat)
	leader, node = join(t, "leader", s), join(t, "node", s)
	leader.serve(t, true)
	node.serve(t, false)
	s.set(leader.at())
	return s, leader, node, dial(t, node.Gateway)
}

func (m *member) at() string { return m.Address(0).String() }

func body(code int, opaque int32, text string) *remoting.Command {
	c := request(code, opaque)
	c.Body = []byte(text)
	return c
}

func TestAConnectionOutlivesTheServiceBehindIt(t *testing.T) {
	m := join(t, "first", new(seat))
	m.serve(t, true)
	p := dial(t, m.Gateway)
	p.send(body(codeBeat, 1, "who"), body(codeTell, 2, "a"), request(remoting.RequestPullMessage, 3))
	require.Equal(t, int32(1), p.read().Opaque)
	require.Equal(t, "first", p.read().Remark)
	require.Equal(t, "who", arrives(t, m.beats))
	held := arrives(t, m.held)
	paused := m.pausing(t) // a request is not answered
	held.OK(nil)
	require.Equal(t, int32(3), p.read().Opaque)
	require.NoError(t, arrives(t, paused))
	p.send(body(codeTell, 4, "b"))
	p.silent()
	m.name = "second"
	m.serve(t, true)
	require.Equal(t, "second", p.read().Remark, "on the same connection")
	require.Equal(t, "who", arrives(t, m.beats), "the new service knows who it is")
}

func TestRequestsForTheLeaderAreRelayedAndItReachesTheClient(t *testing.T) {
	s := new(seat)
	leader, node := join(t, "leader", s), join(t, "node", s)
	leader.serve(t, true)
	node.serve(t, false)
	p := dial(t, node.Gateway)
	p.send(body(codeBeat, 1, "me"))
	require.Equal(t, "me", arrives(t, node.beats), "by a heartbeat alone nobody takes this node for the leader")
	require.Equal(t, int32(1), p.read().Opaque)
	p.send(body(codeTell, 7, "x"), body(codeTell, 7, "y")) // nobody leads yet; the numbers of hostile peers may be the same
	p.silent()
	s.set(leader.at())
	for _, want := range []string{"x", "y"} {
		a := p.read()
		require.Equal(t, []any{int32(7), "leader", want}, []any{a.Opaque, a.Remark, string(a.Body)})
	}
	require.Equal(t, "me", arrives(t, leader.beats))
	p.send(request(remoting.RequestPullMessage, 9))
	held := arrives(t, leader.held)
	answer := held.Conn.Call(request(77, 0), patience)
	asked := p.read()
	require.Equal(t, 77, asked.Code)
	reply := asked.Answer(0, "told")
	p.send(reply)
	got, err := answer.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, "told", got.Remark)
	held.OK(nil)
	require.Equal(t, int32(9), p.read().Opaque)
	require.EqualValues(t, 3, node.relayed.Load())
	require.True(t, held.Conn.Relayed())
	require.NoError(t, p.sock.Close())
	arrives(t, held.Conn.Closed()) // with the client its connection to the leader ends
}

// What the leader has not answered goes to the next one, also to this node itself.
func TestWhatIsNotAnsweredGoesToTheNextLeader(t *testing.T) {
	s := new(seat)
	first, second, node := join(t, "first", s), join(t, "second", s), join(t, "node", s)
	first.serve(t, true)
	second.serve(t, false)
	node.serve(t, false)
	s.set(first.at())
	p := dial(t, node.Gateway)
	p.send(request(remoting.RequestPullMessage, 1))
	arrives(t, first.held)
	s.set(second.at()) // which does not lead yet: nothing is relayed twice
	quiet(t, second.held)
	second.pause(t)
	second.serve(t, true)
	arrives(t, second.held)
	node.pause(t)
	node.serve(t, true)
	held := arrives(t, node.held)
	held.OK(nil)
	require.Equal(t, int32(1), p.read().Opaque)
	p.send(body(codeTell, 2, ""))
	require.Equal(t, "node", p.read().Remark)
	require.Zero(t, node.lost.Load())
}

func TestARelayedConnectionEndsWithTheLead(t *testing.T) {
	s := new(seat)
	leader := join(t, "leader", s)
	leader.serve(t, true)
	p, q := dial(t, leader.Gateway), dial(t, leader.Gateway)
	p.send(request(codeGreet, 1))
	require.Equal(t, 0, p.read().Code)
	leader.pause(t)
	leader.serve(t, true) // another time: those who relay have closed the connection, and ask again on another one
	p.gone()
	p = dial(t, leader.Gateway)
	p.send(request(codeGreet, 1))
	require.Equal(t, 0, p.read().Code)
	leader.pause(t)
	p.send(request(codeGreet, 2), body(codeTell, 3, ""), body(codeTell, 4, ""), body(codeTell, 5, ""))
	p.silent() // they have come
	leader.serve(t, false)
	p.gone()
	require.Zero(t, leader.relayed.Load(), "nothing is relayed for who relays")
	s.set("127.0.0.1:1") // nobody is there
	q.send(request(codeGreet, 1))
	require.Equal(t, remoting.ResponseServiceNotAvailable, q.read().Code)
}

func TestANodeThatRelaysChecksFirst(t *testing.T) {
	s := new(seat)
	node := join(t, "node", s)
	require.NoError(t, node.Serve(gateway.Service{
		Ports: []gateway.Port{{
			Name: "test", Routes: gateway.Routes{codeTell: {}}, Check: func(*gateway.Request) error { return errors.New("who are you") },
		}},
		Relay: &gateway.Relay{
			Takes: func(*remoting.Command) bool { return true }, Leader: s.leader, Relayed: &node.relayed, Failed: &node.lost,
		},
	}))
	p := dial(t, node.Gateway)
	p.send(request(codeTell, 1))
	require.Equal(t, "who are you", p.read().Remark)
	require.Zero(t, node.relayed.Load())
}

func TestNobodyWaitsForALeaderForEver(t *testing.T) {
	s := new(seat)
	node := join(t, "node", s)
	node.serve(t, false)
	relay := node.relay()
	relay.Patience = time.Millisecond
	node.relays(t, relay)
	p := dial(t, node.Gateway)
	for n := range int32(3) {
		p.send(request(codeTell, n))
		require.Equal(t, remoting.ResponseServiceNotAvailable, p.read().Code)
	}
	require.EqualValues(t, 3, node.lost.Load())
}

// Large requests that wait for the leader when their client goes give back what they had of the common budget.
func TestWhatIsRelayedGivesItsRoomBackWithItsClient(t *testing.T) {
	s := new(seat)
	node := joinWith(t, gateway.Options{FrameBytes: 200 << 10, MaxLargeBytes: 200 << 10}, "node", s)
	node.serve(t, false)
	for n := range int64(3) {
		p := dial(t, node.Gateway)
		p.send(body(codeTell, 1, string(make([]byte, 150<<10)))) // two do not fit
		require.Eventually(t, func() bool { return node.relayed.Load() == n+1 }, patience, time.Millisecond)
		require.NoError(t, p.sock.Close())
	}
}

// What the leader gives no answer to ends the client's connection, as without a relay, and is asked once.
func TestWhatTheLeaderAbandonsIsAbandoned(t *testing.T) {
	_, leader, node, p := relaying(t)
	q := dial(t, node.Gateway)
	q.send(body(codeTell, 1, "x"))
	require.Equal(t, "leader", q.read().Remark)
	p.send(request(codeLeave, 1))
	p.gone()
	require.EqualValues(t, 1, leader.asked.Load())
	q.send(body(codeTell, 2, "y"))
	require.Equal(t, "leader", q.read().Remark, "nobody else is concerned")
}

// A leader that closes the connection for a request is not asked for ever.
func TestALeaderThatClosesIsNotAskedForEver(t *testing.T) {
	_, leader, _, p := relaying(t)
	p.send(request(codeClose, 1))
	p.gone()
	require.LessOrEqual(t, leader.asked.Load(), int64(4))
}

// Where an error would be taken for a fact nobody gets one.
func TestWhatIsTakenForAFactIsNotRefused(t *testing.T) {
	s := new(seat)
	node := join(t, "node", s)
	relay := node.relay()
	relay.Patience, relay.Abandons = time.Millisecond, func(c *remoting.Command) bool { return c.Opaque == 2 }
	node.relays(t, relay)
	p := dial(t, node.Gateway)
	p.send(request(codeTell, 1))
	require.Equal(t, remoting.ResponseServiceNotAvailable, p.read().Code)
	p.send(request(codeTell, 2))
	p.gone()
}

// What is taken back does not add up to more than a frame that is not large: who takes back so much is announced by its next heartbeat.
func TestManyBytesThatTakeBackAreNotKept(t *testing.T) {
	m := join(t, "node", new(seat))
	m.serve(t, true)
	p := dial(t, m.Gateway)
	say := func(code, size int) {
		t.Helper()
		p.send(body(code, 1, string(make([]byte, size))))
		require.Len(t, arrives(t, m.beats), size)
		p.read()
	}
	again := func() {
		t.Helper()
		m.pause(t)
		m.serve(t, true)
		p.send(body(codeTell, 9, ""))
		require.Equal(t, "node", p.read().Remark)
	}
	say(codeBeat, 8)
	say(codeBye, 40<<10)
	again()
	require.Len(t, arrives(t, m.beats), 8)
	require.Len(t, arrives(t, m.beats), 40<<10)
	say(codeBye, 40<<10)
	again()
	quiet(t, m.beats)
}

// What a client takes back of its heartbeat stays taken back when another service comes, here or at another leader: no member of a group is
// left that nobody is.
func TestWhatAPeerTakesBackStaysTakenBack(t *testing.T) {
	s := new(seat)
	leader, node := join(t, "leader", s), join(t, "node", s)
	leader.serve(t, true)
	s.set(leader.at())
	node.serve(t, true)
	p := dial(t, node.Gateway)
	for n, say := range []*remoting.Command{body(codeBeat, 1, "a, b"), body(codeBye, 2, "no a"), body(codeBye, 3, "no b")} {
		p.send(say)
		require.Equal(t, string(say.Body), arrives(t, node.beats))
		require.Equal(t, int32(n+1), p.read().Opaque)
	}
	node.pause(t)
	node.serve(t, true)
	for _, want := range []string{"a, b", "no a", "no b"} {
		require.Equal(t, want, arrives(t, node.beats))
	}
	node.pause(t)
	node.serve(t, false)
	p.send(body(codeTell, 4, ""))
	require.Equal(t, "leader", p.read().Remark)
	for _, at := range []*member{node, leader} {
		for _, want := range []string{"a, b", "no a", "no b"} {
			require.Equal(t, want, arrives(t, at.beats), at.name)
		}
	}
	p.send(body(codeBeat, 5, "c"))
	require.Equal(t, int32(5), p.read().Opaque)
	node.pause(t)
	node.serve(t, true)
	require.Equal(t, "c", arrives(t, leader.beats))
	require.Equal(t, "c", arrives(t, node.beats), "a heartbeat says all there is")
	quiet(t, node.beats)
}

// A heartbeat that the leader has not answered is handed to the next one; what the client took back since, without waiting for an answer, stays
// taken back there, and here, and at whoever comes next.
func TestWhatIsTakenBackBehindAnUnansweredHeartbeat(t *testing.T) {
	s, leader, node, p := relaying(t)
	second, third := join(t, "second", s), join(t, "third", s)
	second.serve(t, true)
	third.serve(t, true)
	p.send(body(codeTell, 1, ""))
	require.Equal(t, "leader", p.read().Remark)
	leader.mute.Store(true)
	bye := body(codeBye, 3, "no a")
	bye.Flag |= remoting.FlagOneWay
	p.send(body(codeBeat, 2, "a, b"), bye)
	hears := func(m *member, want ...string) {
		t.Helper()
		for _, w := range want {
			require.Equal(t, w, arrives(t, m.beats), m.name)
		}
		quiet(t, m.beats)
	}
	hears(leader, "a, b", "no a")
	second.mute.Store(true)
	s.set(second.at())
	hears(second, "a, b", "no a", "a, b", "a, b", "no a") // as what it is told again may be older
	paused := node.pausing(t)
	s.set(third.at()) // what the second has not answered is this node's again
	require.NoError(t, arrives(t, paused))
	node.serve(t, false)
	require.Equal(t, int32(2), p.read().Opaque)
	hears(node, "a, b", "no a", "a, b", "a, b", "no a")
	p.send(body(codeTell, 4, ""))
	require.Equal(t, "third", p.read().Remark)
	hears(third, "a, b", "no a")
}

// A pause that comes while a connection is still being resumed waits for that, and is not ended by it.
func TestAPauseDuringAResume(t *testing.T) {
	began, goOn := make(chan string, 10), make(chan struct{})
	service := func(n string) gateway.Service {
		return gateway.Service{Beat: codeBeat, Ports: []gateway.Port{{Name: "test", Routes: gateway.Routes{
			codeTell: {Handle: func(r *gateway.Request) { r.Answer(r.Command.Answer(0, n)) }},
			codeBeat: {Lane: gateway.Ordered, Handle: func(r *gateway.Request) {
				if began <- n; r.IsOneWay() {
					<-goOn
				}
				r.OK(nil)
			}},
		}}}}
	}
	m := join(t, "node", new(seat))
	require.NoError(t, m.Serve(service("first")))
	p := dial(t, m.Gateway)
	p.send(body(codeBeat, 1, ""))
	require.Equal(t, int32(1), p.read().Opaque)
	require.Equal(t, "first", arrives(t, began))
	m.pause(t)
	require.NoError(t, m.Serve(service("second")))
	require.Equal(t, "second", arrives(t, began)) // by the heartbeat, which takes its time
	p.send(body(codeTell, 2, ""))
	paused := m.pausing(t)
	goOn <- struct{}{}
	require.NoError(t, arrives(t, paused))
	p.silent() // and not answered by the second
	require.NoError(t, m.Serve(service("third")))
	require.Equal(t, "third", arrives(t, began))
	goOn <- struct{}{}
	require.Equal(t, "third", p.read().Remark)
}

// A node that changes its service while the leader stays waits for what the leader was given, and asks it for nothing twice. Pulls it makes again.
func TestAPauseOfANodeThatRelaysMakesNothingTwice(t *testing.T) {
	_, leader, node, p := relaying(t)
	p.send(request(codeWait, 1), request(remoting.RequestPullMessage, 2))
	waits := arrives(t, leader.waits)
	arrives(t, leader.held)
	paused := node.pausing(t)
	waits.OK(nil)
	require.NoError(t, arrives(t, paused))
	require.Equal(t, int32(1), p.read().Opaque)
	node.serve(t, false)
	arrives(t, leader.held).OK(nil)
	require.Equal(t, int32(2), p.read().Opaque)
	quiet(t, leader.waits)
}

// In a hurry what was relayed is taken back, and the connection stays.
func TestAHurriedPauseTakesBackWhatWasRelayed(t *testing.T) {
	_, leader, node, p := relaying(t)
	p.send(request(codeWait, 1))
	first := arrives(t, leader.waits)
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	require.ErrorIs(t, node.Suspend(ctx), context.DeadlineExceeded)
	node.serve(t, false)
	arrives(t, leader.waits).OK(nil)
	require.Equal(t, int32(1), p.read().Opaque)
	first.OK(nil) // on a connection that is closed
}

// A pause does not wait for a leader that leads no more: what it was given is this node's own if it leads next.
func TestAPauseTakesBackWhatIsTheNextLeaders(t *testing.T) {
	s, leader, node, p := relaying(t)
	p.send(request(codeWait, 1))
	first := arrives(t, leader.waits)
	paused := node.pausing(t)
	s.set("")
	require.NoError(t, arrives(t, paused))
	node.serve(t, true)
	arrives(t, node.waits).OK(nil)
	require.Equal(t, int32(1), p.read().Opaque)
	first.OK(nil) // on a connection that is closed
}

// What waits for the leader is bounded by what a connection may have queued, not by the number of requests alone.
func TestWhatIsRelayedIsBounded(t *testing.T) {
	s := new(seat)
	node := joinWith(t, gateway.Options{MaxQueuedBytes: 100 << 10}, "node", s)
	node.serve(t, false)
	leader := join(t, "leader", s)
	leader.serve(t, true)
	p := dial(t, node.Gateway)
	for n := range int32(10) {
		pull := request(remoting.RequestPullMessage, n)
		pull.Body = make([]byte, 40<<10)
		p.send(pull)
	}
	require.Eventually(t, func() bool { return node.relayed.Load() == 3 }, patience, time.Millisecond)
	p.silent()
	require.EqualValues(t, 3, node.relayed.Load())
	s.set(leader.at())
	for range 10 {
		arrives(t, leader.held).OK(nil)
		p.read()
	}
}

// A leader that is reached no more, and whose connection does not end, holds nobody up for ever.
func TestASilentLeaderIsGivenUp(t *testing.T) {
	s := new(seat)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	go func() {
		for {
			sock, err := l.Accept()
			if err != nil {
				return
			}
			defer func() { _ = sock.Close() }()
			hello, err := remoting.ReadCommand(bufio.NewReader(sock), remoting.Limits{})
			if err != nil {
				return
			}
			answer, _ := hello.Answer(0, "").Append(nil)
			_, _ = sock.Write(answer) // and never again
		}
	}()
	s.set(l.Addr().String())
	node := join(t, "node", s)
	relay := node.relay()
	relay.Silence = soon
	node.relays(t, relay)
	p := dial(t, node.Gateway)
	p.send(request(codeTell, 1))
	require.Equal(t, remoting.ResponseServiceNotAvailable, p.read().Code)
}

// A pull that was read before a pause, and is relayed after it has begun, is taken back all the same: the leader would hold it.
func TestAPauseWaitsForNoLatePull(t *testing.T) {
	s := new(seat)
	leader, node := join(t, "leader", s), join(t, "node", s)
	leader.serve(t, true)
	s.set(leader.at())
	reads, goOn := make(chan string, 1), make(chan struct{})
	relay := node.relay()
	relay.Takes = func(*remoting.Command) bool {
		reads <- "read"
		<-goOn
		return true
	}
	node.relays(t, relay)
	p := dial(t, node.Gateway)
	p.send(request(remoting.RequestPullMessage, 1))
	arrives(t, reads)
	paused := node.pausing(t)
	close(goOn)
	require.NoError(t, arrives(t, paused))
	node.serve(t, true)
	arrives(t, node.held).OK(nil)
	require.Equal(t, int32(1), p.read().Opaque)
}
