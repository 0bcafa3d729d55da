package transaction

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
)

// stepSize bounds the work of one step of a round, in half messages or op messages.
const stepSize = 256

// round is a round in progress.
type round struct {
	end   messages.QueueOffset // of the half queue when it began
	phase phase
	todo  []messages.QueueOffset
	open  int // puts and questions that it waits for
}

type phase int

const (
	walking phase = iota
	judging
	settling
)

// checked tells what became of some questions.
type checked struct {
	round  *round
	sent   []messages.QueueOffset
	broken []broken
}

// broken is a half message that can't be read.
type broken struct {
	at  messages.QueueOffset
	err error
}

// begin begins a round.
func (a *transactions) begin() {
	if a.round != nil {
		return
	}
	a.rules.reserved = a.cfg.Store.Retention().FileReservedTime // it may have changed
	a.rules.renewAfter = min(a.cfg.RenewAfter, a.rules.reserved/2)
	a.round = &round{end: a.cfg.Store.MaxOffset(halfQueue)}
	a.step()
}

// step does a part of the round and announces the next one, unless somebody else's answer does.
func (a *transactions) step() {
	r := a.round
	if r == nil {
		return
	}
	done := false
	switch r.phase {
	case walking:
		done = a.catchUp() && a.walk(r.end)
		if done {
			r.todo = a.ledger.due()
		}
	case judging:
		if r.open > 0 {
			return
		}
		a.judge(r)
		if r.open > 0 {
			return
		}
		done = len(r.todo) == 0
	case settling:
		a.ledger.settle(a.beingEnded())
		if a.settleOps() {
			a.finishRound()
			return
		}
	}
	if done {
		r.phase++
	}
	a.tell(step{})
}

// judge deals with some of the undecided half messages. None is judged before all ops of the start are known (L72).
func (a *transactions) judge(r *round) {
	now := time.Now()
	var ask []half
	for n := 0; n < stepSize && len(r.todo) > 0; n++ {
		at := r.todo[0]
		r.todo = r.todo[1:]
		h := a.ledger.waiting[at]
		if h == nil || a.ending[at] != nil {
			continue
		}
		switch v := a.rules.judge(h, now, r.end); {
		case v == renew:
			a.copyHalf(r, h, open)
		case a.opsRead < a.opsEnd:
		case v == check:
			ask = append(ask, *h)
		case v == giveUp:
			a.copyHalf(r, h, dropped)
		}
	}
	if len(ask) > 0 {
		r.open++
		a.asking.Go(func() {
			c := checked{round: r}
			err := actors.Protect("ask about transactions", func() error {
				c = a.question(r, ask)
				return nil
			})
			if err != nil {
				a.cfg.Logger.Error().Err(err).Msg("asking producers about transactions failed: the next round tries again")
			}
			a.tell(c)
		})
	}
}

// copyHalf renews a half message, or gives it up.
func (a *transactions) copyHalf(r *round, h *half, how state) {
	stored, err := a.cfg.Store.MessageAt(h.place)
	if err != nil {
		a.unreadable(h.at, err)
		return
	}
	m := renewed(&stored, h.checks)
	if how != open {
		m = moved(&stored, messages.TopicTransCheckMaxTime, h.checks)
		group, _ := stored.Properties.Get(messages.PropertyProducerGroup)
		a.cfg.Logger.Warn().Int64("half", int64(h.at)).Int("checks", h.checks).Str("group", group).
			Msg("a transaction was not ended by its producers: it is given up")
	}
	r.open++
	a.put(&ending{at: h.at, how: how, round: true}, m, how == open, time.Time{})
}

// unreadable leaves a half message alone for good once it could not be read in several rounds; the others go on (L71).
func (a *transactions) unreadable(at messages.QueueOffset, err error) {
	const most = 3
	h := a.ledger.waiting[at]
	if h == nil || a.ending[at] != nil {
		return
	}
	h.unread++
	a.cfg.Logger.Error().Err(err).Int64("half", int64(at)).Bool("left_alone", h.unread >= most).Msg("a half message can't be read")
	if h.unread >= most {
		a.ledger.skip(at)
	}
}

// question asks producers, on a goroutine of its own.
func (a *transactions) question(r *round, list []half) checked {
	c := checked{round: r}
	for i := range list {
		select {
		case <-a.stop:
			return c
		default:
		}
		h := &list[i]
		stored, err := a.cfg.Store.MessageAt(h.place)
		if err != nil {
			c.broken = append(c.broken, broken{h.at, err})
			continue
		}
		ask, err := question(&stored, h.checks+1)
		if err == nil && a.send(ask) {
			c.sent = append(c.sent, h.at)
		}
	}
	return c
}

// send calls the checker; one that panics has asked nobody.
func (a *transactions) send(c messages.CheckTransaction) (sent bool) {
	defer func() {
		if r := recover(); r != nil {
			a.cfg.Logger.Error().Interface("panic", r).Bytes("stack", debug.Stack()).Str("group", c.Group).
				Msg("a checker of transactions panicked")
			sent = false
		}
	}()
	return a.cfg.Check(c)
}

// wereAsked counts the checks that were sent.
func (a *transactions) wereAsked(c checked) {
	for _, at := range c.sent {
		if h := a.ledger.waiting[at]; h != nil {
			h.checks, h.unread = h.checks+1, 0
		}
	}
	for _, b := range c.broken {
		a.unreadable(b.at, b.err)
	}
	if c.round == a.round && a.round != nil {
		a.roundHas(-1)
	}
}

// roundHas counts what the round waits for; it goes on when there is nothing left.
func (a *transactions) roundHas(more int) {
	if a.round.open += more; a.round.open == 0 {
		a.tell(step{})
	}
}

// roundGoesOn tells the round that an ending of its own is done.
func (a *transactions) roundGoesOn(e *ending) {
	if !e.round {
		return
	}
	e.round = false
	if a.round != nil && a.round.phase == judging {
		a.roundHas(-1)
	}
}

// settleOps moves the progress in the op queue on; true when it can't go further.
func (a *transactions) settleOps() bool {
	for n := 0; n < stepSize; {
		stopped := false
		next, err := a.readOps(a.opHead, stepSize-n, func(at messages.QueueOffset, _ messages.PhysicalOffset) bool {
			stopped = at >= a.ledger.head
			return !stopped
		})
		if err != nil || next == a.opHead {
			return true
		}
		n += int(next - a.opHead)
		a.opHead = next
		if stopped {
			return true
		}
	}
	return false
}

// finishRound saves the progress and arms the timer when there is more to come.
func (a *transactions) finishRound() {
	a.round = nil
	l := a.ledger
	a.count.Store(int64(len(l.waiting)))
	if !a.save() || len(l.waiting) > 0 || len(a.ending) > 0 || int64(l.walked) < a.announced.Load() ||
		l.walked < a.cfg.Store.MaxOffset(halfQueue) || a.opHead < a.cfg.Store.MaxOffset(opQueue) {
		a.arm()
	}
}

// save commits the progress, but not before what it relies on is durable: op messages that a power cut takes would leave their half
// messages behind it. It tells whether everything is saved.
func (a *transactions) save() bool {
	if a.next.unsaved && a.cfg.Store.FlushedTo() >= a.next.end {
		a.commit(a.next)
	}
	if now := (progress{half: a.ledger.head, op: a.opHead}); now.half != a.next.half || now.op != a.next.op {
		_, now.end = a.cfg.Store.LogRange()
		now.unsaved = true
		a.next = now
		if a.cfg.Store.FlushedTo() >= now.end {
			a.commit(now)
		}
	}
	return !a.next.unsaved
}

func (a *transactions) commit(p progress) {
	// Half messages first: an op offset that is too low costs reading, a half offset that is too low costs a look.
	for _, x := range []struct {
		q  messages.QueueKey
		at messages.QueueOffset
	}{{halfQueue, p.half}, {opQueue, p.op}} {
		if err := a.cfg.Offsets.Commit(messages.GroupTransactions, x.q, x.at); err != nil {
			a.cfg.Logger.Warn().Err(err).Str("queue", x.q.Topic).Msg("the progress of transactions could not be saved")
			return
		}
	}
	a.next.unsaved = false
}

// get reads a part of a queue; the caller releases it.
func (a *transactions) get(q messages.QueueKey, at messages.QueueOffset, most int) (*messages.GetResult, error) {
	return a.cfg.Store.Get(context.Background(), messages.GetMessage{Queue: q, Offset: at, MaxMessages: most})
}
