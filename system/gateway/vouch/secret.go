package vouch

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/netip"
)

const (
	secretBytes = 32
	// NonceBytes is the size of what a leader asks.
	NonceBytes = 32
	// ProofBytes is the size of the answer.
	ProofBytes = sha256.Size
	// relayLabel and nodeLabel say what is proved, so that no proof is good for the other: the secret proves nothing else.
	relayLabel = "actormq relay hello 1"
	nodeLabel  = "actormq node hello 1"
)

// ErrSecret: a text is no secret of a group.
var ErrSecret = errors.New("not the secret of a group")

// Secret is what all nodes of a group know, and nobody else. It does not change; any goroutine may use it.
type Secret struct{ key [secretBytes]byte }

// NewSecret makes one.
func NewSecret() *Secret {
	s := new(Secret)
	_, _ = rand.Read(s.key[:]) // it never fails
	return s
}

// ParseSecret reads the text of one. The error is ErrSecret, and says nothing of the text.
func ParseSecret(text []byte) (*Secret, error) {
	s := new(Secret)
	if len(text) != hex.EncodedLen(secretBytes) {
		return nil, fmt.Errorf("%w: it has %d bytes, want %d", ErrSecret, len(text), hex.EncodedLen(secretBytes))
	}
	if _, err := hex.Decode(s.key[:], text); err != nil {
		return nil, fmt.Errorf("%w: want hexadecimal digits", ErrSecret) // the cause would quote one
	}
	return s, nil
}

// Text is what ParseSecret reads. It is for the group's etcd, and for nothing else.
func (s *Secret) Text() string { return hex.EncodeToString(s.key[:]) }

// Format implements fmt.Formatter: whatever is asked for, the secret is not shown.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "a group's secret") }

// Claim is what a node says of a connection: of which client it makes it, or that it asks for itself.
type Claim struct {
	Cluster string
	Epoch   int64  // of the leader; 0: of a node that asks for itself
	Leader  string // host:port of whoever is asked, as it has told the group
	Node    string // id
	Self    bool   // the node asks for itself: the client is Nobody
	Client  netip.AddrPort
	TLS     bool   // the client's connection is encrypted
	Channel []byte // what both ends of the connection's own TLS know of it; empty: it is in the clear
	Nonce   [NonceBytes]byte
}

// Prove is the proof of a claim.
func (s *Secret) Prove(c Claim) (proof [ProofBytes]byte) {
	label := relayLabel
	if c.Self {
		label = nodeLabel
	}
	mac := hmac.New(sha256.New, s.key[:])
	for _, field := range [][]byte{
		[]byte(label), []byte(c.Cluster), binary.BigEndian.AppendUint64(nil, uint64(c.Epoch)), []byte(c.Leader), []byte(c.Node),
		appendClient(nil, c.Client, c.TLS), c.Channel, c.Nonce[:],
	} {
		write(mac, field)
	}
	mac.Sum(proof[:0])
	return proof
}

// Proves tells whether a proof is that of the claim.
func (s *Secret) Proves(c Claim, proof [ProofBytes]byte) bool {
	want := s.Prove(c)
	return hmac.Equal(want[:], proof[:])
}

// write adds a field: with its length in front no two lists of fields are the same bytes.
func write(mac hash.Hash, field []byte) {
	var length [4]byte
	binary.BigEndian.PutUint32(length[:], uint32(len(field)))
	mac.Write(length[:])
	mac.Write(field)
}
