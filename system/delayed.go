package system

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/delay"
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
	answer := messages.NewAnswer[struct{}]()
	s.scheduler.Send(messages.DeliverDelayed{On: on, Answer: answer})
	select {
	case <-answer.Done():
	case <-s.closed:
		return ErrStopped
	case <-ctx.Done():
	}
	if _, err := answer.Wait(ctx); err != nil {
		return fmt.Errorf("delivery of delayed messages: %w", err)
	}
	return nil
}

// DelayOffsets tells for each delay level, from 1, up to which offset of its queue in SCHEDULE_TOPIC_XXXX messages have been
// delivered; empty when delivery has never been started.
func (s *Store) DelayOffsets() map[int]messages.QueueOffset { return s.delayed.Offsets() }

func (s *Store) newScheduler() *delay.Scheduler {
	return delay.New(delay.Config{
		Levels: s.delays, Table: s.queues, Log: s.log, Put: s.putDue, Flusher: s.flushing(), Disk: s.opt.Disk,
		Path: path.Join(s.ConfigDir(), "delayOffset.json"), Interval: s.opt.DelayOffsetInterval, Logger: s.opt.Logger,
	})
}

func (s *Store) spawnScheduler() (err error) {
	s.scheduler, err = s.cast.spawn(actors.RoleScheduler, s.delayed, s.blocking(actors.RoleScheduler))
	return err
}

// putDue stores a message whose delay has passed. It does not wait for flush and replicas, as in RocketMQ: the scheduler
// sees to it that its offsets are not saved before the message is durable.
func (s *Store) putDue(m *messages.Message, deadline time.Time, done func(messages.PutResult, error)) {
	s.putAsync(m, s.encodeAsItIs, false, deadline, done)
}
