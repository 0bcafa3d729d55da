package delay

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/vfs"
)

// Config is what a scheduler is made of.
type Config struct {
	Levels messages.DelayLevels
	Table  *consumequeue.Table
	Log    *commitlog.Log

	// Put stores a message as it is, whatever its DELAY property says, and calls done once, on any goroutine. It must not
	// block; the message is the scheduler's again when it returns.
	Put func(m *messages.Message, deadline time.Time, done func(messages.PutResult, error))
	// Flusher makes durable what was delivered before the offsets are saved: messages.FlushNow.
	Flusher actors.Peer

	Disk     vfs.Disk
	Path     string        // of delayOffset.json
	Interval time.Duration // flushDelayOffsetInterval; 0: 10 s

	MaxBatch      int // messages of a level in flight; 0: 256
	MaxBatchBytes int // their bytes, beyond the first; 0: 1 MiB

	Now    func() time.Time // the wall clock; nil: time.Now
	Logger zerolog.Logger
}

const (
	defaultInterval      = 10 * time.Second
	defaultMaxBatch      = 256
	defaultMaxBatchBytes = 1 << 20
)

// Scheduler is the actor that keeps the levels and their offsets.
type Scheduler struct {
	cfg      Config
	self     actors.Peer
	advanced *actors.Bell

	// levels by queue id. The map is published and never changes; levels stay once they have begun.
	levels atomic.Pointer[map[int32]*level]

	on      bool
	halting int // levels that have still to report
	turning *messages.DeliverDelayed
	waiting []messages.DeliverDelayed // behind the one that is under way

	file   metadata.DelayOffsets // as it was loaded: what no level here owns is kept
	dirty  bool                  // offsets have moved since the last save began
	saving bool
	tick   *time.Timer
	whole  func(error) // of the save under way: who waits for it
	result chan error  // of the goroutine that saves

	stopped context.Context // ends with the actor
	stop    context.CancelFunc
}

type (
	advanced struct{} // a level's offset has moved
	saveTick struct{}
	saved    struct{} // the result of a save is there
)

// New returns the actor; spawn it with a mailbox of package mailbox whose inline budget is 0: it loads its file itself. It
// delivers nothing before messages.DeliverDelayed.
func New(cfg Config) *Scheduler {
	if cfg.Interval <= 0 {
		cfg.Interval = defaultInterval
	}
	if cfg.MaxBatch <= 0 {
		cfg.MaxBatch = defaultMaxBatch
	}
	if cfg.MaxBatchBytes <= 0 {
		cfg.MaxBatchBytes = defaultMaxBatchBytes
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Scheduler{cfg: cfg, result: make(chan error, 1)}
	s.stopped, s.stop = context.WithCancel(context.Background())
	s.levels.Store(&map[int32]*level{})
	return s
}

// Wants tells whether a message that has become readable in a queue is news for a level. Safe for any goroutine; it does not
// allocate.
func (s *Scheduler) Wants(key messages.QueueKey) bool {
	if key.Topic != messages.TopicSchedule {
		return false
	}
	l := (*s.levels.Load())[key.QueueID]
	return l != nil && l.idle.Load()
}

// Offsets tells for each level the queue offset up to which its messages are delivered. Safe for any goroutine.
func (s *Scheduler) Offsets() map[int]messages.QueueOffset {
	levels := *s.levels.Load()
	offsets := make(map[int]messages.QueueOffset, len(levels))
	for _, l := range levels {
		offsets[l.number] = messages.QueueOffset(l.offset.Load())
	}
	return offsets
}

// Receive implements actor.Actor.
func (s *Scheduler) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case messages.MessagesArrived:
		s.arrived(m)
	case advanced:
		s.advanced.Attend()
		s.dirty = true
		s.armTick()
	case saveTick:
		s.tick = nil
		if s.dirty && !s.saving {
			s.save(func(error) {})
		}
	case saved:
		s.saveDone(<-s.result)
	case halted:
		s.levelHalted()
	case messages.DeliverDelayed:
		s.waiting = append(s.waiting, m)
		s.turn(ctx)
	case *actor.Started:
		s.self = actors.NewPeer(ctx.ActorSystem().Root, ctx.Self())
		s.advanced = actors.NewBell(s.self, advanced{})
	case *actor.Stopping:
		s.stopping()
	}
	if s.turning == nil && len(s.waiting) > 0 {
		s.turn(ctx)
	}
}

// arrived wakes the levels that are idle and have got something.
func (s *Scheduler) arrived(m messages.MessagesArrived) {
	levels := *s.levels.Load()
	for i := range m.Arrivals {
		l := levels[m.Arrivals[i].Queue.QueueID]
		if l != nil && m.Arrivals[i].Queue.Topic == messages.TopicSchedule && l.idle.CompareAndSwap(true, false) {
			l.self.Send(wake{})
		}
	}
}

// turn does what was asked for first, one after the other.
func (s *Scheduler) turn(ctx actor.Context) {
	for s.turning == nil && len(s.waiting) > 0 {
		m := s.waiting[0]
		s.waiting = s.waiting[1:]
		switch {
		case m.On == s.on:
			m.Answer.Complete(struct{}{}, nil)
		case m.On:
			m.Answer.Complete(struct{}{}, s.start(ctx))
		default:
			s.turning = &m
			s.halt()
		}
	}
}

// start loads the offsets and lets every level begin.
func (s *Scheduler) start(ctx actor.Context) error {
	if err := s.load(); err != nil {
		return fmt.Errorf("deliver delayed messages: %w", err)
	}
	before := *s.levels.Load()
	levels := make(map[int32]*level, len(before))
	for id, l := range before {
		levels[id] = l
	}
	for id := range s.queues() {
		if levels[id] != nil {
			continue
		}
		l, err := s.spawn(ctx, id)
		if err != nil {
			s.levels.Store(&levels) // those that have been made are there for the next time
			return err
		}
		levels[id] = l
	}
	for _, l := range levels {
		l.offset.Store(int64(s.correct(l)))
	}
	s.levels.Store(&levels)
	s.on = true
	for _, l := range levels {
		l.self.Send(begin{at: messages.QueueOffset(l.offset.Load())})
	}
	return nil
}

// queues are the ids of the schedule topic's queues: one for each level, and those of levels that there were before.
func (s *Scheduler) queues() map[int32]struct{} {
	ids := map[int32]struct{}{}
	for i := range s.cfg.Levels {
		ids[int32(i)] = struct{}{}
	}
	s.cfg.Table.Each(func(key messages.QueueKey, _ *consumequeue.Queue) {
		if key.Topic == messages.TopicSchedule {
			ids[key.QueueID] = struct{}{}
		}
	})
	return ids
}

// spawn makes the actor of a level.
func (s *Scheduler) spawn(ctx actor.Context, queue int32) (*level, error) {
	number := int(queue) + 1
	l := &level{
		cfg: &s.cfg, number: number, key: messages.QueueKey{Topic: messages.TopicSchedule, QueueID: queue}, delay: -1,
		log: s.cfg.Logger.With().Int("level", number).Logger(), parent: s.self, advanced: s.advanced,
	}
	if number <= s.cfg.Levels.Max() {
		l.delay = s.cfg.Levels[number-1]
	}
	mb := mailbox.New(mailbox.Options{OnPanic: func(reason any, stack []byte) {
		l.log.Error().Interface("panic", reason).Bytes("stack", stack).Msg("a delay level panicked")
	}})
	props := actor.PropsFromProducer(func() actor.Actor { return l }, actor.WithMailbox(mb.Producer()))
	pid, err := ctx.SpawnNamed(props, "level-"+strconv.Itoa(number))
	if err != nil {
		return nil, fmt.Errorf("start delay level %d: %w", number, err)
	}
	l.self = actors.NewPeer(ctx.ActorSystem().Root, pid)
	return l, nil
}

// halt asks every level to stop; each reports when nothing of it is in flight.
func (s *Scheduler) halt() {
	levels := *s.levels.Load()
	s.halting = len(levels)
	for _, l := range levels {
		l.self.Send(halt{})
	}
	if s.halting == 0 {
		s.halting = 1
		s.levelHalted()
	}
}

// levelHalted saves the offsets once every level has stopped, and answers.
func (s *Scheduler) levelHalted() {
	if s.halting--; s.halting > 0 {
		return
	}
	s.on = false
	m := s.turning
	s.save(func(err error) {
		s.turning = nil
		m.Answer.Complete(struct{}{}, err)
	})
}

// stopping waits for a save that is writing, so that nothing is written once the store has given its folder back.
func (s *Scheduler) stopping() {
	s.stop()
	if s.saving {
		<-s.result
	}
	if s.tick != nil {
		s.tick.Stop()
	}
	if s.turning != nil {
		s.turning.Refuse(messages.ErrClosed)
	}
	for _, m := range s.waiting {
		m.Refuse(messages.ErrClosed)
	}
	s.waiting = nil
}
