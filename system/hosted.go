package system

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/extensions"

	"github.com/actormq/actormq/messages"
)

var storeExtensionID = extensions.NextExtensionID()

type storeExtension struct{ store *Store }

// ExtensionID implements extensions.Extension.
func (*storeExtension) ExtensionID() extensions.ExtensionID { return storeExtensionID }

// StoreOf is the store whose actor system this is, nil for any other: an actor of the user's own finds it by its context's
// ActorSystem. It calls PutAsync there, never Put, as an actor must not wait.
func StoreOf(system *actor.ActorSystem) *Store {
	if e, ok := system.Extensions.Get(storeExtensionID).(*storeExtension); ok {
		return e.store
	}
	return nil
}

// hosted is one life of a user's actor.
type hosted struct {
	pid  *actor.PID
	dead chan struct{} // closed when it has stopped
	err  error         // why; valid after dead
}

// host spawns a user's actor; one that panics is stopped.
func (s *Store) host(name string, props *actor.Props) (*hosted, error) {
	h := &hosted{dead: make(chan struct{})}
	watch := func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
			_, last := envelope.Message.(*actor.Stopped)
			defer func() {
				if r := recover(); r != nil {
					h.err = fmt.Errorf("%w: %v\n%s", messages.ErrPanicked, r, debug.Stack())
					messages.Refuse(envelope.Message, h.err)
					defer panic(r)
				}
				if last {
					close(h.dead)
				}
			}()
			next(c, envelope)
		}
	}
	root := actor.NewRootContext(s.cast.system, nil).WithGuardian(
		actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective }))
	pid, err := root.SpawnNamed(props.Clone(actor.WithReceiverMiddleware(watch)), name)
	if err != nil {
		return nil, fmt.Errorf("spawn %s: %w", name, err)
	}
	h.pid = pid
	return h, nil
}

// stop asks the actor to stop and waits for it, ten seconds at most.
func (s *Store) stop(h *hosted) { _ = s.cast.system.Root.StopFuture(h.pid).Wait() }

// hostedService is the Run of a service that is an actor.
func (s *Store) hostedService(name string, props *actor.Props) func(context.Context) error {
	return func(ctx context.Context) error {
		h, err := s.host("store/service/"+name, props)
		if err != nil {
			return err
		}
		s.plugged.mu.Lock()
		s.plugged.services[name] = h
		s.plugged.mu.Unlock()
		if name == string(PartScheduler) && s.delivering.Load() {
			s.cast.system.Root.Send(h.pid, messages.DeliverDelayed{On: true, Answer: messages.NewAnswer[struct{}]()})
		}
		select {
		case <-h.dead:
			return h.err
		case <-ctx.Done():
			s.stop(h)
			return nil
		}
	}
}

// serving is the last life of a service that is an actor, nil before the first.
func (s *Store) serving(name string) *hosted {
	s.plugged.mu.Lock()
	defer s.plugged.mu.Unlock()
	return s.plugged.services[name]
}

// lifeOf is the actor behind a dispatcher, a new one when there is none any more; none begins once the lives are being ended.
func (s *Store) lifeOf(d Dispatcher) (*hosted, error) {
	s.plugged.mu.Lock()
	defer s.plugged.mu.Unlock()
	if s.plugged.hosting.Err() != nil {
		return nil, messages.ErrClosed
	}
	if life := s.plugged.lives[d.Name]; life != nil {
		select {
		case <-life.dead:
		default:
			return life, nil
		}
	}
	life, err := s.host("store/dispatcher/"+d.Name+"/actor", d.Actor)
	if err == nil {
		s.plugged.lives[d.Name] = life
	}
	return life, err
}

// handlerOf is the function that handles a dispatcher's batches.
func (s *Store) handlerOf(d Dispatcher) func(context.Context, *Batch) error {
	if d.Handle != nil {
		return d.Handle
	}
	return func(_ context.Context, b *Batch) error {
		life, err := s.lifeOf(d)
		if err != nil {
			return err
		}
		dispatch := &Dispatch{Batch: b, Answer: messages.NewAnswer[struct{}]()}
		s.cast.system.Root.Send(life.pid, dispatch)
		select {
		case <-dispatch.Answer.Done():
			_, err = dispatch.Answer.Wait(context.Background())
			return err
		case <-life.dead:
			return fmt.Errorf("the actor of dispatcher %s has stopped: %w", d.Name, errors.Join(life.err, messages.ErrClosed))
		case <-s.plugged.hosting.Done(): // an actor that blocks can't be ended
			return messages.ErrClosed
		}
	}
}
