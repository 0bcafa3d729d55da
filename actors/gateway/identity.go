package gateway

import (
	"slices"

	"github.com/actormq/actormq/messages/remoting"
)

// identity is what a peer has said of itself: its last heartbeat, and what it took back of that since. It is not changed.
type identity struct {
	beat  *remoting.Command
	byes  []*remoting.Command
	bytes int64 // of the byes
	large int64 // bytes of a heartbeat that counts among the large ones that are kept; 0: it does not
}

// What is kept is bounded in number and in bytes, by what one heartbeat may have; who takes back more is announced by its next heartbeat.
const (
	maxByes     = 16
	maxByeBytes = largeFrame
	// maxKeptBeat bounds a heartbeat, maxKeptLarge all large ones of a gateway: each other connection may have a frame that is not large.
	maxKeptBeat  = 1 << 20
	maxKeptLarge = 32 << 20
)

// without is the identity of who has taken something back; nil: it can't be kept.
func (i *identity) without(bye *remoting.Command) *identity {
	if i == nil || len(i.byes) == maxByes || i.bytes+sizeOf(bye) > maxByeBytes {
		return nil
	}
	return &identity{beat: i.beat, byes: append(slices.Clone(i.byes), bye), bytes: i.bytes + sizeOf(bye), large: i.large}
}

// requests are what says it again, in order.
func (i *identity) requests() []*remoting.Command {
	if i == nil {
		return nil
	}
	return append([]*remoting.Command{i.beat}, i.byes...)
}

// charged is what an identity counts among the large ones.
func (i *identity) charged() int64 {
	if i == nil {
		return 0
	}
	return i.large
}

// note keeps the requests by which a peer says who it is. Nobody changes them. Who says too much is announced by its next heartbeat. A node that
// relays is announced to nobody: its connection ends with the lead.
func (c *Conn) note(r *Request) {
	if r.Code == 0 || r.again || c.relayed.Load() {
		return
	}
	switch s := c.shared.service.Load(); r.Code {
	case s.Beat:
		c.keep(r)
	case s.Bye:
		before := c.peerIs.Load()
		if next := before.without(r.Command); next == nil || r.large > 0 {
			c.identify(nil)
		} else {
			c.peerIs.CompareAndSwap(before, next) // else the connection has ended
		}
	}
}

// keep keeps a heartbeat. A large one is charged to the common budget for as long as it is being handled only; what is kept has bounds of its own.
func (c *Conn) keep(r *Request) {
	if r.large <= maxKeptBeat {
		if c.shared.kept.Add(r.large)-c.peerIs.Load().charged() <= maxKeptLarge {
			c.identify(&identity{beat: r.Command, large: r.large})
			return
		}
		c.shared.kept.Add(-r.large)
	}
	c.identify(nil)
	c.unnoted()
}

// identify takes over who the peer is, and counts out what was kept of it.
func (c *Conn) identify(next *identity) {
	before := c.peerIs.Swap(next)
	c.shared.kept.Add(-before.charged())
	if next != nil && c.cause.Load() != nil { // its end may not have seen it
		c.identify(nil)
	}
}

// unnoted tells the log, once a connection.
func (c *Conn) unnoted() {
	if c.unnotedTold {
		return
	}
	c.unnotedTold = true
	c.shared.noise.Warn().Stringer("peer", c.remote).Int("limit", maxKeptBeat).Int("limit_of_all", maxKeptLarge).
		Msg("a client's heartbeat is too large to be kept, or too many such are: when another node leads it is known by its next one only")
}
