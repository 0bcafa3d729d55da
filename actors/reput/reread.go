package reput

import (
	"runtime/debug"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/commitlog"
)

// Reread reads records again that have been dispatched: from a place where one begins up to one that the dispatcher has passed. It
// returns one batch, for an index builder; the next one begins at its UpTo. What is damaged or has been deleted is passed over: the
// dispatcher has reported it. An error is a memory fault or a bug, as for the dispatcher. For any goroutine.
func Reread(log *commitlog.Log, from, to messages.PhysicalOffset, follower bool) (_ *messages.DispatchBatch, err error) {
	c := cursor{log: log, pos: from, follows: follower}
	var b batch
	var names topics
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		c.close()
		if r := recover(); r != nil {
			err = recovered("read the commit log again", r)
		}
	}()
	for !b.full() && c.next(to) {
		b.add(&c.rec, names.intern(c.rec.Topic), nil)
	}
	if b.UpTo = c.pos; !b.full() {
		b.UpTo = to
	}
	return &b.DispatchBatch, nil
}
