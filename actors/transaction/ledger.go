package transaction

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
)

// maxNames bounds the earlier copies of a half message that are remembered: the first and the last ones.
const maxNames = 4

// ledger knows which half messages are undecided. It is plain state: no clock, no store, no actor.
type ledger struct {
	head   messages.QueueOffset // the progress: every half message below it is over, or has a copy
	walked messages.QueueOffset // those below have been looked at
	limit  int                  // undecided ones that are held

	ends    window
	waiting map[messages.QueueOffset]*half                // undecided, by the present copy
	copies  map[messages.QueueOffset]messages.QueueOffset // earlier copy → present one
}

func newLedger(head messages.QueueOffset, limit int) *ledger {
	l := &ledger{
		head: head, walked: head, limit: limit,
		waiting: map[messages.QueueOffset]*half{}, copies: map[messages.QueueOffset]messages.QueueOffset{},
	}
	l.ends.base = max(head-keptBehind, 0)
	return l
}

// full tells whether no further half messages are taken from the queue for now.
func (l *ledger) full() bool { return len(l.waiting) >= l.limit }

// live is the present copy of a half message.
func (l *ledger) live(at messages.QueueOffset) messages.QueueOffset {
	if now, ok := l.copies[at]; ok {
		return now
	}
	return at
}

// halfOf reads what matters of a half message's record.
func halfOf(r *record.Record) *half {
	p := messages.ViewProperties(r.Properties)
	h := &half{
		at: r.QueueOffset, place: r.PhysicalOffset, sinceMs: r.StoreTimestampMs, storedMs: r.StoreTimestampMs, immunity: -1,
	}
	if text, ok := p.Get(messages.PropertyCheckImmunitySeconds); ok {
		if s, err := strconv.ParseInt(text, 10, 32); err == nil && s >= 0 {
			h.immunity = time.Duration(s) * time.Second
		}
	}
	if text, ok := p.Get(messages.PropertyTransactionChecks); ok {
		h.checks, _ = strconv.Atoi(text) // what is no number is 0
		h.checks = max(h.checks, 0)
	}
	first, copied := number(p, messages.PropertyPreparedQueueOffset)
	if copied && first < int64(h.at) {
		h.names = []messages.QueueOffset{messages.QueueOffset(first)}
	}
	if copied || h.checks > 0 {
		h.sinceMs = min(r.BornTimestampMs, r.StoreTimestampMs) // the store time is that of the copy
	}
	return h
}

func number(p messages.Properties, name string) (int64, bool) {
	text, _ := p.Get(name)
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 0
}

// add takes a half message from the queue. One that is over, or whose first copy is, is left out; an earlier copy of it that is
// still here is superseded.
func (l *ledger) add(h *half) {
	if l.waiting[h.at] != nil || l.ends.of(h.at, h.place) != open {
		return
	}
	for _, name := range h.names {
		if s := l.ends.get(name); s != open {
			l.ends.set(h.at, s, certain)
			return
		}
	}
	for _, name := range h.names {
		if earlier := l.waiting[l.live(name)]; earlier != nil && earlier.at < h.at {
			l.supersede(earlier, h)
		}
	}
	l.waiting[h.at] = h
	for _, name := range h.names {
		l.copies[name] = h.at
	}
}

// supersede makes a half message the present copy of an earlier one.
func (l *ledger) supersede(earlier, h *half) {
	delete(l.waiting, earlier.at)
	h.names = append(slices.Clone(earlier.names), earlier.at)
	if len(h.names) > maxNames {
		delete(l.copies, h.names[1])
		h.names = slices.Delete(h.names, 1, 2)
	}
	h.checks, h.sinceMs = max(h.checks, earlier.checks), min(h.sinceMs, earlier.sinceMs)
	l.waiting[h.at] = h
	for _, name := range h.names {
		l.copies[name] = h.at
	}
}

// renewed notes that a copy of an undecided half message has been stored.
func (l *ledger) renewed(at messages.QueueOffset, r *messages.PutResult) {
	h := l.waiting[at]
	if h == nil {
		return
	}
	again := *h
	again.at, again.place, again.storedMs = r.QueueOffset, r.PhysicalOffset, r.StoreTimestampMs
	l.supersede(h, &again)
}

// namesOf are all copies of a half message, the present one first.
func (l *ledger) namesOf(at messages.QueueOffset) []messages.QueueOffset {
	names := []messages.QueueOffset{at}
	if h := l.waiting[at]; h != nil {
		names = append(names, h.names...)
	}
	return names
}

// finish notes how a half message, with all its copies, has ended.
func (l *ledger) finish(at messages.QueueOffset, how state) {
	for _, name := range l.namesOf(at) {
		l.ends.set(name, how, certain)
		delete(l.copies, name)
	}
	delete(l.waiting, at)
}

// skip leaves a half message alone for good: it can't be read.
func (l *ledger) skip(at messages.QueueOffset) { l.finish(at, dropped) }

// due are the undecided half messages, in order.
func (l *ledger) due() []messages.QueueOffset { return slices.Sorted(maps.Keys(l.waiting)) }

// settle moves the progress on: up to the first half message that is undecided or being ended.
func (l *ledger) settle(ending []messages.QueueOffset) {
	head := l.walked
	for at := range l.waiting {
		head = min(head, at)
	}
	for _, at := range ending {
		head = min(head, max(at, l.head)) // one that is below already, ended late, does not move it back
	}
	l.head = max(l.head, head)
	l.ends.slide(l.head)
}
