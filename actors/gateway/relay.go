package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/messages/remoting"
)

// Relay is how a node hands requests on to the one that leads: each connection whose peer takes this node for the leader has a connection of its
// own to it, so that to the leader it looks like the client's. Frames go both ways as they are, but for their numbers: signatures hold.
type Relay struct {
	// Takes tells which requests are handed on; it runs on the connection's reader, and does not keep the request.
	Takes func(*remoting.Command) bool
	// Leader is where the leader serves, empty while nobody is known to lead; changed is closed when that is over.
	Leader func() (address string, changed <-chan struct{})
	// Dial connects to it; secret says that the client's connection is encrypted.
	Dial func(ctx context.Context, address string, secret bool) (net.Conn, error)
	// Hello makes the request with which a relaying connection begins. Only a node that leads answers it with SUCCESS, and it calls
	// Conn.SetRelayed: so nothing is relayed twice.
	Hello func() *remoting.Command
	// Vouch makes, of the leader's answer to Hello, the request that tells and proves whose the connection is, which the leader answers with
	// SUCCESS too; nil: it was not asked for that. The function itself may be nil.
	Vouch func(Vouching) (*remoting.Command, error)
	// Held is the code of requests that the leader may hold back: pulls.
	Held int
	// Abandons tells of which requests clients take an error for a fact: instead of one they get the end of their connection. nil: of none.
	Abandons func(*remoting.Command) bool
	// Patience is how long requests wait for somebody to lead; default 5 s, clients wait 3 s for a send.
	Patience time.Duration
	// Silence is how long a leader that is asked something may say nothing at all; then what it was asked is refused. Default 10 s.
	Silence time.Duration
	// Relayed counts requests that were to be handed on, Failed those of them that no leader was found for in time.
	Relayed, Failed *atomic.Int64

	disbelieved atomic.Bool // by the leader, since it last believed a Vouch; the log was told
}

// ledAt tells whether the leader is still the one at an address.
func (r *Relay) ledAt(address string) bool {
	now, _ := r.Leader()
	return now == address
}

const (
	relayPatience = 5 * time.Second
	// relayPause is between two attempts to reach whoever leads: it may be about to.
	relayPause = 25 * time.Millisecond
	// maxRelayPause is what the pause grows to: thousands of connections may try.
	maxRelayPause = 400 * time.Millisecond
	relaySilence  = 10 * time.Second
	// maxRelayedHeld bounds the pulls that a connection may have waiting at the leader beside its requests in flight.
	maxRelayedHeld = 4096
	// maxRelayedCalls bounds what the leader may ask a client at a time.
	maxRelayedCalls = 1024
	// maxRelayBroken is how often a leader may close the connection, one time after the other without an answer, before the client's is closed.
	maxRelayBroken = 4
)

var (
	errNobodyLeads = errors.New("nobody leads")
	errSilent      = errors.New("it says nothing")
	errRelayBroken = errors.New("the leader closes the connection again and again")
)

// tunnel is the connection to the leader of one client's connection. Whoever makes it starts its goroutine.
type tunnel struct {
	conn   *Conn
	relay  *Relay
	ctx    context.Context
	cancel context.CancelFunc
	wake   chan struct{} // one token: there is something to write

	answers atomic.Int64 // of the leader
	heard   atomic.Int64 // when it last said something, in ns

	mu      sync.Mutex
	ended   bool
	last    int32
	fresh   []int32            // not written yet, in order
	begins  bool               // the leader has been told nothing: first it hears who the client is
	stale   bool               // something among them may say of the client what it has taken back since
	pending map[int32]*Request // all that are not answered, by the number that the leader gets
	calls   map[int32]int32    // of the leader's requests to the client: our number, its
	replies []*remoting.Command
}

// relay hands a request on.
func (c *Conn) relay(relay *Relay, r *Request) {
	c.note(r)
	if r.kept == 0 {
		r.kept = sizeOf(r.Command)
		c.relaying.Add(r.kept)
	}
	if r.Code == relay.Held && c.parked.Load() < maxRelayedHeld {
		r.Park() // it may be held
	}
	for {
		t := c.tunnel.Load()
		if t == nil {
			t = &tunnel{conn: c, relay: relay, wake: make(chan struct{}, 1), pending: map[int32]*Request{}, calls: map[int32]int32{}}
			t.ctx, t.cancel = context.WithCancel(context.Background())
			if !c.tunnel.CompareAndSwap(nil, t) {
				t.cancel()
				continue
			}
			go t.run()
		}
		if t.take(r) {
			if c.cause.Load() != nil { // its end may not have seen this one
				c.drop(c.endTunnel())
			} else if c.pausing() {
				c.self.Send(late{})
			}
			return
		}
		c.tunnel.CompareAndSwap(t, nil)
	}
}

// sizeOf is about what a command takes.
func sizeOf(c *remoting.Command) int64 {
	const itself, pair = 200, 32
	n := itself + len(c.Remark) + len(c.Body) + pair*len(c.ExtFields)
	for _, field := range c.ExtFields {
		n += len(field.Name) + len(field.Value)
	}
	return int64(n)
}

// pausing tells whether a pause waits for the connection's requests.
func (c *Conn) pausing() bool { return c.draining.Load() && !c.shared.stopping.Load() }

// take queues a request; false: the tunnel has ended.
func (t *tunnel) take(r *Request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return false
	}
	for t.last++; t.pending[t.last] != nil; t.last++ {
	}
	t.pending[t.last] = r
	t.fresh = append(t.fresh, t.last)
	t.stale = t.stale || r.again && t.says(r)
	t.relay.Relayed.Add(1)
	t.rouse()
	return true
}

func (t *tunnel) says(r *Request) bool { return t.conn.shared.service.Load().says(r.Command) }

func (t *tunnel) rouse() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// end lets nothing more in, and returns what is not answered, in its order.
func (t *tunnel) end() (rest []*Request) {
	t.cancel()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	for _, id := range t.ids() {
		rest = append(rest, t.pending[id])
	}
	clear(t.pending)
	t.fresh = nil
	return rest
}

// back takes out what the leader has not been given, and what it holds: what it may have done already is waited for.
func (t *tunnel) back() (rest []*Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	unwritten := make(map[int32]bool, len(t.fresh))
	for _, id := range t.fresh {
		unwritten[id] = true
	}
	for _, id := range t.ids() {
		if r := t.pending[id]; unwritten[id] || r.parked {
			rest = append(rest, r)
			delete(t.pending, id)
		}
	}
	t.fresh = nil
	return rest
}

func (t *tunnel) ids() []int32 {
	ids := make([]int32, 0, len(t.pending))
	for id := range t.pending {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b int32) int { return int(a - b) }) // a difference, as numbers may go round
	return ids
}

// endTunnel ends the connection's tunnel; what is not answered is counted out.
func (c *Conn) endTunnel() []*Request {
	t := c.tunnel.Swap(nil)
	if t == nil {
		return nil
	}
	return c.countedOut(t.end())
}

func (c *Conn) countedOut(rest []*Request) []*Request {
	for _, r := range rest {
		if r.parked {
			r.parked = false
			c.parked.Add(-1)
		} else {
			c.gate.inFlight.Add(-1)
		}
	}
	return rest
}

// drop forgets requests that are counted out and will never be answered.
func (c *Conn) drop(rest []*Request) {
	for _, r := range rest {
		if !r.settled.Swap(true) {
			c.shared.large.give(r.large)
		}
	}
}

// run connects to whoever leads, again and again, while there is something to be answered.
func (t *tunnel) run() {
	defer t.cancel()
	defer t.conn.tunnel.CompareAndSwap(t, nil)
	for broken := 0; ; {
		up, changed, err := t.connect()
		if err != nil {
			t.fail(err)
			return
		}
		before := t.answers.Load()
		t.exchange(up, changed)
		if !t.goesOn() {
			return
		}
		if t.conn.pausing() { // which waits for what is the next service's now
			t.conn.self.Send(takeBack{})
			<-t.ctx.Done()
			return
		}
		select {
		case <-changed:
			broken = 0
			continue
		default:
		}
		// The same node leads, and has closed the connection: to ask it the same for ever helps nobody.
		if broken++; t.answers.Load() > before {
			broken = 1
		}
		if broken >= maxRelayBroken {
			t.conn.Close(errRelayBroken)
			t.fail(errRelayBroken)
			return
		}
		select {
		case <-changed:
		case <-time.After(relayPause):
		case <-t.ctx.Done():
		}
	}
}

// goesOn tells whether something waits for an answer; if not, the tunnel has ended. What was written is written again.
func (t *tunnel) goesOn() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.pending) == 0 {
		t.ended = true
	}
	t.fresh = t.ids()
	for _, r := range t.pending {
		t.stale = t.stale || t.says(r)
	}
	clear(t.calls) // who has asked is gone
	t.replies = nil
	return !t.ended
}

// fail answers all that waits.
func (t *tunnel) fail(err error) {
	if t.ctx.Err() != nil {
		return // somebody else has it
	}
	for _, r := range t.end() {
		t.relay.Failed.Add(1)
		err := fmt.Errorf("this node does not lead its group, and whoever does is not reached: %w", err)
		if t.relay.Abandons != nil && t.relay.Abandons(r.Command) {
			r.Abandon(err)
			continue
		}
		r.Fail(remoting.ResponseServiceNotAvailable, err.Error())
	}
}

// exchange passes frames on until the connection ends, or another node leads.
func (t *tunnel) exchange(up *upstream, changed <-chan struct{}) {
	t.heard.Store(time.Now().UnixNano())
	t.begin()
	broken, closed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(broken)
		t.receive(up)
	}()
	go func() { // a leader that takes nothing holds up nobody once another one leads
		defer close(closed)
		defer func() { _ = up.Close() }()
		tick := time.NewTicker(cmp.Or(t.relay.Silence, relaySilence) / 4)
		defer tick.Stop()
		for {
			select {
			case <-changed:
				return
			case <-broken:
				return
			case <-t.ctx.Done():
				return
			case now := <-tick.C:
				if t.silent(now) {
					t.fail(errSilent)
					return
				}
			}
		}
	}()
	for t.write(up) == nil {
		select {
		case <-t.wake:
			continue
		case <-broken:
		}
		break
	}
	_ = up.Close()
	<-broken
	<-closed
}

// begin has the next write say who the client is, in front of all else: a large heartbeat takes its time, as any request may.
func (t *tunnel) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begins = true
}

// silent tells whether the leader has said nothing for too long although it was asked something that it answers at once. Who does not take its
// answers is not read either.
func (t *tunnel) silent(now time.Time) bool {
	since := now.Add(-cmp.Or(t.relay.Silence, relaySilence))
	if t.conn.Congested() {
		t.heard.Store(now.UnixNano())
	}
	if t.heard.Load() > since.UnixNano() {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.pending {
		if r.Code != t.relay.Held && r.At.Before(since) {
			return true
		}
	}
	return false
}

// write sends what is fresh.
func (t *tunnel) write(up *upstream) error {
	out, over, odd := t.framed()
	for _, r := range odd {
		r.Fail(remoting.ResponseSystemError, "the request can't be framed")
	}
	if len(out) == 0 {
		return nil
	}
	err := up.SetWriteDeadline(time.Now().Add(t.conn.shared.opt.WriteTimeout))
	if err == nil {
		_, err = up.Write(out)
	}
	for _, r := range over {
		r.OK(nil) // nothing is sent
	}
	return err
}

// framed are the frames of what is fresh, with the requests that are over with that: one-way ones, and those that have no frame.
func (t *tunnel) framed() (out []byte, over, odd []*Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begins {
		t.begins = false
		out = appendAll(out, t.said())
	}
	for _, id := range t.fresh {
		r, waits := t.pending[id]
		if !waits {
			continue
		}
		cmd := *r.Command
		cmd.Opaque = id
		next, err := cmd.Append(out)
		switch {
		case err != nil:
			delete(t.pending, id)
			odd = append(odd, r)
			continue
		case r.IsOneWay():
			delete(t.pending, id)
			over = append(over, r)
		}
		out = next
	}
	out = appendAll(out, append(t.replies, t.lastSaid()...))
	t.fresh, t.replies = nil, nil
	return out, over, odd
}

// lastSaid is what the leader has to be told behind what it is given again: what the client has said of itself since.
func (t *tunnel) lastSaid() []*remoting.Command {
	if !t.stale {
		return nil
	}
	t.stale = false
	return t.said()
}

// said is what the client has said of itself, as requests that are not answered.
func (t *tunnel) said() (all []*remoting.Command) {
	for _, said := range t.conn.peerIs.Load().requests() {
		all = append(all, quietly(said))
	}
	return all
}

// appendAll adds the frames of those that have one.
func appendAll(out []byte, all []*remoting.Command) []byte {
	for _, cmd := range all {
		if next, err := cmd.Append(out); err == nil {
			out = next
		}
	}
	return out
}

// receive hands the leader's frames to the client.
func (t *tunnel) receive(up *upstream) {
	for {
		cmd, err := remoting.ReadCommand(up.in, remoting.Limits{FrameBytes: t.conn.shared.opt.FrameBytes})
		if err != nil || !t.room() {
			return
		}
		if !cmd.IsResponse() {
			t.ask(cmd)
			continue
		}
		t.answers.Add(1)
		t.mu.Lock()
		r := t.pending[cmd.Opaque]
		delete(t.pending, cmd.Opaque)
		t.mu.Unlock()
		switch {
		case r == nil:
		case cmd.Code == remoting.ResponseRelayAbandon:
			r.Abandon(errors.New(cmd.Remark))
		default:
			cmd.Opaque = r.Opaque
			r.Answer(cmd)
		}
	}
}

// room waits until the client takes its answers.
func (t *tunnel) room() bool {
	c := t.conn
	if !c.Congested() {
		return true
	}
	select {
	case c.looks <- struct{}{}:
		defer func() { <-c.looks }()
		return c.room.await(func() bool { return !c.Congested() }, t.ctx.Done())
	case <-t.ctx.Done():
		return false
	}
}

// ask hands on what the leader asks the client, with a number that this side has not given to anything else.
func (t *tunnel) ask(cmd *remoting.Command) {
	its := cmd.Opaque
	cmd.Opaque = t.conn.opaque.Add(1)
	if !cmd.IsOneWay() {
		t.mu.Lock()
		full := len(t.calls) >= maxRelayedCalls
		if !full {
			t.calls[cmd.Opaque] = its
		}
		t.mu.Unlock()
		if full {
			return // the leader's call has its own deadline
		}
	}
	t.conn.send(cmd)
}

// answer hands a client's response on; false: it is not to something that the leader has asked.
func (t *tunnel) answer(cmd *remoting.Command) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	its, asked := t.calls[cmd.Opaque]
	if !asked || t.ended {
		return false
	}
	delete(t.calls, cmd.Opaque)
	cmd.Opaque = its
	t.replies = append(t.replies, cmd)
	t.rouse()
	return true
}
