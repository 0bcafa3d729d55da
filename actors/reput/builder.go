package reput

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/consumequeue"
)

// QueueConfig is what a queue builder is made of.
type QueueConfig struct {
	Table *consumequeue.Table
	// Log is read again to rebuild a queue that lacks units; nil: such a queue is stuck.
	Log *commitlog.Log
	// Built is the physical offset below which the queues are complete: where the dispatcher begins.
	Built messages.PhysicalOffset
	// Follower: the log is that of a slave. A record with queue offset 0 behind others says that its topic was deleted and made
	// again at the master.
	Follower bool
	// MultiDispatch must be the dispatcher's.
	MultiDispatch bool
	// Delay must be the dispatcher's.
	Delay func(level int) (ms int64, highest int)

	// Shard of Shards: the builder does the queues whose hash falls to it. Shards 0 or 1: all of them. Shards share Durable.
	Shard, Shards int
	Durable       *Durable

	Listeners []Listener
	Flusher   actors.Peer // told QueuesFlushed
	Space     actors.Peer // told messages.SpaceProblem

	Interval         time.Duration // flushIntervalConsumeQueue; 0: 1 s
	LeastPages       int           // flushConsumeQueueLeastPages; 0: 2, -1: whatever there is
	ThoroughInterval time.Duration // flushConsumeQueueThoroughInterval: then regardless of pages; 0: 60 s
	// MaxPending bounds the units that are only in memory, 20 bytes each: when as many cannot be written, no more batches
	// are taken; 0: 4,194,304.
	MaxPending int64

	OnProblem func(messages.QueueProblem) // must not block
	OnFailed  func(messages.Failed)       // told once; must not block
	Logger    zerolog.Logger
}

// Listener is told of the messages that have become readable (messages.MessagesArrived).
type Listener struct {
	Peer actors.Peer
	// Wants tells whether arrivals in a queue concern the listener, so that the others cost nothing. It is asked after the
	// message has become readable, on the builder's goroutine, and must not block; nil: all do.
	Wants func(messages.QueueKey) bool
}

const (
	defaultInterval   = time.Second
	defaultLeastPages = 2
	defaultThorough   = time.Minute
	defaultMaxPending = 1 << 22

	pageBytes     = 4096
	maxRetryPause = 30 * time.Second // between attempts to write, at most
	maxSpacePause = 2 * time.Second  // the same while there is no room
)

func (c QueueConfig) withDefaults() QueueConfig {
	if c.Shards < 1 {
		c.Shards = 1
	}
	if c.Durable == nil {
		c.Durable = NewDurable(c.Shards)
	}
	if c.Interval <= 0 {
		c.Interval = defaultInterval
	}
	if c.LeastPages == 0 {
		c.LeastPages = defaultLeastPages
	}
	if c.ThoroughInterval <= 0 {
		c.ThoroughInterval = defaultThorough
	}
	if c.MaxPending <= 0 {
		c.MaxPending = defaultMaxPending
	}
	return c
}

// Durable joins what the shards of a store have made durable: the checkpoint may say only what all of them have. Safe for
// concurrent use.
type Durable struct {
	ms []atomic.Int64
}

// NewDurable returns the common record of so many shards.
func NewDurable(shards int) *Durable { return &Durable{ms: make([]atomic.Int64, shards)} }

// set notes the store timestamp of one shard and returns that of all.
func (d *Durable) set(shard int, ms int64) int64 {
	d.ms[shard].Store(ms)
	for i := range d.ms {
		ms = min(ms, d.ms[i].Load())
	}
	return ms
}

// QueueBuilder is the actor that writes the consume queues: one of them, or one for each shard of the queues.
type QueueBuilder struct {
	cfg  QueueConfig
	self actors.Peer

	queues  map[messages.QueueKey]*queueState
	reborn  map[string]bool // topics that are being deleted: their queues begin anew with offset 0
	last    [8]*queueState  // of the records before, by queue number
	built   messages.PhysicalOffset
	builtMs int64 // store timestamp of the last record built
	refused int64 // records whose topic is no folder name

	soon      [fetchAhead]*queueState // of the records that come next; nil: not looked up
	strangers int                     // of the records built last, those that were not of a queue met shortly before
	scattered bool                    // most of them were

	progress  int // requests of the running batch that are done
	held      []*messages.Delivery
	arrivals  [][]messages.Arrival // by listener
	flush     flushState
	repairs   []*queueState              // queues that lack units, and are being read again
	stuck     map[messages.QueueKey]bool // queues that lack units which the log does not hold
	scanning  bool                       // for the first of repairs; after a DestroyQueue perhaps for one that is gone
	failed    error
	lastPanic time.Time
}

// queueState is what the builder knows of one queue.
type queueState struct {
	key     messages.QueueKey
	queue   *consumequeue.Queue  // never changes: a flush reads it meanwhile
	dirty   bool                 // in flush.dirty
	warm    bool                 // in flush.warm
	seenEnd messages.QueueOffset // the queue's end at the last thorough flush, while it is warm
	refused int64                // records that have no place
	repair  *repair              // not nil: the queue lacks units and does not grow
}

// NewQueueBuilder returns the actor; spawn it with a mailbox of package mailbox.
func NewQueueBuilder(cfg QueueConfig) *QueueBuilder {
	cfg = cfg.withDefaults()
	return &QueueBuilder{
		cfg: cfg, built: cfg.Built, queues: map[messages.QueueKey]*queueState{}, reborn: map[string]bool{},
		stuck:    map[messages.QueueKey]bool{},
		arrivals: make([][]messages.Arrival, len(cfg.Listeners)),
		flush:    flushState{thorough: time.Now(), pause: cfg.Interval},
	}
}

// Receive implements actor.Actor.
func (a *QueueBuilder) Receive(ctx actor.Context) {
	defer func() {
		if r := recover(); r != nil { // in the middle of what is no batch: there is nothing to try again
			a.fail(recovered("build consume queues", r))
			messages.Refuse(ctx.Message(), a.failed)
			a.buildHeld()
		}
	}()
	switch m := ctx.Message().(type) {
	case *mailbox.Batch:
		a.batch(m)
	case flushTick:
		a.flushTick()
	case flushed:
		a.flushDone(m)
	case scanned:
		a.scanDone(m)
	case messages.FlushQueues:
		a.flushNow(m)
	case messages.RebuildQueue:
		a.rebuild(m)
	case messages.DestroyQueue:
		a.destroy(m)
	case messages.DestroyTopic:
		a.destroyTopic(m)
	case *actor.Started:
		a.self = actors.NewPeer(ctx.ActorSystem().Root, ctx.Self())
		a.takeOver()
	case *actor.Stopping:
		a.stopping()
	}
}

// takeOver has what recovery could not write, because the disk was full, or not sync, written by the timer.
func (a *QueueBuilder) takeOver() {
	pending := a.cfg.Table.InOrder(func(q *consumequeue.Queue) bool {
		return !q.Durable() && ShardOf(q.Key(), a.cfg.Shards) == a.cfg.Shard
	})
	for _, q := range pending {
		if st, err := a.state(q.Key()); err == nil {
			a.flush.touch(st)
		}
	}
	a.countPending()
	a.armTick()
}

func (a *QueueBuilder) batch(b *mailbox.Batch) {
	for m := b.Next(); m != nil; m = b.Next() {
		b.Handled()
		if d, ok := m.(*messages.Delivery); ok {
			a.held = append(a.held, d)
		}
	}
	a.buildHeld()
}

// buildHeld builds what has come, unless too much waits to be written.
func (a *QueueBuilder) buildHeld() {
	done := 0
	for ; done < len(a.held); done++ {
		if a.failed == nil && a.flush.pending >= a.cfg.MaxPending {
			break
		}
		if d := a.held[done]; d != nil {
			a.build(d)
			a.held[done] = nil // answered: it is the dispatcher's
		}
	}
	n := copy(a.held, a.held[done:])
	clear(a.held[n:])
	a.held = a.held[:n]
	a.writeSoon()
	a.scanNext()
}

// fail ends building for good; the queues stay readable.
func (a *QueueBuilder) fail(cause error) {
	if a.failed != nil {
		return
	}
	a.failed = errors.Join(messages.ErrFailed, cause)
	a.cfg.Logger.Error().Err(cause).Str("role", string(actors.RoleQueueBuilder)).
		Msg("the queue builder has failed: no more messages become visible")
	a.refuseAll()
	if a.cfg.OnFailed != nil {
		a.cfg.OnFailed(messages.Failed{Role: string(actors.RoleQueueBuilder), Cause: cause})
	}
}

// refuseAll answers everybody who waits with the reason why nothing is built any more.
func (a *QueueBuilder) refuseAll() {
	for _, m := range a.flush.takeAll() {
		m.Refuse(a.failed)
	}
	for _, st := range a.repairs {
		st.repair.refuse(a.failed)
	}
	a.repairs = nil
}

func (a *QueueBuilder) stopping() {
	if a.flush.timer != nil {
		a.flush.timer.Stop()
	}
	if a.failed == nil {
		a.failed = messages.ErrClosed
	}
	a.refuseAll()
	a.buildHeld()
}
