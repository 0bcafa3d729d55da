package gateway_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages/remoting"
)

// fence is passed when the reader of a connection is through with everything before it.
type fence chan struct{}

const codeFence = 100

func (f fence) route() gateway.Route {
	return gateway.Route{Handle: func(r *gateway.Request) {
		f <- struct{}{}
		r.OK(nil)
	}}
}

func (f fence) pass(p *peer) {
	p.t.Helper()
	p.send(request(codeFence, 1))
	arrives(p.t, f)
	p.read()
}

// numbered is a request of which every part tells its number.
func numbered(code int, i int32) *remoting.Command {
	c := request(code, i)
	text := strings.Repeat(string(rune('a'+i%26)), 1+int(i)%700)
	c.Remark, c.Body = text, []byte(text)
	c.ExtFields = remoting.Ext{{Name: "plain", Value: text}, {Name: "escaped", Value: "\x01" + text}}
	c.Binary = i%3 == 0
	return c
}

// What a handler borrows is right while it runs and taken away behind it; what others are given is theirs for good, although
// the frames that follow overwrite the read buffer.
func TestRequestsAreLentOrGiven(t *testing.T) {
	const n = 600
	given := make(chan *gateway.Request, n)
	lent := make(chan *gateway.Request, n)
	wrong := make(chan string, n)
	check := func(r *gateway.Request) bool {
		want := numbered(r.Code, r.Opaque)
		return r.Remark == want.Remark && bytes.Equal(r.Body, want.Body) &&
			len(r.ExtFields) == 2 && r.ExtFields[0] == want.ExtFields[0] && r.ExtFields[1] == want.ExtFields[1]
	}
	fence := make(fence)
	handle := func(kept chan *gateway.Request) func(*gateway.Request) {
		return func(r *gateway.Request) {
			if !check(r) {
				wrong <- r.String()
			}
			kept <- r
			r.Reply(0, r.Remark, nil)
		}
	}
	g := start(t, gateway.Options{}, gateway.Routes{
		codeEcho: {Handle: handle(lent), Borrows: true}, codeOrdered: {Handle: handle(given), Lane: gateway.Ordered},
		codeSlow: {Handle: handle(given), Lane: gateway.Slow}, codeHold: {Handle: handle(given)}, codeFence: fence.route(),
	})
	p := dial(t, g)
	go func() {
		var b []byte
		for i := range int32(n) {
			b, _ = numbered([]int{codeEcho, codeOrdered, codeSlow, codeHold}[i%4], i).Append(b)
		}
		for len(b) > 0 { // frames arrive whole and in pieces
			part := min(len(b), 5000)
			if _, err := p.sock.Write(b[:part]); err != nil {
				return
			}
			b = b[part:]
		}
	}()
	for range n {
		a := p.read()
		require.Equal(t, numbered(0, a.Opaque).Remark, a.Remark)
	}
	fence.pass(p)
	require.Empty(t, wrong)
	require.Len(t, given, 3*n/4)
	for range len(given) {
		r := <-given
		require.True(t, check(r), r.String())
	}
	require.Len(t, lent, n/4)
	for range n / 4 { // also of what had arrived in pieces
		r := <-lent
		require.True(t, r.ExtFields == nil && r.Body == nil && r.Remark == "", r.String())
	}
}

// A handler that panics has borrowed nothing any more either.
func TestWhatIsLentIsTakenBackFromAPanic(t *testing.T) {
	kept := make(chan *gateway.Request, 1)
	fence := make(fence)
	g := start(t, gateway.Options{}, gateway.Routes{codeFence: fence.route(), codePanic: {Borrows: true, Handle: func(r *gateway.Request) {
		kept <- r
		panic("on purpose")
	}}})
	p := dial(t, g)
	p.send(numbered(codePanic, 4))
	a := p.read()
	require.Equal(t, remoting.ResponseSystemError, a.Code)
	require.Equal(t, int32(4), a.Opaque)
	fence.pass(p)
	require.Nil(t, (<-kept).Body)
}

// A peer that fills the read buffer at a time gets a larger one, and another one later; what the smaller one held is not lost, and it ends with the connection.
func TestReadBuffersGrowWithoutLosingAByte(t *testing.T) {
	g := start(t, gateway.Options{}, gateway.Routes{codeEcho: {Handle: echo}})
	const rounds, n = 4, 4000
	for range rounds {
		p := dial(t, g)
		go func() {
			var b []byte
			for i := range int32(n) {
				b, _ = numbered(codeEcho, i).Append(b)
			}
			for part := 1; len(b) > 0; part = part*3 + 1 {
				part = min(part, len(b))
				if _, err := p.sock.Write(b[:part]); err != nil {
					return
				}
				b = b[part:]
			}
		}()
		for i := range int32(n) {
			a := p.read()
			require.Equal(t, i, a.Opaque)
			require.Equal(t, numbered(codeEcho, i).Body, a.Body)
		}
		require.NoError(t, p.sock.Close())
	}
}
