package ha

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
)

// SyncConfig says what a slave takes over from its master beside the log (spec/store.md §12.7).
type SyncConfig struct {
	Steps    []SyncStep
	First    time.Duration // until the first round; default 3 s
	Interval time.Duration // between the end of a round and the next; default 10 s
	Logger   zerolog.Logger
}

// SyncStep is one thing that is taken over. Its error does not keep the others from being done.
type SyncStep struct {
	What string
	Do   func(context.Context) error
}

const (
	firstSync    = 3 * time.Second
	syncInterval = 10 * time.Second
	syncTimeout  = 10 * time.Second // of a round
)

// ConfigSync is the actor that does so, a round at a time, each on a goroutine of its own: what the steps keep between rounds
// belongs to the one that runs.
type ConfigSync struct {
	cfg     SyncConfig
	self    actors.Peer
	timer   *time.Timer
	cancel  context.CancelFunc           // of the round that runs; nil: none does
	asked   []*messages.Answer[struct{}] // who waits for the next round
	awaited []*messages.Answer[struct{}] // who waits for the one that runs
	stopped bool
	told    time.Time // when the log was told of a failure; zero: the last round went well
}

// SyncNow has a round begin now; a timer's that runs is cut short. The answer is the errors of its steps.
type SyncNow struct{ Answer *messages.Answer[struct{}] }

type (
	syncTick struct{}
	syncDone struct{ err error }
)

// NewConfigSync returns the actor.
func NewConfigSync(cfg SyncConfig) *ConfigSync {
	if cfg.First <= 0 {
		cfg.First = firstSync
	}
	if cfg.Interval <= 0 {
		cfg.Interval = syncInterval
	}
	return &ConfigSync{cfg: cfg}
}

// Receive implements actor.Actor.
func (c *ConfigSync) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		c.self = actors.NewPeer(ctx.ActorSystem().Root, ctx.Self())
		c.timer = c.self.After(c.cfg.First, syncTick{})
	case syncTick:
		c.round()
	case SyncNow:
		c.now(m.Answer)
	case syncDone:
		c.done(m.err)
	case *actor.Stopping:
		c.stop()
	}
}

func (c *ConfigSync) stop() {
	c.stopped = true
	c.timer.Stop()
	if c.cancel != nil {
		c.cancel()
	}
	for _, answer := range append(c.asked, c.awaited...) {
		answer.Refuse(messages.ErrClosed)
	}
}

func (c *ConfigSync) now(answer *messages.Answer[struct{}]) {
	if c.stopped {
		answer.Refuse(messages.ErrClosed)
		return
	}
	c.asked = append(c.asked, answer)
	if c.cancel != nil && len(c.awaited) == 0 {
		c.cancel()
	}
	c.timer.Stop()
	c.round()
}

// round begins one, unless one runs.
func (c *ConfigSync) round() {
	if c.stopped || c.cancel != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), syncTimeout)
	c.cancel = cancel
	c.asked, c.awaited = nil, c.asked
	steps, self := c.cfg.Steps, c.self
	go func() {
		defer cancel()
		var errs []error
		for _, s := range steps {
			if err := actors.Protect(s.What, func() error { return s.Do(ctx) }); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", s.What, err))
			}
		}
		self.Send(syncDone{err: errors.Join(errs...)})
	}()
}

func (c *ConfigSync) done(err error) {
	if c.stopped {
		return
	}
	for _, answer := range c.awaited {
		answer.Complete(struct{}{}, err)
	}
	c.cancel, c.awaited = nil, nil
	if len(c.asked) > 0 {
		c.round()
		return
	}
	c.tell(err)
	c.timer = c.self.After(c.cfg.Interval, syncTick{})
}

// tell tells the log of a failure once a minute.
func (c *ConfigSync) tell(err error) {
	now := time.Now()
	switch {
	case err == nil && !c.told.IsZero():
		c.told = time.Time{}
		c.cfg.Logger.Info().Msg("the master's configuration is taken over again")
	case err != nil && now.Sub(c.told) >= quietInterval:
		c.told = now
		c.cfg.Logger.Warn().Err(err).Msg("not all of the master's configuration could be taken over; it is tried again")
	}
}
