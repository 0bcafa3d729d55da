package system

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/allocator"
	"github.com/actormq/actormq/actors/flusher"
	"github.com/actormq/actormq/actors/indexer"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/actors/pullhold"
	"github.com/actormq/actormq/actors/reput"
	"github.com/actormq/actormq/actors/writer"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
)

// inlineBatches is how many batches a caller appends for others before a goroutine takes over.
const inlineBatches = 16

// cast is the store's actors, in an actor system of their own that has no remote: nobody outside can stop them.
type cast struct {
	system *actor.ActorSystem
	pids   map[actors.Role]*actor.PID
	ports  map[actors.Role]*mailbox.Combining
	// flusher is who is asked to make everything durable: the flusher, or a committer, which passes it on.
	flusher actors.Role
	// gate: nobody runs before everybody has a name, or what is sent to a name that is not there yet is lost; and the maps are
	// whole before anybody looks into them. First the store's own actors wait at one, then the extensions at the next.
	gate *mailbox.Gate
	// indexLeft: there was no room for all of the index when the store was stopped.
	indexLeft bool
	last      []actors.Peer // of the extensions, in this order: stopped after all others, which tell them something to the end
}

// spawn makes the actors, those first whom the others tell, and then starts them.
func (s *Store) spawn() error {
	defer s.cast.gate.Open() // also when a step fails: those that are there already are stopped by what they are told
	steps := []func() error{
		s.spawnPullHold, s.spawnFlusher, s.spawnBuilders, s.spawnDispatcher, s.spawnReplicator, s.spawnAllocator, s.spawnCommitter,
		s.spawnWriter, s.spawnCleaner, s.spawnScheduler, s.spawnFollower,
	}
	if s.readOnly != nil { // nobody who writes or deletes segments; the others write to memory
		steps = []func() error{
			s.spawnPullHold, s.spawnFlusher, s.spawnBuilders, s.spawnDispatcher, s.spawnWriter, s.spawnScheduler,
		}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func newCast(opt Options) *cast {
	system := actor.NewActorSystem(actor.WithLoggerFactory(slogFactory(opt.Logger)),
		actor.WithDeadLetterThrottleInterval(10*time.Millisecond))
	actors.TakeCensus(system)
	return &cast{system: system, pids: map[actors.Role]*actor.PID{}, ports: map[actors.Role]*mailbox.Combining{}, gate: new(mailbox.Gate)}
}

// spawn starts one of the store's own actors under its role's name.
func (c *cast) spawn(role actors.Role, a actor.Actor, mb *mailbox.Combining) (actors.Peer, error) {
	peer, err := c.spawnLast(role, a, mb)
	if err == nil {
		c.pids[role] = peer.PID()
	}
	return peer, err
}

// spawnLast starts an actor that no role names: the store's own may be running, and looking each other up.
func (c *cast) spawnLast(role actors.Role, a actor.Actor, mb *mailbox.Combining) (actors.Peer, error) {
	props := actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithMailbox(mb.Producer()))
	pid, err := c.system.Root.SpawnNamed(props, pidName(role))
	if err != nil {
		return actors.Peer{}, fmt.Errorf("spawn %s: %w", role, err)
	}
	c.ports[role] = mb
	return actors.NewPeer(c.system.Root, pid), nil
}

// address is the peer of a role that is still to be spawned.
func (c *cast) address(role actors.Role) actors.Peer {
	return actors.NewPeer(c.system.Root, actor.NewPID(c.system.Address(), pidName(role)))
}

func pidName(role actors.Role) string { return "store/" + string(role) }

// blocking is the mailbox of an actor that may wait for the disk: it runs on a goroutine of its own.
func (s *Store) blocking(role actors.Role) *mailbox.Combining { return s.mailbox(role, 0) }

// prompt is the mailbox of an actor that waits for nothing on behalf of those who do not wait for it: it runs on the goroutine of
// a sender that finds it idle. From a put to the answer of a held pull that takes two wake-ups of a goroutine away (docs/adr/0014).
func (s *Store) prompt(role actors.Role) *mailbox.Combining { return s.mailbox(role, inlineBatches) }

func (s *Store) mailbox(role actors.Role, inline int) *mailbox.Combining {
	return mailbox.New(mailbox.Options{
		Gate: s.cast.gate, Limit: s.opt.MaxPendingPuts + 1024, InlineBatches: inline, OnPanic: func(reason any, stack []byte) {
			s.opt.Logger.Error().Str("role", string(role)).Interface("panic", reason).Bytes("stack", stack).Msg("an actor panicked")
		},
	})
}

// onFailed is told by a storage actor that it has failed: the store turns read-only, for good. The others are told on
// goroutines of their own, as one of them may be the sender.
func (s *Store) onFailed(m messages.Failed) {
	first := s.failure.set(fmt.Errorf("%s: %w: %w", m.Role, messages.ErrFailed, m.Cause))
	switch role := actors.Role(m.Role); {
	case role == actors.RoleFlusher, first && (role == actors.RoleWriter || role == actors.RoleCommitter):
		s.unproven.Do(func() { s.marking.Go(s.markUnproven) })
	}
	if !first {
		return
	}
	s.refuseForGood(s.failure.get())
	if m.Role == string(actors.RoleQueueBuilder) {
		s.SetFlag(messages.FlagQueueError, m.Cause)
	} else {
		s.SetFlag(messages.FlagNotWriteable, m.Cause)
	}
	for _, role := range []actors.Role{actors.RoleWriter, actors.RoleFlusher} {
		if pid := s.cast.pids[role]; pid != nil && string(role) != m.Role {
			go s.cast.system.Root.Send(pid, m)
		}
	}
	if s.opt.OnFailed != nil {
		s.opt.OnFailed(m)
	}
}

func (s *Store) spawnPullHold() (err error) {
	a := pullhold.New(pullhold.Config{
		Max: func(key messages.QueueKey) messages.QueueOffset { return s.MaxOffset(key) }, Limit: s.opt.MaxParkedPulls,
		Urge: func() { s.grown.Urge() }, Logger: s.opt.Logger,
	})
	s.parked, s.awaited = a.Held, a.Awaits
	s.pullHold, err = s.cast.spawn(actors.RolePullHold, a, s.prompt(actors.RolePullHold))
	return err
}

func (s *Store) spawnFlusher() error {
	syncFlush := s.opt.FlushDiskType == SyncFlush
	if syncFlush || s.opt.FlushAtOnce {
		s.flushBell = actors.NewBell(s.cast.address(actors.RoleFlusher), messages.Announce(messages.LogGrown{}))
	}
	mb := s.prompt(actors.RoleFlusher)
	s.flushed = flusher.New(flusher.Config{
		Mailbox: mb, Urgent: syncFlush, Bell: s.flushBell, Advanced: s.bellsOf(true),
		Disk: s.files.Disk, Log: s.log, CheckpointPath: s.files.Params.CheckpointPath(), Checkpoint: s.files.Checkpoint,
		Flushed: s.log.End(), Interval: s.opt.FlushInterval, LeastPages: s.opt.FlushLeastPages,
		ThoroughInterval: s.opt.FlushThorough, SyncTimeout: s.opt.SyncFlushTimeout, Unread: s.forgettable(), OnFailed: s.onFailed, Logger: s.opt.Logger,
	})
	_, err := s.cast.spawn(actors.RoleFlusher, s.flushed, mb)
	return err
}

// peer is an actor that is there already; the zero Peer when it is not.
func (s *Store) peer(role actors.Role) actors.Peer {
	if s.cast.pids[role] == nil {
		return actors.Peer{}
	}
	return actors.NewPeer(s.cast.system.Root, s.cast.pids[role])
}

func (s *Store) spawnBuilders() error {
	hold := reput.Listener{Peer: s.pullHold, Wants: func(messages.QueueKey) bool { return s.parked() > 0 }}
	s.delayed = s.newScheduler()
	listeners, err := s.listeners()
	if err != nil {
		return err
	}
	queues := reput.NewQueueBuilder(reput.QueueConfig{
		Table: s.queues, Log: s.log, MultiDispatch: s.opt.MultiDispatch, Built: s.files.DispatchFrom, Follower: s.opt.Role == messages.Slave,
		Delay: s.delays.Millis, Listeners: append(listeners, hold, s.dueListener()),
		Flusher: s.peer(actors.RoleFlusher), Space: s.cast.address(actors.RoleCleaner),
		Interval: s.opt.QueueFlushInterval, LeastPages: s.opt.QueueFlushLeastPages, ThoroughInterval: s.opt.QueueFlushThorough,
		OnFailed: s.onFailed, OnProblem: s.onQueueProblem, Logger: s.opt.Logger,
	})
	if _, err := s.cast.spawn(actors.RoleQueueBuilder, queues, s.prompt(actors.RoleQueueBuilder)); err != nil {
		return err
	}
	if s.index == nil {
		return nil
	}
	a := indexer.New(indexer.Config{
		Index: s.index, Flusher: s.peer(actors.RoleFlusher), Space: s.cast.address(actors.RoleCleaner),
		Interval: s.opt.QueueFlushThorough, Logger: s.opt.Logger,
		OnBroken: s.indexBroken, Reread: s.reread,
	})
	_, err = s.cast.spawn(actors.RoleIndexer, a, s.blocking(actors.RoleIndexer))
	return err
}

// reread gives the index builder a part of the log once more.
func (s *Store) reread(from, to messages.PhysicalOffset) (*messages.DispatchBatch, error) {
	return reput.Reread(s.log, from, to, s.opt.Role == messages.Slave)
}

func (s *Store) onQueueProblem(p messages.QueueProblem) {
	s.opt.Logger.Warn().Str("topic", p.Queue.Topic).Int32("queue", p.Queue.QueueID).Err(p.Err).Msg("a consume queue has a problem")
}

// watchQueues has damage of queues that readers meet repaired by the next start.
func (s *Store) watchQueues() {
	if s.readOnly != nil {
		return
	}
	s.queues.OnDamage(func(key messages.QueueKey, err error) {
		err = errors.Join(err, s.files.MarkQueuesDamaged(err))
		s.opt.Logger.Error().Str("topic", key.Topic).Int32("queue", key.QueueID).Err(err).
			Msg("a consume queue is damaged: some of its messages can't be read before the next start, which builds it again from the log")
	})
}

func (s *Store) onDamage(d messages.LogDamage) {
	s.opt.Logger.Error().Str("dir", s.log.Dir()).Int64("from", int64(d.From)).Int64("to", int64(d.To)).Err(d.Err).
		Msg("the commit log is damaged: these bytes are skipped")
}

func (s *Store) spawnDispatcher() error {
	builders := []reput.Builder{{Name: string(actors.RoleQueueBuilder), Mailbox: s.cast.ports[actors.RoleQueueBuilder]}}
	if s.index != nil {
		builders = append(builders, reput.Builder{Name: string(actors.RoleIndexer), Mailbox: s.cast.ports[actors.RoleIndexer], Credit: 64})
	}
	s.grown = actors.NewBell(s.cast.address(actors.RoleDispatcher), messages.Announce(messages.LogGrown{}))
	a := reput.New(reput.Config{
		Log: s.log, From: s.files.DispatchFrom, Bell: s.grown, Delay: s.delays.Millis, Builders: builders, MultiDispatch: s.opt.MultiDispatch,
		Limit:    s.visible(),
		Follower: s.opt.Role == messages.Slave, Advanced: append(s.bellsOf(false), s.bellsOf(true)...),
		OnDamage: s.onDamage, OnFailed: s.onFailed, Logger: s.opt.Logger,
	})
	s.dispatched = a.DispatchedTo
	_, err := s.cast.spawn(actors.RoleDispatcher, a, s.blocking(actors.RoleDispatcher))
	return err
}

func (s *Store) spawnAllocator() error {
	o := s.opt
	warmSync, buffers := 0, 0
	if o.FlushDiskType == SyncFlush {
		warmSync = o.WarmSyncPages
	}
	if o.Pooled() {
		buffers = o.TransientPoolSize
	}
	_, err := s.cast.spawn(actors.RoleAllocator, allocator.New(allocator.Config{
		Disk: o.Disk, Dir: o.CommitLogDir, PrepareDir: path.Join(path.Dir(o.CommitLogDir), prepareDir),
		SegmentBytes: o.SegmentBytes, WindowBytes: o.window(), WriteZeros: o.FlushDiskType == SyncFlush,
		Warm: o.WarmSegments, WarmSyncPages: warmSync, PoolBuffers: buffers, PoolFailFast: o.TransientPoolFailFast,
		Reserved: s.cleaner.Reserved, Space: s.cast.address(actors.RoleCleaner), Log: o.Logger,
	}), s.blocking(actors.RoleAllocator))
	return err
}

// zerosAhead is how far ahead of the tail zeros are on the disk with SYNC_FLUSH: syncs wait for what is being written of them.
const zerosAhead = 1 << 20

// window is how far ahead of the tail pages are prepared.
func (o Options) window() int64 {
	if o.FlushDiskType == SyncFlush {
		return min(max(o.WindowBytes, 0), zerosAhead)
	}
	return max(o.WindowBytes, 0)
}

// followers are the bells of those who follow the log without anybody's waiting, but for the dispatcher's.
func (s *Store) followers() (bells []*actors.Bell) {
	if s.opt.FlushDiskType == AsyncFlush && s.flushBell != nil {
		bells = append(bells, s.flushBell)
	}
	if s.opt.HAListen != "" {
		bells = append(bells, s.grownReplicas)
	}
	return bells
}

func (s *Store) spawnWriter() error {
	o := s.opt
	appended, unwaited := s.followers(), (*actors.Bell)(nil)
	if o.FlushDiskType == SyncFlush {
		unwaited = s.flushBell
	}
	readable := s.grown
	if s.written != nil {
		appended, readable = []*actors.Bell{s.written}, nil // the committer rings the others
	}
	conf := writer.Config{
		Log: s.log, Offsets: s.files.QueueOffsets, SyncFlush: o.FlushDiskType == SyncFlush, ByWrite: o.FlushDiskType == SyncFlush,
		Crowded:   s.crowded,
		Flusher:   s.cast.ports[actors.RoleFlusher],
		TailShort: s.files.TailShort != nil, Pooled: s.written != nil, Allocator: s.peer(actors.RoleAllocator), Appended: appended, Readable: readable, Unwaited: unwaited, OnFailed: s.onFailed,
		Rebuild: s.queueOffsets, Logger: o.Logger, Space: s.cast.address(actors.RoleCleaner), WindowBytes: o.window(),
	}
	if o.LightTopics {
		conf.MaxLightQueues = o.MaxLightQueues
	}
	s.replicated(&conf)
	if !s.extended() {
		conf.Awaited = s.awaited
	}
	if conf.Follower {
		s.behind, conf.Appended, conf.Readable = append(conf.Appended, s.grown), nil, nil
	}
	w := writer.New(conf)
	s.writer = mailbox.New(mailbox.Options{
		Gate: s.cast.gate, TimeQueueing: true, Limit: o.MaxPendingPuts + 1024, InlineBatches: inlineBatches, Receiver: w,
		OnPanic: w.Panicked,
	})
	s.admission.queueing = func() time.Duration { return max(s.writer.Queueing(), w.Parked()) }
	s.admission.busyAfter = o.BusyTimeout
	_, err := s.cast.spawn(actors.RoleWriter, w, s.writer)
	return err
}

// prepareDir is where segments are made, beside the log's folder and on the same file system.
const prepareDir = "prepare"

// queueOffsets reads the queue-offset table from the files: the writer asks for it after a panic. The dispatcher first
// builds up to the end of the log.
func (s *Store) queueOffsets() (map[messages.QueueKey]messages.QueueOffset, error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.opt.StopTimeout)
	defer cancel()
	if err := s.builtToEnd(ctx); err != nil {
		return nil, err
	}
	table := make(map[messages.QueueKey]messages.QueueOffset, s.queues.Len())
	s.queues.Each(func(key messages.QueueKey, q *consumequeue.Queue) { table[key], _ = q.GoesOn() })
	return table, nil
}
