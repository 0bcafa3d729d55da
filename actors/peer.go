package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Peer is another actor, as it is handed in when an actor is made. The zero Peer swallows what is sent to it: a part that
// is switched off.
type Peer struct {
	root *actor.RootContext
	pid  *actor.PID
}

// NewPeer returns the peer with a PID in an actor system.
func NewPeer(root *actor.RootContext, pid *actor.PID) Peer { return Peer{root: root, pid: pid} }

// PID returns the peer's address, nil for the zero Peer.
func (p Peer) PID() *actor.PID { return p.pid }

// Send sends a message; it never blocks. Safe for any goroutine.
func (p Peer) Send(message any) {
	if p.root != nil {
		p.root.Send(p.pid, message)
	}
}

// After sends a message once d has passed and returns the timer, so that its owner can stop it.
func (p Peer) After(d time.Duration, message any) *time.Timer {
	return time.AfterFunc(d, func() { p.Send(message) })
}
