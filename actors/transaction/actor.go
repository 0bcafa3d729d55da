package transaction

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
)

// transactions is the actor behind a Keeper.
type transactions struct {
	cfg    Config
	rules  rules
	port   *mailbox.Combining
	bell   *actors.Bell
	ledger *ledger
	ending map[messages.QueueOffset]*ending // by the present copy
	mend   []messages.QueueOffset           // committed before a crash that took their op messages

	opHead  messages.QueueOffset // the progress in the op queue
	opsRead messages.QueueOffset // the ops that were there at the start are known up to here
	opsEnd  messages.QueueOffset // and there were so many
	next    progress             // is saved once the log is durable up to its end

	round     *round // nil: none is running
	tick      *time.Timer
	announced atomic.Int64 // half messages are stored below it
	count     atomic.Int64 // of undecided ones

	asking sync.WaitGroup // the goroutine that asks producers
	stop   chan struct{}
}

// progress is how far the two queues have been worked off.
type progress struct {
	half, op messages.QueueOffset
	end      messages.PhysicalOffset // of the log when it was reached
	unsaved  bool
}

func newActor(cfg Config) *transactions {
	return &transactions{
		cfg: cfg, stop: make(chan struct{}), ending: map[messages.QueueOffset]*ending{},
		rules: rules{
			timeout: cfg.Timeout, max: cfg.MaxCheck, spread: messages.QueueOffset(cfg.Spread),
		},
	}
}

// What the actor tells itself.
type (
	step    struct{} // the next part of a round
	putDone struct { // a put of an ending has been answered
		e      *ending
		result messages.PutResult
		err    error
	}
	retryOp struct{ e *ending } // time to write an op message again
)

// Receive implements actor.Actor.
func (a *transactions) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *mailbox.Batch:
		for x := m.Next(); x != nil; x = m.Next() {
			a.handle(x)
		}
	case putDone:
		a.stored(m)
	case retryOp:
		a.writeOp(m.e)
	case checked:
		a.wereAsked(m)
	case step:
		a.step()
	case messages.HalfPrepared:
		a.bell.Attend()
		a.arm()
	case messages.TransactionTick:
		a.tick = nil
		a.begin()
	case *actor.Started:
		a.started()
	case *actor.Stopping:
		a.stopping()
	case actor.SystemMessage, actor.AutoReceiveMessage:
	default:
		a.reject(m)
	}
}

func (a *transactions) handle(message any) {
	if m, ok := message.(*messages.EndTransaction); ok {
		a.end(m)
		return
	}
	a.reject(message)
}

func (a *transactions) tell(message any) { a.port.PostUserMessage(message) }

// arm sets the timer of the next round, unless it is set or a round is running.
func (a *transactions) arm() {
	if a.tick == nil && a.round == nil {
		a.tick = time.AfterFunc(a.cfg.Interval, func() { a.tell(messages.TransactionTick{}) })
	}
}

// started writes the op messages that a crash has taken.
func (a *transactions) started() {
	for _, at := range a.mend {
		a.write(&ending{at: at, how: committed})
	}
	a.mend = nil
}

func (a *transactions) stopping() {
	if a.tick != nil {
		a.tick.Stop()
	}
	for _, e := range a.ending {
		e.refuse(messages.PutResult{Status: messages.ServiceNotAvailable}, messages.ErrClosed)
		if e.timer != nil {
			e.timer.Stop()
		}
	}
}

// beingEnded are the half messages that are being ended.
func (a *transactions) beingEnded() []messages.QueueOffset {
	return slices.Collect(maps.Keys(a.ending))
}

// reject does not leave the sender of an unknown message waiting.
func (a *transactions) reject(message any) {
	a.cfg.Logger.Warn().Type("message", message).Msg("the transaction actor does not know a message")
	messages.Refuse(message, errors.ErrUnsupported)
}

// panicked is the mailbox's OnPanic. A round that panicked is given up; the next one begins anew.
func (a *transactions) panicked(reason any, stack []byte) {
	a.cfg.Logger.Error().Interface("reason", reason).Bytes("stack", stack).Msg("the transaction actor panicked")
	a.round = nil
	a.arm()
}
