package client

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/remoting"
)

// What is to be said of who asks comes in front of what is asked, once a connection, also when many ask at once; until it is done it is tried again.
func TestAConnectionIsGreetedOnce(t *testing.T) {
	const calls = 20
	var heard []string // by the peer, whose script runs once
	var greetings atomic.Int64
	c := New(Options{
		Dial: peers{"a": func(p *peer) {
			for r := p.read(); r != nil; r = p.read() {
				heard = append(heard, r.Remark)
				p.answer(r)
			}
		}}.dial(t),
		Greet: func(ctx context.Context, address string, state *tls.ConnectionState, ask Ask) (bool, error) {
			if address != "a" || state != nil {
				return false, errors.New("another connection")
			}
			if _, err := ask(ctx, request("hello")); err != nil {
				return false, err
			}
			if _, err := ask(ctx, request("proof")); err != nil {
				return false, err
			}
			return greetings.Add(1) == 2, nil
		},
	})
	mustCall(t, c, "a", "first")
	var all sync.WaitGroup
	for range calls {
		all.Go(func() { _, _ = c.Call(t.Context(), "a", request("later")) })
	}
	all.Wait()
	require.EqualValues(t, 2, greetings.Load())
	c.Close()
	require.Equal(t, []string{"hello", "proof", "first", "hello", "proof", "later"}, heard[:6])
	require.Len(t, heard, 5+calls)
}

// Its error is that of the call, which is not made.
func TestAGreetingThatFails(t *testing.T) {
	odd := errors.New("odd")
	c := New(Options{Dial: peers{"a": echo}.dial(t), Greet: func(context.Context, string, *tls.ConnectionState, Ask) (bool, error) { return false, odd }})
	defer c.Close()
	_, err := c.Call(t.Context(), "a", remoting.NewRequest(remoting.RequestHeartbeat, nil))
	require.ErrorIs(t, err, odd)
}
