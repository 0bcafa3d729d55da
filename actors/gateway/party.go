package gateway

import (
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"net/netip"
)

// NonceBytes is the size of what Challenge makes.
const NonceBytes = 32

// party is who asks by a connection: whoever has made it or, of a node that relays and has proved whose it is, that one's client. It is not
// changed.
type party struct {
	addr netip.AddrPort
	text string
	node string // the node of the group that the peer has proved to be, and asks for itself; empty: it has not
}

// Remote is the peer's address, or that of the client for which it relays (SetClient).
func (c *Conn) Remote() netip.AddrPort { return c.who.Load().addr }

// RemoteAddr is Remote as text. Implements messages.ClientChannel.
func (c *Conn) RemoteAddr() string { return c.who.Load().text }

// Sock is the address of whoever has made the connection, whatever it has proved.
func (c *Conn) Sock() netip.AddrPort { return c.remote }

// Encrypted tells whether the connection is under TLS.
func (c *Conn) Encrypted() bool { return c.wire.Load() != nil }

// SetRelayed says that the peer is a node that relays: once this node does not lead any more the connection is closed.
func (c *Conn) SetRelayed() { c.relayed.Store(true) }

// Relayed tells whether the peer is a node that relays what a client sends.
func (c *Conn) Relayed() bool { return c.relayed.Load() }

// SetClient says for which client the peer relays, once for all that comes from now on. Only a handler of the lane Quick calls it, of a peer
// that has proved it.
func (c *Conn) SetClient(client netip.AddrPort) {
	c.who.Store(&party{addr: client, text: client.String()})
}

// SetNode says which node of the group the peer is, for all that comes from now on. Only a handler of the lane Quick calls it, of a peer that has
// proved it and relays for nobody.
func (c *Conn) SetNode(id string) {
	who := *c.who.Load()
	who.node = id
	c.who.Store(&who)
}

// Node is the node of the group that asks for itself by this connection; empty: none has proved to.
func (c *Conn) Node() string { return c.who.Load().node }

// Challenge makes a number for the peer to prove something with, in the place of the one before. Only handlers of the lane Quick call it.
func (c *Conn) Challenge() [NonceBytes]byte {
	c.nonce = new([NonceBytes]byte)
	_, _ = rand.Read(c.nonce[:]) // it never fails
	return *c.nonce
}

// Challenged returns the number of Challenge, once; false: there is none. Only handlers of the lane Quick call it.
func (c *Conn) Challenged() (nonce [NonceBytes]byte, ok bool) {
	if c.nonce == nil {
		return nonce, false
	}
	nonce, c.nonce = *c.nonce, nil
	return nonce, true
}

// Channel is what the two ends of the connection's TLS know of it, and nobody between them does; nil: it is in the clear.
func (c *Conn) Channel() ([]byte, error) {
	wire := c.wire.Load()
	if wire == nil {
		return nil, nil
	}
	state := wire.ConnectionState()
	return ChannelOf(&state)
}

// channelBytes is the size of what Channel returns.
const channelBytes = 32

// ChannelOf is Channel of either end, once it has shaken hands; nil: it is in the clear.
func ChannelOf(state *tls.ConnectionState) ([]byte, error) {
	if state == nil {
		return nil, nil
	}
	known, err := state.ExportKeyingMaterial("EXPORTER-actormq-relay", nil, channelBytes)
	if err != nil {
		return nil, fmt.Errorf("what the ends of the connection's TLS know: %w", err)
	}
	return known, nil
}
