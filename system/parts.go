package system

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/cleaner"
	"github.com/actormq/actormq/messages"
)

// Part is a part of the store whose place an actor of the user's own may take.
type Part string

// The parts that can be replaced, and what the actor in their place is told.
const (
	// PartIndex gets Dispatch, as a dispatcher does, and IndexQuery. Its dispatcher is called index-builder. There is no index of
	// RocketMQ's format then.
	PartIndex Part = "index-builder"
	// PartCleaner gets a CleanRound every CleanInterval, and decides what expires. What is decided is done by the store; while the
	// actor does not answer within five seconds, Retention decides. It is the service store/service/cleaner.
	PartCleaner Part = "cleaner"
	// PartScheduler gets messages.DeliverDelayed when it is to begin or to end, and after it has been started again, and
	// messages.MessagesArrived of the queues of SCHEDULE_TOPIC_XXXX, and delivers with Store.PutDueAsync. It is the service
	// store/service/delay-scheduler.
	PartScheduler Part = "delay-scheduler"
)

// Replacement puts an actor of the user's own in the place of a part. It is supervised, and shows among Store.Extensions, as a
// dispatcher or a service does.
type Replacement struct {
	Part   Part
	Actor  *actor.Props
	Load   func(*Store) (Position, bool, error) // of PartIndex, as Dispatcher.Load
	Policy ExtensionPolicy
}

// IndexQuery asks an index builder for messages of a topic by a key. It calls Found once.
type IndexQuery struct {
	messages.QueryMessage
	Answer *messages.Answer[[]messages.PhysicalOffset]
}

// Found answers with the places of the messages, the newest first. The store leaves out those that do not have the key.
func (q *IndexQuery) Found(places []messages.PhysicalOffset, err error) {
	q.Answer.Complete(places, err)
}

// Refuse answers with an error.
func (q *IndexQuery) Refuse(cause error) { q.Found(nil, cause) }

// CleanRound asks a cleaner how many of the oldest segments go. It calls Delete once.
type CleanRound struct {
	cleaner.Situation
	Retention messages.Retention
	Answer    *messages.Answer[int]
}

// Delete answers: so many of Segments, the oldest first. Those that are not dispatched and durable stay.
func (r *CleanRound) Delete(oldest int) { r.Answer.Complete(oldest, nil) }

// Refuse answers with an error: the round goes by Retention.
func (r *CleanRound) Refuse(cause error) { r.Answer.Complete(0, cause) }

// validate returns all problems of a replacement.
func (r Replacement) validate() error {
	var bad []error
	if !slices.Contains([]Part{PartIndex, PartCleaner, PartScheduler}, r.Part) {
		bad = append(bad, fmt.Errorf("the part %q can't be replaced", r.Part))
	}
	if r.Load != nil && r.Part != PartIndex {
		bad = append(bad, fmt.Errorf("the part %q has no position to be loaded", r.Part))
	}
	return errors.Join(bad...)
}

// replaced turns replacements into dispatchers and services.
func (e Extensions) replaced() Extensions {
	for _, r := range e.Replacements {
		if r.Part == PartIndex {
			e.Dispatchers = append(slices.Clip(e.Dispatchers), Dispatcher{Name: string(r.Part), Actor: r.Actor, Load: r.Load, Policy: r.Policy})
		} else {
			e.Services = append(slices.Clip(e.Services), Service{Name: string(r.Part), Actor: r.Actor, Policy: r.Policy})
		}
	}
	return e
}

// replaces tells whether somebody else takes the place of a part.
func (e Extensions) replaces(part Part) bool {
	return slices.ContainsFunc(e.Replacements, func(r Replacement) bool { return r.Part == part })
}

// ask asks an actor of the user's, whose life may end before it answers.
func ask[T any](ctx context.Context, s *Store, life *hosted, m any, answer *messages.Answer[T]) (T, error) {
	s.cast.system.Root.Send(life.pid, m)
	select {
	case <-answer.Done():
	case <-life.dead:
		var none T
		return none, fmt.Errorf("the actor has stopped: %w", errors.Join(life.err, messages.ErrClosed))
	case <-s.closed:
	case <-ctx.Done():
	}
	return await(ctx, s, answer)
}

// queryIndex asks the index builder in the place of the store's own.
func (s *Store) queryIndex(ctx context.Context, q messages.QueryMessage) ([]messages.PhysicalOffset, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	for _, d := range s.opt.Dispatchers {
		if d.Name == string(PartIndex) {
			life, err := s.lifeOf(d)
			if err != nil {
				return nil, err
			}
			query := &IndexQuery{QueryMessage: q, Answer: messages.NewAnswer[[]messages.PhysicalOffset]()}
			return ask(ctx, s, life, query, query.Answer)
		}
	}
	return nil, nil
}

// cleanPatience bounds how long a round waits for somebody else's plan.
const cleanPatience = 5 * time.Second

// planCleaning asks the cleaner in the place of the store's own.
func (s *Store) planCleaning(ctx context.Context, now cleaner.Situation) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, cleanPatience)
	defer cancel()
	life := s.serving(string(PartCleaner))
	if life == nil {
		return 0, fmt.Errorf("%w: %s does not run", ErrNoExtension, PartCleaner)
	}
	round := &CleanRound{Situation: now, Retention: s.Retention(), Answer: messages.NewAnswer[int]()}
	return ask(ctx, s, life, round, round.Answer)
}

// PutDueAsync is PutAsync for a delayed message whose time has come: it is stored as it is, whatever its DELAY property says, and
// passes no hook. It waits for neither flush nor replicas, as in RocketMQ: a scheduler sees to it that its offsets are not saved before
// the message is durable. For an actor in the place of PartScheduler, and for extensions that put what has been put before.
func (s *Store) PutDueAsync(m *messages.Message, deadline time.Time, done func(messages.PutResult, error)) {
	s.putAsync(m, s.encodeAsItIs, false, deadline, done)
}

// servicePeer is where a service that is an actor is reached.
func (s *Store) servicePeer(part Part) actors.Peer {
	return actors.NewPeer(s.cast.system.Root, actor.NewPID(s.cast.system.Address(), "store/service/"+string(part)))
}
