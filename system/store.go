package system

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/cleaner"
	"github.com/actormq/actormq/actors/delay"
	"github.com/actormq/actormq/actors/flusher"
	"github.com/actormq/actormq/actors/ha"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/index"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
)

// ErrStopped: the store has been closed.
var ErrStopped = errors.New("the store is closed")

// Store is an open message store. Every method is safe for concurrent use.
type Store struct {
	opt    Options
	given  Extensions // as the options had them: without what replacements add
	files  *store.Store
	log    *commitlog.Log
	queues *consumequeue.Table
	index  *index.Set // nil without an index
	delays messages.DelayLevels

	memoryBytes int64 // what is nearer to the log's end counts as in memory

	admission *admission
	puts      sync.Pool                  // of messages.PutMessage: the envelopes of puts with their encode buffers
	units     sync.Pool                  // of consumequeue.Reader: what gets have read of the queues, some of it ahead
	onPlaced  func(*messages.PutMessage) // placed, bound once
	writer    *mailbox.Combining
	pullHold  actors.Peer
	parked    func() int64                 // pulls that are held
	awaited   func(messages.QueueKey) bool // a pull of the queue is held, or has just been
	flushed   *flusher.Actor
	cleaner   *cleaner.Actor
	deleting  chan struct{} // one deletion of a topic at a time has its token
	delayed   *delay.Scheduler
	scheduler actors.Peer
	// delivering: delayed messages are to be delivered, as far as DeliverDelayed was told.
	delivering atomic.Bool
	replicas   *ha.Replicator // nil: nobody can follow
	follower   *ha.Follower   // nil: nobody is followed
	cast       *cast
	grown      *actors.Bell // rung when the log has grown
	written    *actors.Bell // rung when more is to be committed; nil without a transient store pool
	// grownReplicas is rung like grown, for the replicator.
	grownReplicas *actors.Bell
	behind        []*actors.Bell // of a slave: rung by the follower instead of the writer
	flushBell     *actors.Bell   // rung when a flush need not wait for the timer; nil: never

	dispatched *atomic.Int64 // physical offset below which everything is built

	read atomic.Bool // somebody has got messages

	group groupState

	transactions atomic.Pointer[Transactions]
	plugged      plugged

	readOnly  error // why it was opened for reading only; nil: it was not
	state     state
	failure   failure
	unproven  sync.Once                          // done when the log is in doubt
	marking   sync.WaitGroup                     // of the marker that this leaves
	retention atomic.Pointer[messages.Retention] // in force
	readers   atomic.Pointer[messages.Readers]   // nil: nobody knows
	closing   sync.Once
	closed    chan struct{} // closed when Close begins
	stopped   error         // what Close returned; valid after closing
}

// Open opens the store in opt.Dir, which is made when it is not there: it takes the lock, recovers what the last run left,
// and starts the actors. A directory that another process has open is refused with vfs.ErrLocked. Opening may take long
// after a crash; opt.Progress is told. A directory to which nothing may be written (store.ErrUnproven, store.ErrNoAbort, store.ErrNoNote) is opened
// for reading only, if that can be done: Writable then tells why, and so does every put.
func Open(opt Options) (*Store, error) {
	opt = opt.Defaults()
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	given := opt.Extensions
	opt.Extensions = given.replaced()
	opt.NoIndex = opt.NoIndex || opt.replaces(PartIndex)
	files, unwritable, err := openToServe(opt)
	if err != nil {
		return nil, err
	}
	s := &Store{
		readOnly: unwritable,
		opt:      opt, given: given, files: files, log: files.Log, queues: files.Queues, index: files.Index,
		admission: newAdmission(opt.MaxPendingPuts, opt.MaxPendingBytes), closed: make(chan struct{}),
		deleting: make(chan struct{}, 1),
	}
	s.retention.Store(&opt.Retention)
	s.puts.New = func() any { return messages.NewPutMessage() }
	s.onPlaced = s.placed
	s.delays, _ = messages.ParseDelayLevels(opt.DelayLevels) // Validate has looked at them
	s.memoryBytes = vfs.PhysicalMemory() / 100 * int64(opt.MemoryRatioPercent)
	s.cast = newCast(opt)
	if s.cast.flusher = actors.RoleFlusher; opt.Pooled() && s.readOnly == nil {
		s.cast.flusher = actors.RoleCommitter
	}
	s.cleaner = s.newCleaner()
	s.preparePlugged()
	s.watchQueues()
	s.sayReadOnly() // these first: what a service, or whoever is told of arrivals, does as soon as it runs counts too
	s.awaitConfirmed()
	s.changeFlag(func(map[messages.RunningFlags]error) {}) // the role's refusal
	err = s.spawn()
	if err == nil && opt.Role != messages.Slave && opt.Group == nil && s.readOnly == nil {
		err = s.DeliverDelayed(context.Background(), true)
	}
	if err == nil {
		err = s.plugIn()
	}
	if err != nil {
		s.unplug(context.Background())
		s.cast.stopAll()
		return nil, errors.Join(fmt.Errorf("start the store's actors: %w", err), files.Close())
	}
	s.sayFlushTimeout()
	s.sayPool()
	if s.index == nil && !opt.NoIndex {
		s.indexBroken(fmt.Errorf("recovery found no room for %s: %w", files.Params.IndexDir(), messages.ErrDiskFull))
	}
	s.sayOpen()
	return s, nil
}

// defaultSyncFlushTimeout is RocketMQ's.
const defaultSyncFlushTimeout = 5 * time.Second

// clientTimeout is how long RocketMQ's clients wait for a send, unless they are told otherwise.
const clientTimeout = 3 * time.Second

// sayFlushTimeout warns at start when a client gives up a send before the store answers that its flush takes too long.
func (s *Store) sayFlushTimeout() {
	opt := &s.opt
	if opt.FlushDiskType != SyncFlush || opt.SyncFlushTimeout < clientTimeout {
		return
	}
	level := zerolog.WarnLevel
	if opt.SyncFlushTimeout == defaultSyncFlushTimeout { // RocketMQ's own: nobody has chosen it
		level = zerolog.InfoLevel
	}
	opt.Logger.WithLevel(level).Dur("syncFlushTimeout", opt.SyncFlushTimeout).Dur("client_timeout", clientTimeout).
		Msg("on a slow disk clients give up before they are told that a flush takes too long: they send again, so messages come twice")
}

// sayOpen logs what has been opened.
func (s *Store) sayOpen() {
	opt := &s.opt
	opt.Logger.Info().Str("dir", opt.Dir).Str("role", opt.Role.String()).Str("flush", opt.FlushDiskType.String()).
		Dur("a_power_cut_may_take", opt.atRisk()).Int64("log_min", int64(s.log.Min())).
		Int64("log_end", int64(s.log.End())).Int("queues", s.queues.Len()).Bool("clean", s.files.LastExitClean).
		Msg("the store is open")
}

func openFiles(opt Options, o store.Options) (*store.Store, error) {
	o.Ballast, o.Events = path.Join(opt.Dir, ballastName), func(e store.Event) {
		opt.Logger.Warn().Str("found", string(e.What)).Str("dir", opt.Dir).Msg(e.String())
	}
	o.OnUnmarked = func(err error) {
		opt.Logger.Error().Err(err).Msg("restart the machine, not the process alone, before going on with this store")
	}
	var cutAt messages.PhysicalOffset
	if opt.Group != nil {
		cutAt = opt.Group.CutAt
	}
	if opt.Progress != nil {
		o.Progress = func(p store.Progress) { opt.Progress(p.Step, p.Done, p.Total) }
	}
	ext := int64(0)
	if opt.ConsumeQueueExt {
		ext = opt.ConsumeQueueExtBytes
	}
	return store.Open(opt.Disk, store.Params{
		ExtFileBytes: ext,
		Dir:          opt.Dir, CommitLogDir: opt.CommitLogDir, SegmentBytes: opt.SegmentBytes,
		ConsumeQueueFileBytes: opt.ConsumeQueueFileBytes, IndexSlots: opt.IndexSlots, IndexEntries: opt.IndexEntries,
		CheckCRC: !opt.SkipRecoveryCRC, MessageIndex: !opt.NoIndex, Follower: opt.Role == messages.Slave, MultiDispatch: opt.MultiDispatch, DelayLevels: opt.DelayLevels,
		CutAt: cutAt,
	}, o)
}

// Options returns the options in force, defaults filled in.
func (s *Store) Options() Options {
	opt := s.opt
	opt.Extensions = s.given
	return opt
}

// ConfigDir is the folder of the store's configuration files (topics.json and the like).
func (s *Store) ConfigDir() string { return s.files.Params.ConfigDir() }

// FlushedTo is the durable end of the commit log.
func (s *Store) FlushedTo() messages.PhysicalOffset {
	return messages.PhysicalOffset(s.flushed.FlushedTo.Load())
}

// EachQueue calls fn for every consume queue with its range of offsets.
func (s *Store) EachQueue(fn func(key messages.QueueKey, first, end messages.QueueOffset)) {
	s.queues.Each(func(key messages.QueueKey, q *consumequeue.Queue) {
		lo, hi := q.Range()
		fn(key, lo, hi)
	})
}

// Close stops the store in order: it refuses new puts, answers those in flight, makes everything durable, dispatches to
// the end of the log, and gives the directory back. Reads that hold results may release them later. The context bounds
// the waiting, Options.StopTimeout when it has no deadline; when that is not enough the store is closed all the same, and
// the next start recovers as after a crash. Only the first call does something, all return the same.
func (s *Store) Close(ctx context.Context) error {
	s.closing.Do(func() { s.stopped = s.close(ctx) })
	return s.stopped
}

func (s *Store) close(ctx context.Context) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.opt.StopTimeout)
		defer cancel()
	}
	began := time.Now()
	s.unplug(ctx)
	var err error
	if t := s.transactions.Load(); t != nil {
		err = t.close(ctx)
	}
	s.dispatchAll()
	s.cast.stop(actors.RoleFollower)    // first, and nowhere else: a drain needs an end
	var unsaved error                   // at worst some messages are delivered twice: that keeps nothing open
	if !s.opt.replaces(PartScheduler) { // that one has been stopped
		unsaved = s.DeliverDelayed(ctx, false)
	}
	s.refuseForGood(ErrStopped)
	s.admission.close()
	err = errors.Join(err, s.drain(ctx))
	close(s.closed)
	select {
	case s.deleting <- struct{}{}: // a deletion that is running comes to its end, and no other begins
	case <-ctx.Done():
	}
	s.cast.stopAll()
	s.marking.Wait()
	if err != nil || s.failure.get() != nil {
		return errors.Join(unsaved, err, s.failure.get(), s.files.Close())
	}
	if s.cast.indexLeft {
		if err := s.files.LeaveIndex(); err != nil {
			return errors.Join(unsaved, err, s.files.Close())
		}
	}
	if err := errors.Join(unsaved, s.cutPartial(), s.removeUnused(), s.files.CloseClean()); err != nil {
		return err
	}
	s.opt.Logger.Info().Str("dir", s.opt.Dir).Dur("took", time.Since(began)).Msg("the store is closed")
	return nil
}

// drain waits until what was taken is answered, dispatched and durable.
func (s *Store) drain(ctx context.Context) error {
	if end, ok := ctx.Deadline(); ok && s.replicas != nil {
		// Puts that wait for a slave that hangs get half of the time: the rest is for making them durable here.
		half := time.AfterFunc(time.Until(end)/2, func() { s.cast.stop(actors.RoleReplicator) })
		defer half.Stop()
	}
	select {
	case <-s.admission.drained:
	case <-ctx.Done():
		return fmt.Errorf("wait for puts in flight: %w", context.Cause(ctx))
	}
	if s.failure.get() != nil {
		return nil // nothing more can be made durable
	}
	end, err := s.commit(ctx)
	if err != nil {
		return err
	}
	return s.cast.drain(ctx, end)
}
