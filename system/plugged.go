package system

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/extension"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/actors/reput"
	"github.com/actormq/actormq/messages"
)

// ErrNoExtension: there is no extension of that name.
var ErrNoExtension = errors.New("no such extension")

// extensionCredit is how many batches are read ahead for a dispatcher.
const extensionCredit = 2

// stopGrace is how long a close waits for a call that does not listen to its context.
const stopGrace = 5 * time.Second

// plugged is what is running of the extensions.
type plugged struct {
	hooks   []*hook
	bells   []*actors.Bell // one for each dispatcher
	readers map[string]actors.Peer
	running []plug // dispatchers, listeners, services
	hosting context.Context
	end     context.CancelFunc

	mu       sync.Mutex
	lives    map[string]*hosted // actors behind dispatchers, by name
	services map[string]*hosted // that are actors, by name
}

// plug is one that has an actor.
type plug struct {
	name   string
	peer   actors.Peer
	status func() extension.Status
}

// plugActor is an actor of package extension.
type plugActor interface {
	actor.Actor
	Status() extension.Status
}

type hook struct {
	*extension.Hook
	refuse bool
}

// Extensions tells what each extension does: hooks, dispatchers, listeners, services, in the order of the options.
func (s *Store) Extensions() []ExtensionStatus {
	list := make([]ExtensionStatus, 0, len(s.plugged.hooks)+len(s.plugged.running))
	for _, h := range s.plugged.hooks {
		list = append(list, h.Status())
	}
	for _, p := range s.plugged.running {
		list = append(list, p.status())
	}
	return list
}

// ResumeExtension has an extension that is parked go on, and one that is backing off at once.
func (s *Store) ResumeExtension(name string) error {
	for i, h := range s.plugged.hooks {
		if s.opt.PutHooks[i].Name == name {
			h.Resume()
			return nil
		}
	}
	for _, p := range s.plugged.running {
		if p.name == name {
			p.peer.Send(messages.ResumeExtension{})
			return nil
		}
	}
	return fmt.Errorf("%w: %s", ErrNoExtension, name)
}

// AwaitExtension returns when a dispatcher has handled everything that is in the log now; one that is parked never does. The
// context bounds the waiting.
func (s *Store) AwaitExtension(ctx context.Context, name string) error {
	reader, ok := s.plugged.readers[name]
	if !ok {
		return fmt.Errorf("%w: dispatcher %s", ErrNoExtension, name)
	}
	end, err := s.commit(ctx)
	if err != nil {
		return err
	}
	answer := messages.NewAnswer[messages.PhysicalOffset]()
	reader.Send(messages.AwaitDispatched{UpTo: end, Answer: answer})
	if _, err := answer.Wait(ctx); err != nil {
		return fmt.Errorf("dispatch to %s: %w", name, err)
	}
	return nil
}

// preparePlugged makes what others must know of the extensions before they are spawned.
func (s *Store) preparePlugged() {
	p := &s.plugged
	p.hosting, p.end = context.WithCancel(context.Background())
	p.readers, p.lives, p.services = map[string]actors.Peer{}, map[string]*hosted{}, map[string]*hosted{}
	s.cast.system.Extensions.Register(&storeExtension{s})
	for _, h := range s.opt.PutHooks {
		budget, average := h.Budget, h.Average
		def(&budget, 100*time.Millisecond)
		def(&average, 100*time.Microsecond)
		if h.Refuse {
			average = 0 // to leave it out would be worse than slow
		}
		p.hooks = append(p.hooks, &hook{refuse: h.Refuse, Hook: extension.NewHook(extension.HookConfig{
			Name: h.Name, Func: h.Func, Inline: h.Inline, Budget: budget, Average: average, Policy: h.Policy, Logger: s.opt.Logger,
		})})
	}
	for _, d := range s.opt.Dispatchers {
		bell := actors.NewBell(s.cast.address(readerRole(d.Name)), messages.Announce(messages.LogGrown{}))
		bell.Mute()
		p.bells = append(p.bells, bell)
	}
}

// callHooks hands a copy of a message, in the scratch of the envelope, to the hooks in order. What ends a transaction passes by:
// it was taken when it was prepared.
func (s *Store) callHooks(p *messages.PutMessage, m *messages.Message) (*messages.Message, messages.PutStatus, error) {
	if m.Topic == messages.TopicTransactionOp || messages.TransactionOf(m.SysFlag) == messages.SysFlagTransactionCommit {
		return m, messages.PutOK, nil
	}
	for _, h := range s.plugged.hooks {
		err := h.LeftOut()
		if err != nil && !h.refuse {
			continue // what most puts see of a hook that is broken
		}
		if err == nil {
			err = h.Call(m, &p.Scratch)
		}
		switch {
		case err == nil:
			m = &p.Scratch
		case !errors.Is(err, extension.ErrHook):
			return nil, messages.MessageIllegal, fmt.Errorf("%w: %w", ErrRefused, err)
		case h.refuse:
			return nil, messages.ServiceNotAvailable, err
		}
	}
	return m, messages.PutOK, nil
}

// bellsOf are the bells of the dispatchers that see what is durable, or of the others.
func (s *Store) bellsOf(durable bool) []*actors.Bell {
	var bells []*actors.Bell
	for i, d := range s.opt.Dispatchers {
		if d.Durable == durable {
			bells = append(bells, s.plugged.bells[i])
		}
	}
	return bells
}

func dispatcherRole(name string) actors.Role { return actors.Role("dispatcher/" + name) }
func readerRole(name string) actors.Role     { return actors.Role("dispatcher/" + name + "/reader") }

// listeners are the peers that the queue builder tells of arrivals.
func (s *Store) listeners() ([]reput.Listener, error) {
	var list []reput.Listener
	for _, l := range s.opt.Listeners {
		topics := slices.Clone(l.Topics)
		a := extension.NewListener(extension.ListenerConfig{
			Name: l.Name, Handle: l.Handle, Policy: l.Policy, Logger: s.opt.Logger, Queues: s.queues.Len,
			Wants: func(key messages.QueueKey) bool { return len(topics) == 0 || slices.Contains(topics, key.Topic) },
			Ends: func(fn func(messages.QueueKey, messages.QueueOffset)) {
				s.EachQueue(func(key messages.QueueKey, _, end messages.QueueOffset) { fn(key, end) })
			},
		})
		peer, err := s.spawnPlug(l.Name, actors.Role("listener/"+l.Name), a)
		if err != nil {
			return nil, err
		}
		list = append(list, reput.Listener{Peer: peer, Wants: a.Concerns})
	}
	return list, nil
}

// extended tells whether there are extensions that are to hear of each message at once.
func (s *Store) extended() bool { return len(s.opt.Listeners)+len(s.opt.Dispatchers) > 0 }

// plugIn starts dispatchers and services; what they may need is running.
func (s *Store) plugIn() error {
	s.cast.gate = new(mailbox.Gate)
	defer s.cast.gate.Open()
	for i, d := range s.opt.Dispatchers {
		if err := s.spawnExtension(d, s.plugged.bells[i]); err != nil {
			return fmt.Errorf("dispatcher %s: %w", d.Name, err)
		}
	}
	for _, v := range s.opt.Services {
		run := func(ctx context.Context) error { return v.Run(ctx, s) }
		if v.Actor != nil {
			run = s.hostedService(v.Name, v.Actor)
		}
		if v.Leader && s.opt.Role == messages.Slave {
			run = func(context.Context) error { return nil } // until the store is opened in another role
		}
		a := extension.NewService(extension.ServiceConfig{Name: v.Name, Run: run, Policy: v.Policy, Logger: s.opt.Logger})
		if _, err := s.spawnPlug(v.Name, actors.Role("service/"+v.Name+"/keeper"), a); err != nil {
			return err
		}
	}
	return nil
}

// spawnExtension starts a dispatcher with a reader of its own.
func (s *Store) spawnExtension(d Dispatcher, bell *actors.Bell) error {
	position, from, err := s.startOf(d)
	if err != nil {
		return err
	}
	limit := func() messages.PhysicalOffset { // what recovery has dispatched may be unconfirmed
		return min(messages.PhysicalOffset(s.dispatched.Load()), s.Confirmed())
	}
	if d.Durable {
		built := limit
		limit = func() messages.PhysicalOffset { return min(built(), s.FlushedTo()) }
	}
	handle := s.handlerOf(d)
	var a *extension.Dispatcher
	damaged := func(r *messages.DispatchRequest, err error) {
		s.opt.Logger.Error().Err(err).Str("extension", d.Name).Str("topic", r.Queue.Topic).Int64("offset", int64(r.PhysicalOffset)).
			Msg("a dispatcher can't be given a damaged message: it is left out")
		a.Damaged(messages.LogDamage{From: r.PhysicalOffset, To: r.End()})
	}
	cfg := extension.DispatcherConfig{
		Name: d.Name, Policy: d.Policy, Log: s.log, From: from, Limit: limit, Flusher: s.flushing(), Disk: s.opt.Disk,
		Path: s.positionPath(d.Name), Generation: position.Generation, Interval: d.SaveInterval, Logger: s.opt.Logger,
		Handle: func(ctx context.Context, b *messages.DispatchBatch) error {
			return handle(ctx, &Batch{Requests: b.Requests, UpTo: b.UpTo, store: s, damaged: damaged})
		},
	}
	if d.Load != nil {
		cfg.Path = ""
	}
	a = extension.NewDispatcher(cfg)
	if _, err := s.spawnPlug(d.Name, dispatcherRole(d.Name), a); err != nil {
		return err
	}
	reader, err := s.cast.spawnLast(readerRole(d.Name), reput.New(reput.Config{
		Log: s.log, From: from, Bell: bell, Limit: limit, Delay: s.delays.Millis, Role: readerRole(d.Name),
		Follower: s.opt.Role == messages.Slave,
		Builders: []reput.Builder{{Name: d.Name, Mailbox: s.cast.ports[dispatcherRole(d.Name)], Credit: extensionCredit}},
		OnDamage: a.Damaged, OnFailed: a.ReaderFailed, Logger: s.opt.Logger,
	}), s.blocking(readerRole(d.Name)))
	if err != nil {
		return err
	}
	s.plugged.readers[d.Name] = reader
	s.cast.last = append(s.cast.last, reader)
	bell.Heard()
	bell.Ring()
	return nil
}

// CheckPosition tells whether a position that was kept belongs to this log: nil, ErrPosition, or an error of the disk. It needs no
// confirmation by a replica group.
func (s *Store) CheckPosition(p Position) error { return p.Check(s.log) }

// startOf tells where a dispatcher goes on.
func (s *Store) startOf(d Dispatcher) (Position, messages.PhysicalOffset, error) {
	var p Position
	var found bool
	var err error
	if d.Load == nil {
		p, found, err = extension.LoadPosition(s.opt.Disk, s.positionPath(d.Name), s.log)
	} else if p, found, err = d.Load(s); err != nil {
		return p, 0, fmt.Errorf("load its position: %w", err)
	} else if found {
		err = p.Check(s.log)
	}
	if err != nil {
		s.opt.Logger.Error().Err(err).Str("extension", d.Name).Msg("a dispatcher's position can't be used: it begins anew")
	}
	switch {
	case found && err == nil:
		return p, messages.PhysicalOffset(p.Offset), nil
	case d.FromEnd && err == nil:
		return p, s.log.End(), nil
	}
	return p, max(s.log.Min(), 0), nil
}

func (s *Store) spawnPlug(name string, role actors.Role, a plugActor) (actors.Peer, error) {
	peer, err := s.cast.spawnLast(role, a, s.blocking(role))
	if err == nil {
		s.cast.last = append(s.cast.last, peer)
		s.plugged.running = append(s.plugged.running, plug{name: name, peer: peer, status: a.Status})
	}
	return peer, err
}

// unplug ends the extensions: their calls have their contexts cancelled, and positions are saved. What does not come back in
// time is left behind; its position stays where it was.
func (s *Store) unplug(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	answers := make([]*messages.Answer[struct{}], len(s.plugged.running))
	for i, p := range s.plugged.running {
		answers[i] = messages.NewAnswer[struct{}]()
		p.peer.Send(messages.StopExtension{Answer: answers[i]})
	}
	for i, p := range s.plugged.running {
		if _, err := answers[i].Wait(ctx); err != nil {
			s.opt.Logger.Error().Err(err).Str("extension", p.name).Msg("an extension does not come to its end: it is left behind")
		}
	}
	for _, h := range s.plugged.hooks {
		h.Close()
	}
	s.plugged.end()
	s.plugged.mu.Lock()
	defer s.plugged.mu.Unlock()
	for name, life := range s.plugged.lives {
		s.cast.system.Root.Stop(life.pid)
		select {
		case <-life.dead:
		case <-ctx.Done():
			s.opt.Logger.Error().Str("extension", name).Msg("the actor of a dispatcher does not stop: it is left behind")
		}
	}
}
