package indexer

import (
	"errors"
	"fmt"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
)

// backlog is what the index lacks since building it was broken off for want of room. The log has it.
type backlog struct {
	from, to messages.PhysicalOffset
	cause    error
}

// breakOff lets dispatching go on without the index, from the record that finds no room on.
func (a *Actor) breakOff(err error) {
	b := a.held[0].Batch
	a.behind = &backlog{
		from: b.Requests[a.done].PhysicalOffset, to: b.UpTo, cause: fmt.Errorf("no room for %v: %w", patience, err),
	}
	a.done = 0
	a.roomAgain() // nobody waits for it, so nothing has to be refused for it
	a.cfg.Logger.Error().Err(a.behind.cause).Int64("from", int64(a.behind.from)).
		Msg("the index is broken off: it is taken up again when there is room, by the next start at the latest")
	if a.cfg.OnBroken != nil {
		a.cfg.OnBroken(a.behind.cause)
	}
	a.retry = a.self.After(maxPause, retryTick{})
}

// catchUp puts one batch of what the index lacks, and goes on with the next one, or waits if there is still no room.
func (a *Actor) catchUp() {
	b, err := a.cfg.Reread(a.behind.from, a.behind.to)
	if err == nil {
		a.done = 0
		err = a.buildBatch(b)
	}
	switch {
	case errors.Is(err, vfs.ErrNoSpace):
		a.behind.from, a.done = b.Requests[a.done].PhysicalOffset, 0
		a.retry = a.self.After(maxPause, retryTick{})
		return
	case err != nil:
		a.breakDown(err)
		return
	}
	a.wasBuilt(b)
	if a.behind.from = b.UpTo; a.behind.from < a.behind.to {
		a.retry = a.self.After(0, retryTick{}) // by the mailbox, so that deliveries are answered in between
		return
	}
	a.behind = nil
	a.cfg.Logger.Warn().Msg("there is room: the index is complete again")
	if a.cfg.OnBroken != nil {
		a.cfg.OnBroken(nil)
	}
}
