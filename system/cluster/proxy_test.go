package cluster

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy stands between a node and etcd, and can be cut.
type proxy struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	cut      bool
	conns    map[net.Conn]struct{}
	running  sync.WaitGroup
}

func newProxy(t *testing.T, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: l, to: to, conns: map[net.Conn]struct{}{}}
	p.running.Go(p.accept)
	return p
}

func (p *proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		up, err := net.Dial("tcp", p.to)
		if err != nil || !p.keep(c, up) {
			_ = c.Close()
			continue
		}
		p.running.Go(func() { p.copy(c, up) })
		p.running.Go(func() { p.copy(up, c) })
	}
}

func (p *proxy) copy(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}

// keep notes connections, unless they are cut.
func (p *proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.cut {
			_ = c.Close()
			continue
		}
		p.conns[c] = struct{}{}
	}
	return !p.cut
}

// set cuts the connection, or mends it.
func (p *proxy) set(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	for c := range p.conns {
		if cut {
			_ = c.Close()
			delete(p.conns, c)
		}
	}
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.set(true)
	p.running.Wait()
}
