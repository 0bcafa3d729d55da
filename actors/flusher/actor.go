package flusher

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/checkpoint"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/vfs"
)

// Config is what a flusher is made of.
type Config struct {
	// Mailbox is the actor's own, when it is one of package mailbox: the goroutine of a sync that is through runs the actor then,
	// instead of waking another one.
	Mailbox *mailbox.Combining

	Disk           vfs.Disk
	Log            *commitlog.Log
	CheckpointPath string
	Checkpoint     checkpoint.Values // as loaded
	Flushed        messages.PhysicalOffset

	Interval         time.Duration // flushIntervalCommitLog; 0: no timer
	LeastPages       int           // flushCommitLogLeastPages; 0 or less: whatever there is
	ThoroughInterval time.Duration // flushCommitLogThoroughInterval: then regardless of pages
	SyncTimeout      time.Duration // syncFlushTimeout: the longest that a put waits
	// Urgent flushes what there is whenever the bell rings, as SYNC_FLUSH does for puts that do not wait.
	Urgent bool
	// Bell, when set, is rung when the log has grown: a flush begins without waiting for the timer (flushCommitLogTimed=false).
	Bell *actors.Bell
	// Advanced are rung when FlushedTo has moved.
	Advanced []*actors.Bell

	// Unread, when set, is asked after a sync, on the goroutine of the syncs, up to where nobody is expected to read the log: its memory
	// is given back to the system. It must not block.
	Unread func() messages.PhysicalOffset

	// OnFailed is told of a sync that has failed, on the goroutine of the syncs: also when something else has failed before, or the
	// actor has stopped. It must not block.
	OnFailed func(messages.Failed)
	Logger   zerolog.Logger
}

const (
	pageBytes          = 4096
	slowSync           = 500 * time.Millisecond
	defaultSyncTimeout = 5 * time.Second
)

// ErrSync: making the log durable failed; nothing is acknowledged any more.
var ErrSync = errors.New("syncing the commit log failed")

// Actor is the group-commit flusher.
type Actor struct {
	cfg  Config
	self actors.Peer

	flushed  messages.PhysicalOffset
	values   checkpoint.Values
	saved    checkpoint.Values
	thorough time.Time // of the last flush regardless of pages

	running  bool                // a sync is running
	saving   bool                // the checkpoint is being written
	again    bool                // the bell has rung meanwhile
	waiting  []messages.Linked   // in log order
	answered int                 // by the last sync
	jobs     chan job            // closed when the actor stops
	asked    []messages.FlushNow // what the running sync will answer
	queued   []messages.FlushNow // come in since it began
	saves    []messages.FlushNow // what the checkpoint that is being written will answer

	forgotten messages.PhysicalOffset // its memory has been given back below; the goroutine of the syncs only

	deadline   *time.Timer // nil: not set
	deadlineAt time.Time
	tick       *time.Timer
	failed     error

	// FlushedTo is the durable end of the log; any goroutine may read it.
	FlushedTo *atomic.Int64
	// Syncs is how long the syncs took that were good.
	Syncs *actors.Histogram
}

// New returns the actor. It never waits for the disk itself, so it may run on its senders' goroutines.
func New(cfg Config) *Actor {
	if cfg.SyncTimeout <= 0 {
		cfg.SyncTimeout = defaultSyncTimeout
	}
	a := &Actor{
		cfg: cfg, flushed: cfg.Flushed, values: cfg.Checkpoint, saved: cfg.Checkpoint, thorough: time.Now(),
		forgotten: cfg.Flushed, FlushedTo: new(atomic.Int64), Syncs: actors.NewHistogram(actors.OperationBounds()...),
	}
	a.FlushedTo.Store(int64(cfg.Flushed))
	return a
}

type (
	// synced ends a sync.
	synced struct {
		upTo    messages.PhysicalOffset
		storeMs int64
		took    time.Duration
		err     error
	}
	// checkpointSaved ends the writing of the checkpoint.
	checkpointSaved struct {
		values checkpoint.Values
		err    error
	}
	// deadlineTick: the oldest waiting put has reached its deadline.
	deadlineTick struct{}
)

// Receive implements actor.Actor.
func (a *Actor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *mailbox.Batch:
		a.waiters(m)
	case messages.FlushTick:
		a.flushTick()
	case synced:
		a.synced(m)
	case checkpointSaved:
		a.checkpointSaved(m)
	case deadlineTick:
		a.expire()
	case messages.FlushNow:
		a.flushNow(m)
	case messages.QueuesFlushed:
		a.values.LogicsMs = max(a.values.LogicsMs, m.StoreTimestampMs)
	case messages.IndexFlushed:
		a.values.IndexMs = max(a.values.IndexMs, m.StoreTimestampMs)
	case messages.Failed:
		a.fail(m.Cause)
	case *actor.Started:
		a.self = actors.NewPeer(ctx.ActorSystem().Root, ctx.Self())
		a.jobs = make(chan job, 1)
		go a.syncer(a.jobs)
		a.armTick()
	case *actor.Stopping:
		a.stopping()
	}
}

func (a *Actor) armTick() {
	if a.cfg.Interval > 0 && a.failed == nil {
		a.tick = a.self.After(a.cfg.Interval, messages.FlushTick{})
	}
}

// waiters takes puts that wait for their bytes to be durable.
func (a *Actor) waiters(b *mailbox.Batch) {
	for next := b.Next(); next != nil; next = b.Next() {
		b.Handled()
		if _, ok := next.(messages.LogGrown); ok {
			a.cfg.Bell.Attend()
			a.grown()
			continue
		}
		m := next.(messages.Linked)
		lead, _ := parts(m)
		if a.failed != nil {
			lead.Fail(messages.UnknownError, a.failed)
			continue
		}
		if last := time.Now().Add(a.cfg.SyncTimeout); lead.Deadline.IsZero() || lead.Deadline.After(last) {
			lead.Deadline = last
		}
		a.waiting = append(a.waiting, m)
		a.armDeadline(lead.Deadline)
	}
	a.startSync()
}

// startSync begins a sync for everybody who waits, unless one is running.
func (a *Actor) startSync() {
	if a.running || a.failed != nil || len(a.waiting)+len(a.queued) == 0 {
		return
	}
	a.asked, a.queued = append(a.asked, a.queued...), a.queued[:0]
	a.sync()
}

// sync has what is appended when the disk is asked made durable.
func (a *Actor) sync() {
	a.running, a.again = true, false
	a.jobs <- job{from: a.flushed, several: a.answered+len(a.waiting) > 1}
}

// job is one sync.
type job struct {
	from    messages.PhysicalOffset
	several bool // more than one put waits, or was just answered
}

// syncer does the syncs, on a goroutine that stays: one that is made for each sync has to grow its stack each time. Who can run now,
// because the sync before has answered it, goes first, so that its next put is part of the same sync; nobody is waited for.
func (a *Actor) syncer(jobs <-chan job) {
	for j := range jobs {
		if j.several {
			runtime.Gosched()
		}
		storeMs := a.cfg.Log.StoreTimestampMs() // before End: never newer than what is flushed
		to, began := a.cfg.Log.End(), time.Now()
		err := actors.Protect("sync the commit log", func() error { return syncRange(a.cfg.Log, j.from, to) })
		if err != nil && a.cfg.OnFailed != nil { // here: a system says so just once, and the actor may have stopped
			_ = actors.Protect("tell of a failed sync", func() error {
				a.cfg.OnFailed(messages.Failed{Role: string(actors.RoleFlusher), Cause: err})
				return nil
			})
		}
		done := synced{upTo: to, storeMs: storeMs, took: time.Since(began), err: err}
		if mb := a.cfg.Mailbox; mb != nil {
			mb.Lend(done)
		} else {
			a.self.Send(done)
		}
		if err == nil { // last: whoever waits for the sync is told first
			a.forget(to)
		}
	}
}

// letGoBytes is how much a sync must cover for its pages to be let go of before: of less the dispatcher reads some again, and faults.
const letGoBytes = 1 << 20

// syncRange makes [from, to) durable, oldest segment first. Only that is synced: zeros that are being written ahead are not waited for.
func syncRange(log *commitlog.Log, from, to messages.PhysicalOffset) error {
	return eachPart(log, from, to, func(s *segments.Segment, at, n int64) error {
		if n >= letGoBytes {
			_ = s.LetGo(at, n) // the sync is the same without
		}
		if err := s.SyncRange(at, n); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrSync, s.Path(), err)
		}
		return nil
	})
}

// eachPart calls fn for what [from, to) has of each segment, oldest first and held meanwhile: n bytes at at of it. It ends with the first
// error. Segments that are gone are left out.
func eachPart(log *commitlog.Log, from, to messages.PhysicalOffset, fn func(s *segments.Segment, at, n int64) error) error {
	view := log.View()
	for i := range view.Len() {
		s := view.At(i)
		if s.Start()+s.Size() <= int64(from) || s.Start() >= int64(to) || !s.Hold() {
			continue
		}
		at := max(int64(from)-s.Start(), 0)
		err := fn(s, at, min(int64(to)-s.Start(), s.Size())-at)
		s.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *Actor) synced(m synced) {
	a.running = false
	if m.err != nil {
		a.fail(m.err)
		return
	}
	a.Syncs.Add(m.took)
	if m.took > slowSync {
		a.cfg.Logger.Warn().Dur("took", m.took).Int64("up_to", int64(m.upTo)).Msg("syncing the commit log was slow")
	}
	a.flushed = max(a.flushed, m.upTo)
	a.FlushedTo.Store(int64(a.flushed))
	for _, bell := range a.cfg.Advanced {
		bell.Ring()
	}
	a.values.PhysicMs = max(a.values.PhysicMs, m.storeMs)
	a.answerWaiting()
	a.answerAsked()
	a.startSync()
	if a.again && !a.running {
		a.grown()
	}
}

// answerWaiting answers the puts whose bytes are durable.
func (a *Actor) answerWaiting() {
	done := 0
	for ; done < len(a.waiting); done++ {
		lead, end := parts(a.waiting[done])
		if end > a.flushed {
			break
		}
		lead.Fulfil()
	}
	a.answered = done
	n := copy(a.waiting, a.waiting[done:])
	clear(a.waiting[n:])
	a.waiting = a.waiting[:n]
}

// answerAsked answers who has asked for a flush, once the checkpoint is written. It never runs ahead of a sync: its values are those
// of what has been made durable.
func (a *Actor) answerAsked() {
	if a.saving || len(a.asked) == 0 {
		return
	}
	a.saves, a.asked = append(a.saves, a.asked...), a.asked[:0]
	if a.values == a.saved {
		a.answerSaves(nil)
		return
	}
	a.startSaving()
}

func (a *Actor) answerSaves(err error) {
	for _, q := range a.saves {
		q.Answer.Complete(a.flushed, err)
	}
	a.saves = a.saves[:0]
}

// flushTick is the asynchronous flush: when enough pages are dirty, or after the thorough interval.
func (a *Actor) flushTick() {
	a.armTick()
	if a.running || a.failed != nil {
		return
	}
	if now := time.Now(); now.Sub(a.thorough) >= a.cfg.ThoroughInterval {
		a.thorough = now
		a.startSaving()
		a.flush(0)
		return
	}
	a.flush(a.cfg.LeastPages)
}

// grown is a flush that the timer is not waited for.
func (a *Actor) grown() {
	switch {
	case a.failed != nil:
	case a.running:
		a.again = true
	case a.cfg.Urgent:
		a.flush(0)
	default:
		a.flush(a.cfg.LeastPages)
	}
}

// flush begins a sync when so many pages are dirty, 0 or less: when anything is (spec/store.md §4.2).
func (a *Actor) flush(leastPages int) {
	end := a.cfg.Log.End()
	if end > a.flushed && int64(end)/pageBytes-int64(a.flushed)/pageBytes >= int64(leastPages) {
		a.sync()
	}
}

func (a *Actor) flushNow(m messages.FlushNow) {
	if a.failed != nil {
		m.Refuse(a.failed)
		return
	}
	a.queued = append(a.queued, m)
	a.startSync()
}

// startSaving writes the checkpoint on a goroutine of its own: deadlines are kept while the disk is slow.
func (a *Actor) startSaving() {
	if a.saving || a.values == a.saved {
		return
	}
	a.saving = true
	self, v, disk, file := a.self, a.values, a.cfg.Disk, a.cfg.CheckpointPath
	go func() {
		err := actors.Protect("save", func() error { return checkpoint.Save(disk, file, v) })
		if err != nil {
			err = fmt.Errorf("write the checkpoint: %w", err)
		}
		self.Send(checkpointSaved{values: v, err: err})
	}()
}

func (a *Actor) checkpointSaved(m checkpointSaved) {
	a.saving = false
	if m.err != nil {
		a.cfg.Logger.Error().Err(m.err).Msg("writing the checkpoint failed; it is tried again")
	} else {
		a.saved = m.values
	}
	a.answerSaves(m.err)
	if !a.running {
		a.answerAsked()
	}
}
