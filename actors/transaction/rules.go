package transaction

import (
	"time"

	"github.com/actormq/actormq/messages"
)

// verdict is what a round does with an undecided half message.
type verdict int

const (
	wait   verdict = iota
	check          // ask a producer
	renew          // put a copy at the end of the queue
	giveUp         // put a copy into TRANS_CHECK_MAX_TIME_TOPIC
)

// rules say what is due (spec/store.md §11.4).
type rules struct {
	timeout    time.Duration // transactionTimeOut: a half message's age at its first check
	max        int           // transactionCheckMax
	reserved   time.Duration // fileReservedTime: older ones are given up
	renewAfter time.Duration // since a half message was stored
	spread     messages.QueueOffset
}

// half is an undecided half message.
type half struct {
	at       messages.QueueOffset
	place    messages.PhysicalOffset
	sinceMs  int64         // when it came
	storedMs int64         // when this copy of it was stored
	immunity time.Duration // before its first check; negative: it asks for none
	checks   int
	unread   int                    // rounds in a row in which it could not be read
	names    []messages.QueueOffset // of earlier copies, the first one first
}

// judge decides on one half message; end is the end of the half queue.
func (r *rules) judge(h *half, now time.Time, end messages.QueueOffset) verdict {
	age := now.Sub(time.UnixMilli(h.sinceMs))
	immunity := r.timeout
	if h.immunity >= 0 {
		immunity = h.immunity
	}
	switch {
	case age >= r.reserved || h.checks >= r.max:
		return giveUp
	case now.Sub(time.UnixMilli(h.storedMs)) >= r.renewAfter || end-h.at > r.spread:
		return renew
	case age >= 0 && age < immunity:
		return wait // one from the future is not waited for: the clock has gone back
	}
	return check
}
