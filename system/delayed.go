package system

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/delay"
	"github.com/actormq/actormq/actors/reput"
	"github.com/actormq/actormq/messages"
)

// DeliverDelayed starts the delivery of delayed messages, or ends it; Open starts it on a master, and a slave refuses it with
// ErrSlave. Asking for what is already so does nothing. When it ends, nothing is in flight and the offsets are saved; the error says why they
// are not, and then some messages may be delivered twice. The context bounds the waiting.
func (s *Store) DeliverDelayed(ctx context.Context, on bool) error {
	if on && s.opt.Role == messages.Slave {
		return fmt.Errorf("delivery of delayed messages: %w", ErrSlave)
	}
	if err := s.readable(); err != nil && (on || errors.Is(err, ErrStopped)) {
		return fmt.Errorf("delivery of delayed messages: %w", err)
	}
	if on && s.readOnly != nil {
		return fmt.Errorf("delivery of delayed messages: %w", s.readOnly)
	}
	s.delivering.Store(on)
	if s.opt.replaces(PartScheduler) {
		return s.askScheduler(ctx, on)
	}
	answer := messages.NewAnswer[struct{}]()
	s.scheduler.Send(messages.DeliverDelayed{On: on, Answer: answer})
	if _, err := await(ctx, s, answer); err != nil {
		return fmt.Errorf("delivery of delayed messages: %w", err)
	}
	return nil
}

// DelayOffsets tells for each delay level, from 1, up to which offset of its queue in SCHEDULE_TOPIC_XXXX messages have been
// delivered; empty when delivery has never been started.
func (s *Store) DelayOffsets() map[int]messages.QueueOffset { return s.delayed.Offsets() }

func (s *Store) newScheduler() *delay.Scheduler {
	return delay.New(delay.Config{
		Levels: s.delays, Table: s.queues, Log: s.log, Put: s.PutDueAsync, Flusher: s.flushing(), Disk: s.files.Disk,
		Path: path.Join(s.ConfigDir(), "delayOffset.json"), Interval: s.opt.DelayOffsetInterval, Logger: s.opt.Logger,
	})
}

func (s *Store) spawnScheduler() (err error) {
	if s.opt.replaces(PartScheduler) {
		return nil
	}
	s.scheduler, err = s.cast.spawn(actors.RoleScheduler, s.delayed, s.blocking(actors.RoleScheduler))
	return err
}

// askScheduler tells the scheduler in the place of the store's own.
func (s *Store) askScheduler(ctx context.Context, on bool) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	life := s.serving(string(PartScheduler))
	if life == nil {
		return nil // it is told when it is started
	}
	answer := messages.NewAnswer[struct{}]()
	if _, err := ask(ctx, s, life, messages.DeliverDelayed{On: on, Answer: answer}, answer); err != nil {
		return fmt.Errorf("delivery of delayed messages: %w", err)
	}
	return nil
}

// dueListener is who is told of arrivals in the schedule topic.
func (s *Store) dueListener() reput.Listener {
	if s.opt.replaces(PartScheduler) {
		return reput.Listener{Peer: s.servicePeer(PartScheduler), Wants: func(key messages.QueueKey) bool { return key.Topic == messages.TopicSchedule }}
	}
	return reput.Listener{Peer: s.cast.address(actors.RoleScheduler), Wants: s.delayed.Wants}
}
