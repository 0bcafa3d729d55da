package committer

import (
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/segments/vfs/offheap"
)

// Config is what a committer is made of. Peers may be zero.
type Config struct {
	Log *commitlog.Log

	Interval         time.Duration // commitIntervalCommitLog: the longest that dirty pages wait for company
	LeastPages       int           // commitCommitLogLeastPages; 0 or less: whatever there is
	ThoroughInterval time.Duration // commitCommitLogThoroughInterval: so long after the last commit, regardless of pages

	Bell    *actors.Bell   // rung by the writer
	Grown   []*actors.Bell // rung when more has become readable
	Flusher actors.Peer    // handed messages.FlushNow once everything is committed
	Pool    actors.Peer    // given actors.BufferFree
	Space   actors.Peer    // told messages.SpaceProblem

	OnFailed func(messages.Failed) // told once; must not block
	Logger   zerolog.Logger
}

const (
	pageBytes  = 4096
	slowCommit = 500 * time.Millisecond
	retryPause = time.Second // after a commit that found no room
	part       = "committer" // as it is called in messages.SpaceProblem
)

// ErrCommit: writing to the log's files failed; nothing is acknowledged any more.
var ErrCommit = errors.New("committing to the commit log failed")

// Actor is the committer.
type Actor struct {
	cfg    Config
	self   actors.Peer
	last   time.Time   // of the last commit
	tick   *time.Timer // nil: not set
	short  bool        // the last commit found no room
	failed error
}

// New returns the actor; spawn it with a mailbox whose inline budget is 0.
func New(cfg Config) *Actor { return &Actor{cfg: cfg} }

// commitTick is the committer's own timer.
type commitTick struct{}

// Receive implements actor.Actor.
func (a *Actor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *mailbox.Batch:
		for next := m.Next(); next != nil; next = m.Next() {
			m.Handled() // LogGrown is all that comes by a link
		}
		a.grown()
	case messages.LogGrown:
		a.grown()
	case commitTick:
		if a.tick = nil; a.short {
			_ = a.commit()
			return
		}
		a.due()
	case messages.FlushNow:
		if err := a.commit(); err != nil {
			m.Refuse(err)
			return
		}
		a.cfg.Flusher.Send(m)
	case messages.CommitNow:
		if err := a.commit(); err != nil {
			m.Refuse(err)
			return
		}
		m.Answer.Complete(a.cfg.Log.End(), nil)
	case *actor.Started:
		a.self = actors.NewPeer(ctx.ActorSystem().Root, ctx.Self())
	case *actor.Stopping: // the writer has stopped: what it has appended is saved whatever has failed elsewhere
		a.cfg.Pool = actors.Peer{} // it has stopped too
		_ = a.commit()
		a.arm(0)
		if a.failed == nil {
			a.failed = messages.ErrClosed
		}
	}
}

func (a *Actor) grown() {
	a.cfg.Bell.Attend()
	a.due()
}

// due commits what is worth it, and sees to it that the rest has its turn.
func (a *Actor) due() {
	dirty := a.dirtyPages()
	switch since := time.Since(a.last); {
	case dirty < 0 || a.failed != nil || a.short:
	case dirty < max(a.cfg.LeastPages, 0) && since < a.cfg.ThoroughInterval:
		if a.tick == nil {
			a.arm(max(min(a.cfg.Interval, a.cfg.ThoroughInterval-since), time.Millisecond))
		}
	default:
		_ = a.commit()
	}
}

// dirtyPages is how many pages lie between what is appended and what is committed, -1: nothing does (spec/store.md §4.2).
func (a *Actor) dirtyPages() int {
	end, written := a.cfg.Log.End(), a.cfg.Log.Written()
	if written <= end {
		return -1
	}
	return int(written/pageBytes - end/pageBytes)
}

// arm sets the timer; 0 stops it.
func (a *Actor) arm(d time.Duration) {
	if a.tick != nil {
		a.tick.Stop()
		a.tick = nil
	}
	if d > 0 {
		a.tick = a.self.After(d, commitTick{})
	}
}

// commit makes everything readable that is appended, or says why not.
func (a *Actor) commit() error {
	if a.failed != nil {
		return a.failed
	}
	began, before := time.Now(), a.cfg.Log.End()
	a.last = began
	var free []*offheap.Memory
	err := actors.Protect("commit", func() (err error) {
		free, err = a.cfg.Log.Commit()
		return err
	})
	for _, m := range free {
		a.giveBack(m)
	}
	if a.cfg.Log.End() > before {
		for _, bell := range a.cfg.Grown {
			bell.Ring()
		}
	}
	if took := time.Since(began); took > slowCommit {
		a.cfg.Logger.Warn().Dur("took", took).Int64("bytes", int64(a.cfg.Log.End()-before)).Msg("committing was slow")
	}
	a.settle(err)
	return err
}

// giveBack gives a write buffer back to the pool, or to the system once there is nobody any more who makes segments.
func (a *Actor) giveBack(m *offheap.Memory) {
	free := actors.BufferFree{Buffer: m}
	if a.cfg.Pool.PID() == nil {
		free.Refuse(messages.ErrClosed)
		return
	}
	a.cfg.Pool.Send(free)
}

// settle decides what becomes of a commit that has ended.
func (a *Actor) settle(err error) {
	switch {
	case err == nil:
		a.arm(0)
		if a.short {
			a.short = false
			a.cfg.Space.Send(messages.SpaceProblem{Part: part})
		}
	case errors.Is(err, vfs.ErrNoSpace):
		a.short = true
		a.cfg.Space.Send(messages.SpaceProblem{Part: part, Err: err, Refuse: true})
		a.arm(retryPause)
	default:
		a.fail(err)
	}
}

// fail ends committing for good.
func (a *Actor) fail(cause error) {
	if a.failed != nil {
		return
	}
	a.arm(0)
	a.failed = fmt.Errorf("%w: %w: %w", messages.ErrFailed, ErrCommit, cause)
	lost := a.cfg.Log.Written() - a.cfg.Log.End()
	a.cfg.Logger.Error().Err(cause).Str("role", string(actors.RoleCommitter)).Int64("not_in_the_files", int64(lost)).
		Msg("the committer has failed: nothing more is acknowledged")
	if a.cfg.OnFailed != nil {
		a.cfg.OnFailed(messages.Failed{Role: string(actors.RoleCommitter), Cause: a.failed})
	}
}
