package flusher

import (
	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
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
		view := a.cfg.Log.View()
		for i := range view.Len() {
			s := view.At(i)
			if s.Start()+s.Size() <= int64(a.forgotten) || s.Start() >= int64(to) || !s.Hold() {
				continue
			}
			at := max(int64(a.forgotten)-s.Start(), 0)
			_ = s.Forget(at, min(int64(to)-s.Start(), s.Size())-at)
			s.Release()
		}
		return nil
	})
	a.forgotten = to
}
