package cleaner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/vfs"
)

// Config is what a cleaner is made of. Peers may be zero: that part is switched off.
type Config struct {
	Disk    vfs.Disk
	Log     *commitlog.Log
	Queues  *consumequeue.Table
	Folders []DiskUse // whose file systems are looked at: What, Dir and Log
	Policy  Policy

	BallastPath  string
	BallastBytes int64 // 0: no ballast

	// Safe is the physical offset below which everything is dispatched and durable, and copied to whom it must be.
	Safe func() messages.PhysicalOffset

	// Readers tells how far the slowest consumer group that was seen within a time has read each queue; queues that none has
	// read, or all have read to their ends, need not be there. It is false while nobody can tell: then nothing counts as
	// read. One round at a time calls it.
	Readers func(seen time.Duration) (map[messages.QueueKey]messages.Reader, bool)

	// Since finds the first message of a queue that is not older than a time in ms, the queue's end without one.
	Since func(ctx context.Context, q *consumequeue.Queue, ms int64) (messages.QueueOffset, error)
	// Expire notes, durably, in front of which places the messages of topics have expired.
	Expire func(ctx context.Context, below map[string]messages.PhysicalOffset) error

	// Keep notes, durably, where queues go on whose records are all in front of a place, and whose units are not durable.
	Keep func(ctx context.Context, below messages.PhysicalOffset) error

	QueueBuilder, Indexer, Allocator actors.Peer

	FirstRound       time.Duration // 0: 60 s
	Interval         time.Duration // cleanResourceInterval
	FilePause        time.Duration // deleteCommitLogFilesInterval
	QueuePause       time.Duration // deleteConsumeQueueFilesInterval
	DestroyForcibly  time.Duration // destroyMapedFileIntervalForcibly
	RedeleteInterval time.Duration // redeleteHangedFileInterval

	// Decide, when set, says how many of the oldest segments go, in the place of Policy; on an error Policy decides. It runs on a
	// round's goroutine.
	Decide func(context.Context, Situation) (int, error)
	// OnFull is told why puts must be refused, and nil when that is over; it must not block.
	OnFull func(error)
	Now    func() time.Time // nil: time.Now
	Logger zerolog.Logger
}

const (
	defaultFirstRound = time.Minute
	checkInterval     = time.Second
	reminderInterval  = time.Minute // between lines that say that nothing has changed
	askedRounds       = 20          // rounds that a CleanNow lasts (spec/store.md §9.2)
)

// Actor is the cleaner.
type Actor struct {
	cfg  Config
	self actors.Peer

	ctx    context.Context //nolint:containedctx // of the goroutines, ended by the stop
	cancel context.CancelFunc
	jobs   sync.WaitGroup

	round    *round // what the rounds share; the running one has it
	cleaning bool
	again    bool // a round is wanted as soon as this one ends
	checking bool
	recheck  bool
	timers   [2]*time.Timer

	ballast      *ballast
	ballastFails bool

	disks    []DiskUse                        // as they were last seen
	full     map[string]error                 // file systems that are too full, by folder
	problems map[string]messages.SpaceProblem // by part
	cause    error                            // what OnFull was told last
	said     time.Time                        // when the log was told last
	asked    int                              // rounds that a CleanNow still lasts
	stalled  bool                             // what the last round was to delete it has not
	due      bool                             // a second has gone by: a round may begin before its time

	status atomic.Pointer[Status]
}

// Status is what a cleaner shows of itself.
type Status struct {
	Disks   []DiskUse
	Cleaned Cleaned
	Ballast bool // the ballast file is there
}

type (
	cleanTick struct{}
	checkTick struct{}
	// leftTick: the last reader of a deleted segment has gone.
	leftTick struct{}
	// cleaned ends a round.
	cleaned struct{ err error }
	// checked ends a look at the disk.
	checked struct {
		disks   []DiskUse
		ballast string
		err     error
	}
)

// New returns the actor; spawn it with a mailbox whose inline budget is 0.
func New(cfg Config) *Actor {
	if cfg.FirstRound <= 0 {
		cfg.FirstRound = defaultFirstRound
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.OnFull == nil {
		cfg.OnFull = func(error) {}
	}
	a := &Actor{
		cfg: cfg, full: map[string]error{}, problems: map[string]messages.SpaceProblem{},
		ballast: newBallast(cfg.Disk, cfg.BallastPath, cfg.BallastBytes),
	}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	a.round = &round{cfg: cfg, raised: cfg.Log.Min(), min: cfg.Log.Min()}
	a.status.Store(&Status{})
	return a
}

// Status returns what the last look and the last round have found. Safe for any goroutine.
func (a *Actor) Status() Status { return *a.status.Load() }

// Reserved is how much room must be left for the ballast while it is not there, in bytes. Safe for any goroutine.
func (a *Actor) Reserved() int64 { return a.ballast.reserved.Load() }

// Receive implements actor.Actor.
func (a *Actor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		a.self = actors.NewPeer(ctx.ActorSystem().Root, ctx.Self())
		a.round.told = func() { a.self.Send(leftTick{}) }
		a.timers[0] = a.self.After(a.cfg.FirstRound, cleanTick{})
		a.check()
	case cleanTick:
		a.timers[0] = a.self.After(a.cfg.Interval, cleanTick{})
		a.clean()
	case checkTick:
		a.due = true
		a.check()
	case leftTick:
		if !a.cleaning {
			a.start(true)
		}
	case messages.SpaceProblem:
		a.problem(m)
	case messages.Retention:
		a.cfg.Policy = PolicyOf(m, a.cfg.Policy.SegmentBytes)
		a.check()
	case messages.CleanNow:
		a.asked = askedRounds
		a.clean()
	case checked:
		a.checked(m)
	case cleaned:
		a.cleaned(m)
	case *actor.Stopping:
		a.stopping()
	}
}

// problem notes that a part has no room, or has it again.
func (a *Actor) problem(m messages.SpaceProblem) {
	if m.Err == nil {
		delete(a.problems, m.Part)
		a.judge()
		return
	}
	a.problems[m.Part] = m
	a.judge()
	a.check()
	a.clean()
}

// check looks at the disks, on a goroutine of its own: a hanging disk must not hold up the actor.
func (a *Actor) check() {
	if a.checking {
		a.recheck = true
		return
	}
	a.checking, a.recheck = true, false
	if t := a.timers[1]; t != nil {
		t.Stop()
	}
	a.timers[1] = a.self.After(checkInterval, checkTick{})
	pressed := a.pressed()
	a.jobs.Go(func() {
		var m checked
		m.err = actors.Protect("look at the disk", func() (err error) {
			m.disks = look(a.cfg.Disk, a.cfg.Folders)
			m.ballast, err = a.ballast.keep(pressed)
			return err
		})
		a.self.Send(m)
	})
}

// look reads how full the file systems of the folders are. One that is not there yet is as full as the one above it.
func look(disk vfs.Disk, folders []DiskUse) []DiskUse {
	disks := make([]DiskUse, len(folders))
	for i, d := range folders {
		for dir := d.Dir; ; dir = path.Dir(dir) {
			d.Usage, d.Err = disk.Usage(dir)
			if !errors.Is(d.Err, fs.ErrNotExist) || dir == path.Dir(dir) {
				break
			}
		}
		disks[i] = d
	}
	return disks
}

// pressed tells whether a part of the store has no room for what it must write; the allocator's segments are not meant.
func (a *Actor) pressed() bool {
	for _, p := range a.problems {
		if p.Refuse && p.Part != PartLog {
			return true
		}
	}
	return false
}

// PartLog is the Part of the commit log's problems: it needs whole segments, for which no ballast is given up.
const PartLog = "commit log"

func (a *Actor) checked(m checked) {
	a.checking = false
	if m.disks != nil { // else the look panicked
		a.disks = m.disks
	}
	a.tellBallast(m)
	a.judge()
	a.relieve()
	a.show()
	if a.recheck {
		a.check()
	}
}

// relieve begins a round while a file system is too full: in the time between rounds a producer writes more than a round deletes, and
// what could not go a second ago, as it was not durable, can now. What stalls waits for its time, and so does a cleaner of the user's.
func (a *Actor) relieve() {
	if a.due && !a.stalled && a.cfg.Decide == nil && a.cfg.Policy.tight(a.disks) {
		a.clean()
	}
	a.due = false
}

// tellBallast logs what was done to the ballast; that it can't be done, once while that lasts.
func (a *Actor) tellBallast(m checked) {
	log := a.cfg.Logger.With().Str("file", a.cfg.BallastPath).Int64("bytes", a.cfg.BallastBytes).Logger()
	switch {
	case m.err != nil && !a.ballastFails:
		log.Error().Err(m.err).Msg("keeping room for a full disk failed; it is tried again")
	case m.err == nil && m.ballast != "":
		log.Info().Str("ballast", m.ballast).Msg("the room that is kept for a full disk has changed")
	}
	a.ballastFails = m.err != nil
}

// judge decides whether puts are refused, and says so when that changes.
func (a *Actor) judge() {
	cause := a.cfg.Policy.Full(a.disks, a.full)
	for _, p := range a.problems {
		if p.Refuse {
			cause = errors.Join(cause, fmt.Errorf("%w: no room for the %s%s: %w", messages.ErrDiskFull, p.Part,
				a.cfg.Policy.unexplained(a.disks, a.Reserved()), p.Err))
		}
	}
	was := a.cause
	a.cause = cause
	switch now := a.cfg.Now(); {
	case cause == nil && was == nil:
		return
	case cause == nil:
		a.cfg.Logger.Info().Msg("the disk is no longer full: puts are taken again")
	case was == nil || now.Sub(a.said) >= reminderInterval:
		a.said = now
		a.cfg.Logger.Error().Err(cause).Msg("the disk is full: puts are refused, reads go on")
	}
	a.cfg.OnFull(cause)
}

// clean begins a round, on a goroutine of its own, or has one begin when the running one ends.
func (a *Actor) clean() {
	if a.cleaning {
		a.again = true
		return
	}
	a.again = false
	a.start(false)
	a.asked = max(0, a.asked-1)
}

// start begins a round; sweep only deletes files that are waiting for that.
func (a *Actor) start(sweep bool) {
	a.cleaning = true
	r := a.round
	r.sweep, r.policy = sweep, a.cfg.Policy
	r.plan = Situation{Now: a.cfg.Now(), Safe: a.cfg.Safe(), Asked: a.asked > 0, Short: len(a.problems) > 0, Reserved: a.Reserved()}
	a.jobs.Go(func() {
		before := r.removed
		err := actors.Protect("clean", func() error { return r.run(a.ctx) })
		if r.removed > before {
			a.cfg.Allocator.Send(messages.SpaceFreed{})
		}
		a.self.Send(cleaned{err: err})
	})
}

func (a *Actor) cleaned(m cleaned) {
	a.cleaning = false
	if m.err != nil {
		a.cfg.Logger.Error().Err(m.err).Msg("cleaning failed; it is tried again")
	}
	a.stalled = a.round.stalled
	a.show()
	a.check()
	switch {
	case a.again && !a.stalled: // it would stall again, and have a part that has no room say so once more
		a.clean()
	case a.round.mayRemove(): // its last reader has gone when the round had looked already
		a.start(true)
	}
}

func (a *Actor) show() {
	s := &Status{Disks: a.disks, Ballast: a.cfg.BallastBytes > 0 && a.Reserved() == 0}
	s.Cleaned = a.status.Load().Cleaned
	if !a.cleaning {
		s.Cleaned = a.round.done
	}
	a.status.Store(s)
}

// stopping ends the goroutines and waits for them; each is at most one call to the disk away from its end.
func (a *Actor) stopping() {
	for _, t := range a.timers {
		if t != nil {
			t.Stop()
		}
	}
	a.cancel()
	a.jobs.Wait()
	for _, l := range a.round.leaving { // nobody reads a store that is closed for long
		if err := removeDurably(a.cfg.Disk, l.path); err != nil {
			a.cfg.Logger.Error().Err(err).Msg("deleting a commit-log file failed: it is back at the next start")
			break
		}
	}
}
