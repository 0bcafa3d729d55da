package extension

import (
	"context"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
)

// KindListener is the kind of a listener's status.
const KindListener = "listener"

// ListenerConfig is what a listener is made of.
type ListenerConfig struct {
	Name   string
	Handle func(context.Context, map[messages.QueueKey]messages.QueueOffset) error
	Policy Policy
	Limit  int // queues that wait to be told of; 0: 65,536
	// Wants says which queues it is about; Ends goes through all queues with the offset behind their last message.
	Wants  func(messages.QueueKey) bool
	Ends   func(func(key messages.QueueKey, end messages.QueueOffset))
	Queues func() int // how many there are
	Logger zerolog.Logger
}

const (
	defaultQueues = 1 << 16
	// leastHeard is how many arrivals a listener hears during a call before it turns deaf, at least: each may wake a goroutine, which
	// costs more than to look at so many queues.
	leastHeard = 16
)

// Listener tells the user's function which queues have grown. While a call runs, what arrives is put together: an entry a
// queue, with the offset behind its last message. What arrives in great numbers meanwhile is not even heard, so that a listener that is
// slow, or does not come back, costs the builder nothing: the ends of the queues tell what has grown.
type Listener struct {
	cfg ListenerConfig
	runner
	pending map[messages.QueueKey]messages.QueueOffset
	told    map[messages.QueueKey]messages.QueueOffset // of the call that runs; not ours meanwhile
	dropped bool

	heard int // arrivals since the last call began
	deaf  atomic.Bool
	base  map[messages.QueueKey]messages.QueueOffset // ends of the queues when it turned deaf
}

// NewListener returns the actor; spawn it with a mailbox of package mailbox whose inline budget is 0.
func NewListener(cfg ListenerConfig) *Listener {
	if cfg.Limit <= 0 {
		cfg.Limit = defaultQueues
	}
	return &Listener{
		cfg: cfg, runner: newRunner(KindListener, cfg.Name, cfg.Policy, cfg.Logger),
		pending: map[messages.QueueKey]messages.QueueOffset{},
	}
}

// Receive implements actor.Actor.
func (l *Listener) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case messages.MessagesArrived:
		for _, a := range m.Arrivals {
			l.note(a.Queue, a.QueueOffset+1)
		}
		l.heard += len(m.Arrivals)
		l.next()
		l.turnDeaf()
	case callDone:
		l.handled(m)
	case callStalled:
		l.stalledCall(m)
	case retryTick:
		l.retried()
		l.next()
	case messages.ResumeExtension:
		l.resume()
		l.next()
	case messages.StopExtension:
		l.stop()
		l.waiting = append(l.waiting, m)
		l.answer()
	case *actor.Started:
		l.self = actors.NewPeer(ctx.ActorSystem().Root, ctx.Self())
	case *actor.Stopping:
		l.stopping()
	}
}

func (l *Listener) note(key messages.QueueKey, end messages.QueueOffset) {
	old, known := l.pending[key]
	if !known && len(l.pending) >= l.cfg.Limit {
		if !l.dropped {
			l.dropped = true
			l.log.Warn().Int("queues", len(l.pending)).Msg("a listener is too slow: arrivals in further queues are dropped")
		}
		return
	}
	l.pending[key] = max(old, end)
}

// Concerns tells whether an arrival in a queue is to be sent to the listener; any goroutine may ask, once the message is readable.
func (l *Listener) Concerns(key messages.QueueKey) bool { return !l.deaf.Load() && l.cfg.Wants(key) }

// turnDeaf ends the hearing when there are so many arrivals that looking at the queues is cheaper.
func (l *Listener) turnDeaf() {
	if l.ready() || l.deaf.Load() || l.heard < l.limit() {
		return
	}
	l.base = map[messages.QueueKey]messages.QueueOffset{}
	l.cfg.Ends(func(key messages.QueueKey, end messages.QueueOffset) {
		if l.cfg.Wants(key) {
			l.base[key] = end
		}
	})
	l.deaf.Store(true) // behind the look: what comes in between is heard
}

// look notes what has grown since the last look, and returns by how much.
func (l *Listener) look() (grown int) {
	l.cfg.Ends(func(key messages.QueueKey, end messages.QueueOffset) {
		if !l.cfg.Wants(key) || end == l.base[key] {
			return
		}
		grown += max(1, int(end-l.base[key])) // less: it has been deleted and begins anew
		l.base[key] = end
		l.note(key, end)
	})
	return grown
}

// hear notes what has grown since the listener turned deaf. It stays deaf for another call when that is much, and hears again when it is
// not.
func (l *Listener) hear() {
	if !l.deaf.Load() || l.look() >= l.limit() {
		return
	}
	l.deaf.Store(false)
	l.look() // what has come before it hears again
	l.base = nil
}

// limit is how many arrivals during a call are much.
func (l *Listener) limit() int { return max(leastHeard, l.cfg.Queues()) }

func (l *Listener) next() {
	if !l.ready() {
		return
	}
	l.hear()
	if len(l.pending) == 0 {
		return
	}
	l.heard = 0
	ends := l.pending
	l.told, l.pending, l.dropped = ends, map[messages.QueueKey]messages.QueueOffset{}, false
	l.run(func(ctx context.Context) error { return l.cfg.Handle(ctx, ends) })
}

func (l *Listener) handled(m callDone) {
	if !l.done(m, len(l.told)) {
		for key, end := range l.told { // it is told again
			l.note(key, end)
		}
	}
	l.told = nil
	l.next()
	l.answer()
}

// Status tells what the listener does; any goroutine may ask.
func (l *Listener) Status() Status { return *l.board.now.Load() }
