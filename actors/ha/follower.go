package ha

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/commitlog"
)

// FollowerConfig is what a slave's side is made of.
type FollowerConfig struct {
	Log    *commitlog.Log
	Writer *mailbox.Combining // takes AppendReplica
	// Appended are rung when the log has grown, behind the acknowledgement: nobody who follows the log goes before the master.
	Appended []*actors.Bell
	// Flusher, when set, is waited for before bytes are acknowledged (SYNC_FLUSH); nil: written is enough, as in RocketMQ.
	Flusher *mailbox.Combining
	Master  string // host:port of the master's replication port (haMasterAddress); empty: FollowMaster tells it

	// FullCopy makes an empty slave ask for the master's whole log instead of its last segment (§16, W12).
	FullCopy     bool
	Heartbeat    time.Duration // haSendHeartbeatInterval: a report at least so often
	Housekeeping time.Duration // haHousekeepingInterval: a master that is silent for so long is given up

	Group     *Group                        // nil: the protocol is RocketMQ's
	Confirmed func(messages.PhysicalOffset) // of a group: is told what the leader says is confirmed

	Logger zerolog.Logger
}

const (
	dialTimeout  = 5 * time.Second
	firstBackOff = 100 * time.Millisecond
	lastBackOff  = 10 * time.Second
	// groupBackOff is the longest pause in a group, whose record says who leads.
	groupBackOff = 500 * time.Millisecond
	// quietInterval is between log lines that say that there is still no connection.
	quietInterval = time.Minute
)

// Follower is the actor of a slave. It has one connection at a time.
type Follower struct {
	cfg  FollowerConfig
	self actors.Peer

	cancel  context.CancelFunc // of the connection
	timer   *time.Timer
	backOff time.Duration
	told    time.Time // when the log was told of a failure; zero: the last thing it was told is success
	stopped bool

	state atomic.Pointer[messages.Following]
}

// What the follower is told by its timer and its connection.
type (
	connectTick struct{}
	// answered: the master has sent something that fits.
	answered struct{}
	// progressed: bytes were appended.
	progressed struct{}
	linkEnded  struct{ err error }
)

// NewFollower returns the actor.
func NewFollower(cfg FollowerConfig) *Follower {
	f := &Follower{cfg: cfg, backOff: firstBackOff}
	f.state.Store(&messages.Following{Master: cfg.Master})
	return f
}

// Following tells how the slave gets on. Safe for any goroutine.
func (f *Follower) Following() messages.Following { return *f.state.Load() }

// Receive implements actor.Actor.
func (f *Follower) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		f.self = actors.NewPeer(ctx.ActorSystem().Root, ctx.Self())
		f.connect()
	case messages.FollowMaster:
		f.follow(m.Address)
	case connectTick:
		f.connect()
	case answered:
		f.told = time.Time{}
		f.state.Store(&messages.Following{Master: f.cfg.Master, Connected: true})
		f.cfg.Logger.Info().Str("master", f.cfg.Master).Int64("log_end", int64(f.cfg.Log.End())).Msg("following the master")
	case progressed:
		f.backOff = firstBackOff
	case linkEnded:
		f.ended(m.err)
	case *actor.Stopping:
		f.stopped = true
		if f.timer != nil {
			f.timer.Stop()
		}
		if f.cancel != nil {
			f.cancel()
		}
	}
}

// follow goes on with another master, or with the first one that is known.
func (f *Follower) follow(master string) {
	if master == f.cfg.Master || f.stopped {
		return
	}
	f.cfg.Master, f.backOff, f.told = master, firstBackOff, time.Time{}
	f.state.Store(&messages.Following{Master: master})
	if f.cancel != nil {
		f.cancel() // the end of the connection makes the next one
		return
	}
	f.connect()
}

func (f *Follower) connect() {
	if f.timer != nil {
		f.timer.Stop()
	}
	if f.stopped || f.cfg.Master == "" || f.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel = cancel
	l := &link{cfg: f.cfg, owner: f.self, append: messages.NewAppendReplica()}
	go func() {
		defer cancel()
		err := actors.Protect("follow the master", func() error { return l.run(ctx) })
		l.owner.Send(linkEnded{err: err})
	}()
}

// ended tries again after a pause, which grows while nothing is appended: a slave that can't append does not look like one
// that will (§16, W11).
func (f *Follower) ended(err error) {
	f.cancel = nil
	if f.stopped {
		return
	}
	f.state.Store(&messages.Following{Master: f.cfg.Master, Err: err})
	if errors.Is(err, messages.ErrFailed) || errors.Is(err, messages.ErrClosed) {
		f.cfg.Logger.Error().Err(err).Str("master", f.cfg.Master).Msg("the store takes nothing any more: the master is not followed")
		return
	}
	if now := time.Now(); f.cfg.Master != "" && now.Sub(f.told) >= quietInterval { // without a master it was ended on purpose
		f.told = now
		f.cfg.Logger.Warn().Err(err).Str("master", f.cfg.Master).Int64("log_end", int64(f.cfg.Log.End())).
			Msg("the master is not followed; it is tried again")
	}
	f.timer = f.self.After(f.backOff, connectTick{})
	f.backOff = min(2*f.backOff, lastBackOff)
	if f.cfg.Group != nil {
		f.backOff = min(f.backOff, groupBackOff)
	}
}
