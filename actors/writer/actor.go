package writer

import (
	"errors"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/commitlog"
)

// Config is what a writer is made of. Peers may be zero: that part is switched off.
type Config struct {
	Log     *commitlog.Log
	Offsets map[messages.QueueKey]messages.QueueOffset // next queue offset of each queue, from recovery

	// SyncFlush hands puts that wait to Flusher instead of answering them (SYNC_FLUSH).
	SyncFlush bool
	Flusher   *mailbox.Combining
	// Unwaited, when set, is rung for a put that does not wait under SyncFlush: its flush begins at once.
	Unwaited *actors.Bell

	// Replicate, when set, is told of each put that waits, after its append: it adds a promise to the put, or says in its
	// status that there is no replica (SYNC_MASTER). It must not block.
	Replicate func(*messages.PutMessage)
	// ReplicateAlone, when set, is asked before Replicate for a put that finds the writer idle, without SyncFlush. True: no other one waits for
	// replicas, and SendAlone is going to be called, on the same goroutine, once others may run the writer; Replicas, one of Appended, is not rung
	// for it (docs/adr/0009).
	ReplicateAlone func(*messages.PutMessage) bool
	SendAlone      func()
	Replicas       *actors.Bell
	// Follower takes AppendReplica instead of puts (SLAVE): the log begins where the master's bytes do.
	Follower bool

	// MaxLightQueues is how many queues of light topics puts may make; 0: any number (maxLmqConsumeQueueNum).
	MaxLightQueues int
	// TailShort says that the rest of the last segment has no room on the disk yet: the writer has it reserved first.
	TailShort bool
	// ByWrite appends by write(2) instead of through the map: dearer for the writer, but a page that is not written to through a map
	// costs less to sync (docs/adr/0010). Not with Pooled or Follower.
	ByWrite bool
	// Crowded, when set, tells that so many puts are in flight that appending through the map is the cheaper way after all.
	Crowded func() bool
	// Pooled leaves it to a committer to publish what is appended (transientStorePoolEnable).
	Pooled bool

	Allocator actors.Peer
	Appended  []*actors.Bell // rung when the log has grown: replicators; a committer, which rings all
	// Readable is the dispatcher's: rung at once when somebody waits for a message of the queue, else within a millisecond.
	Readable *actors.Bell
	// Awaited tells whether somebody does, on the writer's goroutine; nil: always.
	Awaited func(messages.QueueKey) bool
	Space   actors.Peer // told messages.SpaceProblem when puts are refused because the disk is full, and when that is over

	// OnFailed is told once when the writer fails; it must not block.
	OnFailed func(messages.Failed)
	// Rebuild reads the queue-offset table from the files again; it runs on a goroutine of its own after a panic.
	Rebuild func() (map[messages.QueueKey]messages.QueueOffset, error)

	NowMs  func() int64 // wall clock in ms; nil: the machine's
	Logger zerolog.Logger
	// WindowBytes is how far ahead of the tail pages are populated. 0: not at all.
	WindowBytes int64
	// SegmentWait is how long a put without a deadline waits for a segment.
	SegmentWait time.Duration
}

// defaultSegmentWait: spec/store.md §4.5.
const defaultSegmentWait = 5 * time.Second

// ErrNoSegment: the next commit-log segment could not be had in time.
var ErrNoSegment = errors.New("no commit-log segment")

// Actor is the commit-log writer.
type Actor struct {
	cfg   Config
	self  actors.Peer
	tail  *appender
	clock clock

	ready  []*segments.Segment // the next segments, in order; at most two
	asked  int64               // segments that begin below it have been asked for
	window window

	touched      byte                 // what warm has read: nobody looks at it
	current      any                  // being appended; what a panic is blamed on
	begun        int64                // the tail where current begins, in the current segment
	alone        *messages.PutMessage // the same, of a put that is handled alone
	panicOnFault bool                 // the goroutine's own setting, between enter and leave

	done       []*messages.PutMessage // appended in this batch, not yet answered
	groups     []*messages.PutGroup   // those among them
	broken     error                  // why the message being appended could not go on: the rest of the segment can't be written
	parked     []any                  // PutMessage or PutGroup, waiting for a segment or a rebuild, in order
	parkedAt   atomic.Int64           // when parked became more than none, in ns since made; 0: it is none
	made       time.Time
	parkTimer  *time.Timer
	segmentErr error // why the last attempt to make a segment failed
	short      bool  // Space has been told that there is no room

	promises   bool // puts that wait are promised more than the append
	followed   bool // somebody is to be told that the log has grown
	awaited    bool // somebody waits for one of the messages that nobody has been told of
	failed     error
	rebuilding bool
	lastPanic  time.Time
}

// New returns the actor; spawn it with a mailbox of package mailbox.
func New(cfg Config) *Actor {
	if cfg.SegmentWait <= 0 {
		cfg.SegmentWait = defaultSegmentWait
	}
	tail := newAppender(cfg.Log, cfg.Offsets)
	tail.pooled, tail.maxLights = cfg.Pooled, cfg.MaxLightQueues
	tail.short = cfg.TailShort && tail.seg != nil
	if cfg.ByWrite && !cfg.Pooled && cfg.WindowBytes > 0 && tail.seg != nil {
		tail.seg.WriteAhead(tail.pos) // recovery has left zeros behind the end; syncs want them on the disk
	}
	cfg.ByWrite = cfg.ByWrite && !cfg.Pooled && !cfg.Follower
	return &Actor{
		cfg: cfg, promises: cfg.SyncFlush || cfg.Replicate != nil, made: time.Now(), tail: tail, clock: clock{tell: cfg.NowMs},
	}
}

type (
	// parkExpired is the writer's own timer: the oldest parked put has reached its deadline.
	parkExpired struct{}
	// goOn appends what is parked: there is a segment.
	goOn struct{}
	// rebuilt ends a rebuild.
	rebuilt struct {
		offsets map[messages.QueueKey]messages.QueueOffset
		err     error
	}
)

// Receive implements actor.Actor.
func (w *Actor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *mailbox.Batch:
		w.ReceiveBatch(m)
	case *actor.Started:
		w.started(actors.NewPeer(ctx.ActorSystem().Root, ctx.Self()))
	case actors.SegmentReady:
		w.segmentReady(m)
	case actors.SegmentFailed:
		w.segmentFailed(m.Err)
	case actors.WindowReady:
		w.window.ready(m)
	case goOn:
		if !w.rebuilding {
			w.guarded(w.unpark)
		}
	case parkExpired:
		w.expireParked()
	case messages.ForgetTopic:
		w.forget(m)
	case rebuilt:
		w.rebuilt(m)
	case messages.Failed:
		w.fail(m.Cause)
	case *actor.Stopping:
		w.stopping()
	}
}

func (w *Actor) started(self actors.Peer) {
	w.self = self
	w.window.size = w.cfg.WindowBytes
	w.followed = len(w.cfg.Appended) > 0 || w.cfg.Readable != nil || w.window.size > 0
	if s := w.tail.seg; w.tail.short {
		w.cfg.Allocator.Send(actors.SegmentWanted{Start: s.Start(), ReplyTo: self, Tail: s, From: w.tail.pos})
		return // then
	}
	w.wantSegments()
	w.wantWindow()
}

// ReceiveBatch implements mailbox.BatchReceiver: it appends what was waiting, publishes once, and answers. A panic in it
// ends in Panicked; the mailbox then calls it again for the rest.
func (w *Actor) ReceiveBatch(b *mailbox.Batch) {
	w.enter()
	for m := b.Next(); m != nil; m = b.Next() {
		b.Handled() // from here on the writer answers it
		w.current = m
		w.warm(b.Peek())
		w.take(m)
		w.current = nil
		if len(w.tail.staged) >= stageBytes {
			w.settle()
		}
	}
	w.settle()
	w.leave()
}

// ReceiveSingle implements mailbox.SingleReceiver: the shortest way of the most common case, one put that finds the writer
// idle and that fits.
func (w *Actor) ReceiveSingle(m any) (taken, owed bool) {
	p, ok := m.(*messages.PutMessage)
	if !ok || w.failed != nil || w.rebuilding || len(w.parked) > 0 {
		return false, false
	}
	if w.cfg.ByWrite {
		w.choose(p.WaitStored)
	}
	w.guard()
	w.tail.tick(w.clock.nowMs())
	w.alone = p
	if w.tail.append(p) != nil {
		w.alone = nil
		w.leave()
		return false, false
	}
	if err := w.tail.publish(); err != nil {
		w.alone = nil
		w.unwritten(err)
		w.failUnwritten(p, err)
		w.leave()
		return true, false
	}
	w.note(p)
	sends := false
	if w.promises && p.WaitStored {
		if sends = w.cfg.ReplicateAlone != nil && w.cfg.ReplicateAlone(p); !sends {
			w.promise(p)
		}
		owed = sends
	} else {
		if owed = p.OnDone != nil; !owed {
			p.FulfilInline()
		}
		if w.cfg.Unwaited != nil {
			w.cfg.Unwaited.Ring()
		}
	}
	if !owed {
		w.alone = nil
	}
	if w.followed {
		w.follow(sends)
	}
	w.alone = nil
	w.leave()
	return true, owed
}

// Settle implements mailbox.SingleReceiver: over the wire, telling somebody that his put is stored takes longer than storing it.
// Others put meanwhile, instead of leaving theirs to whoever runs the writer.
func (w *Actor) Settle(m any) {
	p := m.(*messages.PutMessage)
	sends := w.cfg.ReplicateAlone != nil && p.WaitStored
	if p.Fulfil(); sends { // the put is its sender's now, or the replicator's
		w.cfg.SendAlone()
	}
}

// warm touches what the next message will need, while this one is being copied: records that others have encoded come from
// another core's cache.
func (w *Actor) warm(next any) {
	if p, ok := next.(*messages.PutMessage); ok {
		for i := 0; i < len(p.Records); i += 128 {
			w.touched += p.Records[i]
		}
	}
}

// note looks whether somebody waits for a message, before its put is answered. A dispatcher that has been told already finds it anyhow. With
// its first message a queue begins to be there: somebody may look for it.
func (w *Actor) note(p *messages.PutMessage) {
	if bell := w.cfg.Readable; bell != nil && !w.awaited && !bell.Pending() {
		w.awaited = w.cfg.Awaited == nil || p.Multi || p.Result.QueueOffset == 0 || w.cfg.Awaited(p.Queue)
	}
}

// noteGroups is note for each message of the groups, which are their senders' again once their leads are answered.
func (w *Actor) noteGroups() {
	for _, g := range w.groups {
		for _, p := range g.Puts {
			w.note(p)
		}
	}
	w.forgetGroups()
}

// follow tells those who work behind the writer that the log has grown. Sent: the replicator is going to be told by SendAlone.
func (w *Actor) follow(sent bool) {
	for _, bell := range w.cfg.Appended {
		if !sent || bell != w.cfg.Replicas {
			bell.Ring()
		}
	}
	if w.awaited {
		w.awaited = false
		w.cfg.Readable.Ring()
	} else {
		w.cfg.Readable.RingSoon()
	}
	if w.window.size > 0 {
		w.wantWindow()
	}
}

// enter begins work on the map: a fault in it panics instead of ending the process, until leave.
func (w *Actor) enter() {
	if w.cfg.ByWrite {
		w.choose(true)
	}
	w.guard()
	w.tail.tick(w.clock.nowMs())
}

func (w *Actor) guard() { w.panicOnFault = debug.SetPanicOnFault(true) }

func (w *Actor) leave() { debug.SetPanicOnFault(w.panicOnFault) }

// take appends one message, or parks or refuses it.
func (w *Actor) take(m any) {
	if w.failed != nil {
		messages.Refuse(m, w.failed)
		return
	}
	if len(w.parked) == 0 && !w.rebuilding && w.append(m) {
		return
	}
	if cause := w.broken; cause != nil {
		w.broken = nil
		w.failUnwritten(m, cause)
		return
	}
	if w.segmentErr != nil && !w.rebuilding {
		// The disk is full, say: waiting would only turn the reason into the client's own timeout. The allocator goes on trying.
		w.refuseFull(m)
		return
	}
	w.park(m)
}

// append stores a message; false when it has to wait for a segment.
func (w *Actor) append(m any) bool {
	w.begun = w.tail.pos
	switch m := m.(type) {
	case *messages.PutMessage:
		if !w.appendOne(m) {
			return false
		}
		w.done = append(w.done, m)
	case *messages.PutGroup:
		for ; m.Next < len(m.Puts); m.Next++ {
			if !w.appendOne(m.Puts[m.Next]) {
				return false
			}
		}
		if n := len(m.Puts); n > 0 {
			m.Lead.Result = m.Puts[n-1].Result
		}
		w.done = append(w.done, m.Lead)
		w.groups = append(w.groups, m)
	case *messages.AppendReplica:
		if !w.appendReplica(m) {
			return false
		}
		w.done = append(w.done, m.Done)
	default:
		messages.Refuse(m, messages.ErrFailed)
	}
	return true
}

// appendOne stores one put or says in its result why not; false when it has to wait for a segment.
func (w *Actor) appendOne(p *messages.PutMessage) bool {
	err := w.tail.append(p)
	if err == errNoRoom {
		if err = w.tail.fits(p); err == nil {
			if !w.roll() {
				return false
			}
			err = w.tail.append(p)
		}
	}
	if err != nil {
		p.Result.Status, p.Err = statusOf(err), err
	}
	return true
}

// settle publishes what was appended, answers it or hands it to the flusher, and wakes the followers.
func (w *Actor) settle() {
	if len(w.done) == 0 {
		return
	}
	if err := w.tail.publish(); err != nil {
		w.unwritten(err)
		return
	}
	w.noteGroups()
	for i, p := range w.done {
		if p == nil {
			continue // answered before a panic
		}
		w.done[i] = nil
		w.note(p)
		if w.promises && p.WaitStored && p.Result.Bytes > 0 {
			w.promise(p)
		} else {
			p.Fulfil()
		}
	}
	w.done = w.done[:0]
	w.cfg.Unwaited.Ring()
	w.follow(false)
}

// promise answers a put that waits for more than its append, or hands it on.
func (w *Actor) promise(p *messages.PutMessage) {
	if w.cfg.Replicate != nil {
		w.cfg.Replicate(p)
	}
	if w.cfg.SyncFlush {
		w.handOn(p)
		return
	}
	p.Fulfil()
}

// handOn passes the writer's promise to the flusher, which meets it when the bytes are durable.
func (w *Actor) handOn(p *messages.PutMessage) {
	if err := w.cfg.Flusher.Post(p.MailboxLink()); err != nil {
		// Stored, but there is no room to wait for the flush.
		p.Fail(messages.FlushDiskTimeout, err)
	}
}
