package extension

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
)

// KindService is the kind of a service's status.
const KindService = "service"

// ServiceConfig is what a service is made of.
type ServiceConfig struct {
	Name   string
	Run    func(context.Context) error
	Policy Policy
	Logger zerolog.Logger
}

// Service runs the user's function until it returns nil, and again after each failure.
type Service struct {
	cfg ServiceConfig
	runner
	over bool
}

// NewService returns the actor; spawn it with a mailbox of package mailbox whose inline budget is 0.
func NewService(cfg ServiceConfig) *Service {
	s := &Service{cfg: cfg, runner: newRunner(KindService, cfg.Name, cfg.Policy, cfg.Logger)}
	s.patient = true
	return s
}

// Receive implements actor.Actor.
func (s *Service) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case callDone:
		s.ended(m)
	case retryTick:
		s.retried()
		s.next()
	case messages.ResumeExtension:
		s.resume()
		s.next()
	case messages.StopExtension:
		s.stop()
		s.waiting = append(s.waiting, m)
		s.answer()
	case *actor.Started:
		s.self = actors.NewPeer(ctx.ActorSystem().Root, ctx.Self())
		s.next()
	case *actor.Stopping:
		s.stopping()
	}
}

func (s *Service) next() {
	if s.ready() && !s.over {
		s.run(s.cfg.Run)
	}
}

func (s *Service) ended(m callDone) {
	if s.done(m, 1) {
		s.over = true
		s.board.change(func(st *Status) { st.State = Stopped })
	}
	s.answer()
}

// Status tells what the service does; any goroutine may ask.
func (s *Service) Status() Status { return *s.board.now.Load() }
