package gateway

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/messages/remoting"
)

// relayHandshake bounds connecting and the hello, which are a few short frames.
const relayHandshake = time.Second

var errHello = errors.New("the node there does not lead, or not yet")

// Vouching is what a node knows that tells a leader whose a connection is.
type Vouching struct {
	Answer  *remoting.Command // to Relay.Hello
	Leader  string            // its address
	Client  *Conn
	Channel []byte // as Conn.Channel of the leader's end
}

// upstream is a connection to the leader.
type upstream struct {
	net.Conn
	in *bufio.Reader
}

// attentive notes when something was read.
type attentive struct {
	net.Conn
	heard *atomic.Int64 // in ns
}

func (a attentive) Read(b []byte) (int, error) {
	n, err := a.Conn.Read(b)
	a.heard.Store(time.Now().UnixNano())
	return n, err
}

// connect tries for so long as requests may wait.
func (t *tunnel) connect() (up *upstream, changed <-chan struct{}, err error) {
	ctx, cancel := context.WithTimeout(t.ctx, cmp.Or(t.relay.Patience, relayPatience))
	defer cancel()
	for pause := relayPause; ; pause = min(2*pause, maxRelayPause) {
		var address string
		if address, changed = t.relay.Leader(); address == "" {
			err = errNobodyLeads
		} else if up, err = t.greet(ctx, address); err == nil {
			return up, changed, nil
		}
		select {
		case <-changed:
			pause = relayPause / 2
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, nil, err
		}
	}
}

// greet connects, and says that this is a relay, and whose.
func (t *tunnel) greet(ctx context.Context, address string) (*upstream, error) {
	ctx, cancel := context.WithTimeout(ctx, relayHandshake)
	defer cancel()
	sock, err := t.relay.Dial(ctx, address, t.conn.wire.Load() != nil)
	if err != nil {
		return nil, fmt.Errorf("connect to the leader: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = sock.SetDeadline(time.Unix(1, 0)) })()
	up := &upstream{sock, bufio.NewReaderSize(attentive{sock, &t.heard}, readBufferBytes)}
	if err := t.hello(up, address); err != nil {
		_ = sock.Close()
		return nil, err
	}
	return up, nil
}

// hello has the leader take this connection for that of a client.
func (t *tunnel) hello(up *upstream, address string) error {
	answer, err := up.ask(t.relay.Hello())
	switch {
	case err != nil:
		return fmt.Errorf("greet the leader: %w", err)
	case answer.Code == remoting.ResponseRequestCodeNotSupported: // a leader of an earlier version; it relays nothing
	case answer.Code != remoting.ResponseSuccess:
		return errHello
	default:
		if err := t.vouch(up, address, answer); err != nil {
			return fmt.Errorf("tell the leader whose the connection is: %w", err)
		}
	}
	return nil
}

// vouch tells the leader whose the connection is, and waits until it is believed: it closes the connection where it does not.
func (t *tunnel) vouch(up *upstream, address string, answer *remoting.Command) error {
	if t.relay.Vouch == nil {
		return nil
	}
	v := Vouching{Answer: answer, Leader: address, Client: t.conn}
	if wire, ok := up.Conn.(*tls.Conn); ok {
		var err error
		state := wire.ConnectionState()
		if v.Channel, err = ChannelOf(&state); err != nil {
			return err
		}
	}
	request, err := t.relay.Vouch(v)
	if err != nil || request == nil {
		return err
	}
	answer, err = up.ask(request)
	if err == nil && answer.Code != remoting.ResponseSuccess {
		err = errHello
	}
	switch slow := net.Error(nil); {
	case err == nil:
		t.relay.disbelieved.Store(false)
	case errors.As(err, &slow) && slow.Timeout(): // nothing is known of what it thinks
	case !t.relay.ledAt(address): // whose lead ends closes the connection too
	case !t.relay.disbelieved.Swap(true): // one line, however many connections try again and again
		t.conn.shared.opt.Logger.Warn().Err(err).Str("leader", address).
			Msg("the leader, whose log says why, does not believe for whom this node relays: its clients wait, and are refused then")
	}
	return err
}

// ask sends a request and waits for its answer: nothing else comes before it.
func (u *upstream) ask(request *remoting.Command) (*remoting.Command, error) {
	frame, err := request.Append(nil)
	if err == nil {
		_, err = u.Write(frame)
	}
	if err != nil {
		return nil, err
	}
	return remoting.ReadCommand(u.in, remoting.Limits{})
}
