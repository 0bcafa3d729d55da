package delay

import (
	"errors"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/consumequeue/ext"
)

const (
	// putTimeout is how long a put may wait for a segment.
	putTimeout = 5 * time.Second
	// firstPause and longestPause are between attempts to put what was refused.
	firstPause, longestPause = 20 * time.Millisecond, 5 * time.Second
	// warnEvery is between two warnings of a level that the store refuses its puts.
	warnEvery = time.Minute
	// maxTries is how often a record is read, or a put panics, before it is left out.
	maxTries = 6
	// longestWait is after how long a timer looks at the clock again: it may have been set.
	longestWait = time.Minute
	// clockSlack is by how much a delivery time may be ahead without the clock being taken for having jumped.
	clockSlack = time.Second
)

// level is the actor that delivers one level's messages.
type level struct {
	cfg      *Config
	number   int
	key      messages.QueueKey
	delay    time.Duration // -1: the level is no longer configured
	log      zerolog.Logger
	self     actors.Peer // set before it begins
	parent   actors.Peer
	advanced *actors.Bell // rung when offset has moved

	idle   atomic.Bool  // the level waits for a message to arrive
	offset atomic.Int64 // every message below is delivered or left out
	end    atomic.Int64 // behind the last record delivered; it covers what offset covers, if it is loaded after it

	running bool
	gaveUp  bool // the store has failed: nothing more can be put
	queue   *consumequeue.Queue
	next    messages.QueueOffset // of the next unit to look at
	todo    []*entry             // due, not yet delivered
	flying  *batch
	pause   time.Duration // after the last refusal, 0: there was none
	warned  time.Time     // of the last warning that puts are refused
	timer   *time.Timer
}

// What a level is told, and tells.
type (
	begin   struct{ at messages.QueueOffset }
	halt    struct{}
	halted  struct{}
	wake    struct{} // a message has arrived, or the timer has fired
	settled struct{ batch *batch }
)

// Receive implements actor.Actor.
func (l *level) Receive(ctx actor.Context) {
	defer l.survive()
	switch m := ctx.Message().(type) {
	case begin:
		l.running, l.gaveUp, l.next = true, false, m.at
		l.queue, l.todo, l.pause = nil, nil, 0
		l.run()
	case wake:
		l.stopTimer()
		l.run()
	case settled:
		l.settle(m.batch)
	case halt:
		l.running = false
		l.idle.Store(false)
		l.stopTimer()
		l.tellHalted()
	case *actor.Stopping:
		l.running = false
		l.stopTimer()
	}
}

// survive keeps a bug from stopping a level: it goes on after a pause.
func (l *level) survive() {
	if r := recover(); r != nil {
		l.log.Error().Interface("panic", r).Bytes("stack", debug.Stack()).Msg("a delay level panicked; it goes on after a pause")
		l.rest()
	}
}

func (l *level) tellHalted() {
	if !l.running && l.flying == nil {
		l.parent.Send(halted{})
	}
}

// run goes on with what is due, unless something is in flight or a timer is set.
func (l *level) run() {
	if !l.running || l.gaveUp || l.flying != nil || l.timer != nil {
		return
	}
	if len(l.todo) == 0 {
		l.collect()
	}
	if len(l.todo) > 0 {
		l.issue()
	}
}

// collect takes what is due from the queue, a batch at most. When there is nothing the timer is set, or the level is idle.
func (l *level) collect() {
	bytes := 0
	var units [32]consumequeue.Unit
	for len(l.todo) < l.cfg.MaxBatch && bytes < l.cfg.MaxBatchBytes {
		n, ok := l.read(units[:min(len(units), l.cfg.MaxBatch-len(l.todo))])
		if !ok || n == 0 {
			return
		}
		for _, u := range units[:n] {
			if bytes >= l.cfg.MaxBatchBytes {
				return
			}
			if wait := l.wait(u); wait > 0 {
				if len(l.todo) == 0 {
					l.arm(min(wait, longestWait))
				}
				return
			}
			l.todo = append(l.todo, &entry{at: l.next, unit: u})
			l.next++
			bytes += int(u.Size)
		}
	}
}

// wait is how long a message has to wait, 0 when it is due. One that would have to wait longer than its level says is due
// too: the clock has jumped, or the level was shortened (spec/store.md §10.4, correctDeliverTimestamp).
func (l *level) wait(u consumequeue.Unit) time.Duration {
	due, longest := u.TagsCode, l.delay
	if longest < 0 || ext.IsAddress(due) { // a level of before; the address of an extension, which is not kept
		m, err := find(l.cfg.Log, u)
		if err != nil {
			return 0 // delivering it says what is wrong
		}
		if ext.IsAddress(due) {
			due = m.StoreTimestampMs + max(l.delay, 0).Milliseconds()
		}
		longest = time.Duration(due-m.StoreTimestampMs) * time.Millisecond
	}
	left := time.UnixMilli(due).Sub(l.cfg.Now())
	if left <= 0 || left > longest+clockSlack {
		return 0
	}
	return left
}

// issue puts what is to be done, in order. It ends at the first put that is refused at once.
func (l *level) issue() {
	b := newBatch(l, l.todo)
	l.flying, l.todo = b, nil
	defer b.release()
	deadline := time.Now().Add(putTimeout)
	for i, e := range b.entries {
		if e.gone {
			continue
		}
		m, err := l.restored(e)
		if err != nil {
			e.tries++
			if errors.Is(err, ErrDestination) || errors.Is(err, ErrRecord) || e.tries >= maxTries {
				l.leaveOut(e, err)
				continue
			}
			b.answers[i].err = err
			return
		}
		a := &b.answers[i]
		a.issued = true
		b.open.Add(1)
		l.put(m, deadline, a)
		if a.refused() && !hopeless(a.result.Status) {
			return
		}
	}
}

// put hands one message to the store; a panic counts as a refusal.
func (l *level) put(m *messages.Message, deadline time.Time, a *answer) {
	defer func() {
		if r := recover(); r != nil {
			l.log.Error().Interface("panic", r).Bytes("stack", debug.Stack()).Msg("putting a delayed message panicked")
			a.done(messages.PutResult{Status: messages.UnknownError}, messages.ErrPanicked)
		}
	}()
	l.cfg.Put(m, deadline, a.done)
}

func (l *level) restored(e *entry) (*messages.Message, error) {
	stored, err := find(l.cfg.Log, e.unit)
	if err != nil {
		return nil, err
	}
	return restore(&stored)
}

// hopeless tells that a message will never be taken as it is.
func hopeless(s messages.PutStatus) bool {
	return s == messages.MessageIllegal || s == messages.PropertiesSizeExceeded
}

func (l *level) leaveOut(e *entry, err error) {
	e.gone = true
	l.log.Error().Err(err).Int64("queue_offset", int64(e.at)).Int64("offset", int64(e.unit.PhysicalOffset)).
		Msg("a delayed message can't be delivered: it is left out")
}

// settle takes in what became of a batch.
func (l *level) settle(b *batch) {
	l.flying = nil
	var why error
	end := messages.PhysicalOffset(l.end.Load())
	for i, e := range b.entries {
		if err := l.take(e, &b.answers[i]); err != nil && why == nil {
			why = err
		}
		end = max(end, e.end)
	}
	l.end.Store(int64(end))
	first := slices.IndexFunc(b.entries, func(e *entry) bool { return !e.gone })
	if first < 0 {
		l.reach(b.entries[len(b.entries)-1].at + 1)
	} else {
		l.todo = b.entries[first:] // those that are gone too: the offset goes on over all of them in order
		l.reach(l.todo[0].at)
	}
	switch {
	case !l.running:
		l.tellHalted()
	case len(l.todo) > 0:
		l.refused(why)
	default:
		l.pause = 0
		l.run()
	}
}

// take notes what became of one entry; the error says why it is to be put again.
func (l *level) take(e *entry, a *answer) error {
	switch {
	case e.gone:
		return nil
	case !a.issued:
		return a.err
	case a.result.Status.Stored():
		e.gone, e.end = true, a.result.End()
		return nil
	case hopeless(a.result.Status):
		l.leaveOut(e, a.err)
		return nil
	case errors.Is(a.err, messages.ErrPanicked):
		if e.tries++; e.tries >= maxTries {
			l.leaveOut(e, a.err)
			return nil
		}
	}
	return errors.Join(errors.New(a.result.Status.String()), a.err)
}

// refused tries again after a pause, which grows; in a store that has failed there is nothing to wait for.
func (l *level) refused(why error) {
	if errors.Is(why, messages.ErrFailed) {
		l.gaveUp = true
		l.log.Error().Err(why).Msg("the store has failed: delayed messages stay where they are")
		return
	}
	if now := time.Now(); now.Sub(l.warned) >= warnEvery {
		l.warned = now
		l.log.Warn().Err(why).Int64("queue_offset", int64(l.todo[0].at)).
			Msg("delayed messages are not taken by the store; they are put again")
	}
	l.rest()
}

// rest goes on after a pause, each time a longer one.
func (l *level) rest() {
	l.pause = min(max(2*l.pause, firstPause), longestPause)
	l.arm(l.pause)
}

// reach publishes that everything below an offset is done.
func (l *level) reach(at messages.QueueOffset) {
	if l.offset.Swap(int64(at)) != int64(at) {
		l.advanced.Ring()
	}
}

func (l *level) arm(d time.Duration) {
	l.stopTimer()
	if l.running {
		l.timer = l.self.After(d, wake{})
	}
}

func (l *level) stopTimer() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
}
