package vouch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

const (
	version = 1
	maxNode = 64 // bytes of an id

	v4Bytes, v6Bytes = 4, 16
	// leastHello and mostHello are what a hello may have.
	leastHello = 1 + 1 + 1 + 1 + v4Bytes + 2 + 1 + ProofBytes
	mostHello  = 1 + 1 + maxNode + 1 + v6Bytes + 2 + 1 + ProofBytes
)

// ErrHello: what came is no hello of a node of the group, or what it says is not proved.
var ErrHello = errors.New("not the hello of a node of the group")

// Nobody is the client of a node that asks for itself.
var Nobody = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)

// Hello is what a node says: a claim, without what the leader knows itself, and its proof.
type Hello struct {
	Node   string
	Client netip.AddrPort
	TLS    bool
	Proof  [ProofBytes]byte
}

// Append adds the bytes of a hello, which another node reads if it is one that it may be: see Valid.
func (h *Hello) Append(b []byte) []byte {
	b = append(b, version, byte(len(h.Node)))
	b = append(b, h.Node...)
	b = appendClient(b, h.Client, h.TLS)
	return append(b, h.Proof[:]...)
}

// Valid returns why a hello can't be told to another node, or nil.
func (h *Hello) Valid() error {
	switch at := h.Client.Addr(); {
	case h.Node == "" || len(h.Node) > maxNode:
		return fmt.Errorf("%w: the node's id has %d bytes, want 1 to %d", ErrHello, len(h.Node), maxNode)
	case !at.IsValid() || at.Is4In6() || at.Zone() != "":
		return fmt.Errorf("%w: the client's address is %v", ErrHello, h.Client)
	}
	return nil
}

// appendClient adds what is claimed of the client.
func appendClient(b []byte, client netip.AddrPort, secure bool) []byte {
	address := client.Addr().AsSlice()
	b = append(b, byte(len(address)))
	b = append(b, address...)
	b = binary.BigEndian.AppendUint16(b, client.Port())
	if secure {
		return append(b, 1)
	}
	return append(b, 0)
}

// Parse reads a hello, which is all of b, and of which nothing is kept. What it takes Append would write. The error is ErrHello.
func Parse(b []byte) (Hello, error) {
	var h Hello
	if len(b) < leastHello || len(b) > mostHello {
		return h, fmt.Errorf("%w: it has %d bytes, want %d to %d", ErrHello, len(b), leastHello, mostHello)
	}
	if b[0] != version {
		return h, fmt.Errorf("%w: its version is %d, known is %d", ErrHello, b[0], version)
	}
	node, rest, ok := prefixed(b[1:])
	address, rest, whole := prefixed(rest)
	if !ok || !whole || len(rest) != 2+1+ProofBytes {
		return h, fmt.Errorf("%w: its lengths are not those of its fields", ErrHello)
	}
	at, ok := netip.AddrFromSlice(address)
	if !ok || rest[2] > 1 {
		return h, fmt.Errorf("%w: an address of %d bytes, TLS is %d", ErrHello, len(address), rest[2])
	}
	h.Client, h.TLS = netip.AddrPortFrom(at, binary.BigEndian.Uint16(rest)), rest[2] == 1
	copy(h.Proof[:], rest[2+1:])
	if len(node) <= maxNode {
		h.Node = string(node)
	}
	if err := h.Valid(); err != nil {
		return Hello{}, err
	}
	return h, nil
}

// prefixed takes a field behind its length off b.
func prefixed(b []byte) (field, rest []byte, ok bool) {
	if len(b) == 0 || len(b) <= int(b[0]) {
		return nil, nil, false
	}
	return b[1 : 1+int(b[0])], b[1+int(b[0]):], true
}

// Seen is where a client is for whoever is told of it by a node: what is a loopback address there is on that node's machine.
func Seen(client, node netip.AddrPort) netip.AddrPort {
	if client.Addr().IsLoopback() && !node.Addr().IsLoopback() {
		return netip.AddrPortFrom(node.Addr(), client.Port())
	}
	return client
}
