package actors

import (
	"sync/atomic"
	"time"
)

// Bell announces to one actor that there is work. However often it is rung, at most one announcement is on its way. Any goroutine may
// ring it; Taken, Heard and Attend are the actor's. A nil or zero Bell rings for nobody.
type Bell struct {
	state atomic.Int32
	ring  func()
	soon  *time.Timer // whoever has set due owns it
}

// soon is when RingSoon rings. RocketMQ's dispatcher looks as often.
const soon = time.Millisecond

// States of a bell.
const (
	silent    int32 = iota
	due             // will be, by the timer
	announced       // on its way
	taken           // the actor has it, and has not looked for work since
)

// NewBell returns a bell that sends the message to the peer.
func NewBell(peer Peer, message any) *Bell { return &Bell{ring: func() { peer.Send(message) }} }

// Ring announces work, unless an announcement is pending already. Publish the work first. It does not allocate when one
// is pending.
func (b *Bell) Ring() {
	if b != nil && b.ring != nil {
		b.RingBy(b.ring)
	}
}

// RingBy is Ring by another way than the bell's own: send has the announcement delivered, as one of its own.
func (b *Bell) RingBy(send func()) {
	if b == nil || b.Pending() {
		return
	}
	if b.state.CompareAndSwap(silent, announced) || b.state.CompareAndSwap(due, announced) {
		send()
	}
}

// RingSoon announces work that nobody waits for, within a millisecond: to wake a goroutine, and often a thread for it, costs more
// than the work.
func (b *Bell) RingSoon() {
	if b == nil || b.ring == nil || b.state.Load() != silent || !b.state.CompareAndSwap(silent, due) {
		return
	}
	if b.soon == nil {
		b.soon = time.AfterFunc(soon, b.Urge)
	} else {
		b.soon.Reset(soon)
	}
}

// Urge announces at once what would be soon: somebody has begun to wait for it.
func (b *Bell) Urge() {
	if b != nil && b.state.Load() == due && b.state.CompareAndSwap(due, announced) {
		b.ring()
	}
}

// Pending tells whether an announcement is on its way, or with the actor: Ring would do nothing.
func (b *Bell) Pending() bool { return b.state.Load() >= announced }

// Mute keeps the bell silent until Heard is called: there is nobody yet, or any more, who could hear it.
func (b *Bell) Mute() {
	if b != nil {
		b.state.Store(taken)
	}
}

// Taken says that the announcement has come; the actor calls it for each one that it gets.
func (b *Bell) Taken() {
	if b != nil {
		b.state.CompareAndSwap(announced, taken)
	}
}

// Attend is Taken and Heard: for an actor that looks for work whenever the announcement comes.
func (b *Bell) Attend() {
	b.Taken()
	b.Heard()
}

// Heard lets the bell ring again; the actor calls it before it looks for work. An announcement that is still on its way stays the
// only one.
func (b *Bell) Heard() {
	if b != nil {
		b.state.CompareAndSwap(taken, silent)
	}
}
