package flusher

import (
	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
)

// forgetBytes is what is given back in whole: of a large page, of which 256 KiB were written at once, the system takes back all or nothing.
const forgetBytes = 1 << 20

// forget gives the memory of what is durable, and what nobody is expected to read, back to the system. A failure only leaves it
// in memory, as the system sees fit.
func (a *Actor) forget(durable messages.PhysicalOffset) {
	if a.cfg.Unread == nil {
		return
	}
	to := min(a.cfg.Unread(), durable)
	if to -= to % forgetBytes; to <= a.forgotten {
		return
	}
	_ = actors.Protect("forget what nobody reads", func() error {
		return eachPart(a.cfg.Log, a.forgotten, to, func(s *segments.Segment, at, n int64) error {
			_ = s.Forget(at, n)
			return nil
		})
	})
	a.forgotten = to
}
