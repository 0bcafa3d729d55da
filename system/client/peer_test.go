package client

import (
	"bufio"
	"context"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/remoting"
)

// peer is the other end of a connection.
type peer struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// read takes the next request; nil when the client has closed the connection.
func (p *peer) read() *remoting.Command {
	c, err := remoting.ReadCommand(p.in, remoting.Limits{})
	if err != nil {
		return nil
	}
	return c
}

func (p *peer) write(c *remoting.Command) {
	frame, err := c.Append(nil)
	if err == nil {
		_, err = p.conn.Write(frame)
	}
	if err != nil {
		p.t.Errorf("peer: %v", err)
	}
}

// answer says OK; the remark is the request's, so that a caller knows its own.
func (p *peer) answer(c *remoting.Command) { p.write(c.Answer(remoting.ResponseSuccess, c.Remark)) }

// peers are the other ends by address; each connection that is dialled runs the script of its address on a goroutine.
type peers map[string]func(*peer)

// dial hands out pipes: they have no buffer and live in a bubble of synctest.
func (ps peers) dial(t *testing.T) func(context.Context, string) (net.Conn, error) {
	return func(_ context.Context, address string) (net.Conn, error) {
		script, ok := ps[address]
		if !ok {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: net.UnknownNetworkError(address)}
		}
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			script(&peer{t: t, conn: far, in: bufio.NewReader(far)})
		}()
		return near, nil
	}
}

// echo answers everything.
func echo(p *peer) {
	for c := p.read(); c != nil; c = p.read() {
		p.answer(c)
	}
}

// silent reads everything and says nothing.
func silent(p *peer) { _, _ = io.Copy(io.Discard, p.in) }

// request is a request that can be told from others.
func request(remark string) *remoting.Command {
	c := remoting.NewRequest(remoting.RequestHeartbeat, nil)
	c.Remark = remark
	return c
}

// mustCall calls and wants its own answer.
func mustCall(t *testing.T, c *Client, address, remark string) {
	t.Helper()
	answer, err := c.Call(t.Context(), address, request(remark))
	require.NoError(t, err)
	require.Equal(t, remark, answer.Remark)
}
