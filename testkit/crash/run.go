package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/memfs"
)

// Config says what to run.
type Config struct {
	Seed        uint64
	Generations int // crashes
	Steps       int // of the workload in a generation at most; 0: 120

	// Settle returns when every actor has come to rest: synctest.Wait.
	Settle func()
	// Pause lets time pass.
	Pause func(time.Duration)

	// Wrap, when set, stands between the store and the disk: a disk with faults of its own.
	Wrap   func(vfs.Disk) vfs.Disk
	Logger zerolog.Logger
}

// Result tells what a run has seen.
type Result struct {
	Crashes      int
	Kills        int            // of the crashes
	Recovery     int            // of the crashes: while an earlier one was being recovered
	Put          int            // messages
	Lost         int            // of them, rightly
	Expired      int            // of them: deleted by the cleaner
	TopicExpired int            // of them: expired with their topic
	Pooled       int            // crashes with the transient store pool
	Further      int            // messages with further queues
	At           map[string]int // crashes by the operation that did not happen any more
	Trace        *Trace
}

const dirName = "store"

// run is a run in progress.
type run struct {
	Config
	Result
	rnd   *rand.Rand
	disk  *memfs.Disk
	opt   system.Options
	model Model

	store  *system.Store                // nil while closed
	opened atomic.Pointer[system.Store] // the same, for whoever makes the disk crash
	tx     *system.Transactions
	trip   *trip
	window window // at the crash
	late   error  // what was not flushed in time
}

// Run runs one seed and returns the first error: what is wrong, in which generation.
func Run(cfg Config) (Result, error) {
	if cfg.Steps == 0 {
		cfg.Steps = 120
	}
	r := &run{Config: cfg, rnd: rand.New(rand.NewPCG(cfg.Seed, 77)), disk: memfs.New()}
	r.Trace, r.At = &Trace{}, map[string]int{}
	r.opt = r.options()
	var err error
	for g := range cfg.Generations {
		if err = r.generation(); err != nil {
			err = fmt.Errorf("seed %d, generation %d: %w", cfg.Seed, g, err)
			break
		}
	}
	r.Put = len(r.model.all)
	return r.Result, err
}

// options are those of the store: tiny files, so that everything rolls often.
func (r *run) options() system.Options {
	further := r.rnd.IntN(3) == 0
	return system.Options{
		LightQueues:     system.LightQueues{MultiDispatch: further, LightTopics: further},
		ConsumeQueueExt: r.rnd.IntN(3) == 0, ConsumeQueueExtBytes: 320,
		Dir: dirName, SegmentBytes: []int64{4096, 8192, 32768}[r.rnd.IntN(3)], ConsumeQueueFileBytes: []int64{200, 2000}[r.rnd.IntN(2)],
		IndexSlots: 30, IndexEntries: []int32{30, 300}[r.rnd.IntN(2)], WindowBytes: []int64{-1, 4096}[r.rnd.IntN(2)],
		// Timers that never fire at the same instant: the order of those that do is random.
		FlushInterval: 497 * time.Millisecond, FlushThorough: 9973 * time.Millisecond,
		QueueFlushInterval: 1009 * time.Millisecond, QueueFlushThorough: 59_981 * time.Millisecond, CleanInterval: 10_007 * time.Millisecond,
		// A full disk must not make the cleaner delete what has not expired: the model knows nothing of that.
		Retention: messages.Retention{NoForcedCleaning: true, WarningPercent: 100},
		Logger:    r.Logger,
	}
}

// generation works until a crash, recovers from it and judges what is left.
func (r *run) generation() error {
	r.choose()
	r.setTrip(1 + int(float64(r.Steps)*4*r.rnd.Float64()*r.rnd.Float64()))
	err := r.open()
	if err == nil {
		err = r.work()
	}
	r.trip.now()
	r.Settle()
	r.shut()
	if err = errors.Join(err, r.late); err != nil {
		return err
	}
	if err := r.crashed(); err != nil {
		return err
	}
	return r.judge()
}

// choose makes the choices that an operator may make anew with each start. The transient store pool has an effect with ASYNC_FLUSH only.
func (r *run) choose() {
	r.opt.FlushDiskType = []system.FlushDiskType{system.AsyncFlush, system.SyncFlush}[r.rnd.IntN(2)]
	r.opt.NoIndex = r.rnd.IntN(8) == 0
	r.opt.TransientPool = system.TransientPool{
		TransientPoolEnable: r.rnd.IntN(2) == 0, TransientPoolSize: 1 + r.rnd.IntN(3), CommitInterval: commitInterval,
		CommitThorough: commitInterval,
	}
	r.Trace.add("start with %v, no index %v, pool %v, further queues %v, extension %v", r.opt.FlushDiskType, r.opt.NoIndex,
		r.opt.TransientPoolEnable, r.opt.MultiDispatch, r.opt.ConsumeQueueExt)
}

// commitInterval is an odd one, as those in options are.
const commitInterval = 211 * time.Millisecond

// readable waits until what has been acknowledged can be read: it is dispatched within a millisecond, once the transient store pool has
// committed it.
func (r *run) readable() {
	if r.done() {
		return
	}
	wait := time.Millisecond
	if r.opt.Pooled() {
		wait = 2*commitInterval + 700*time.Microsecond
	}
	r.Pause(wait)
	r.Settle()
}

// setTrip arms the next crash.
func (r *run) setTrip(at int) {
	r.trip = (&trip{
		disk: r.disk, at: at, kill: r.rnd.IntN(4) == 0, seed: r.rnd.Uint64(), trace: r.Trace, before: r.before,
	}).arm()
}

// before runs when the crash happens.
func (r *run) before() {
	r.window = window{flushed: 1 << 62, committed: 1 << 62} // while nothing is open everything acknowledged is durable
	if s := r.opened.Load(); s != nil {
		o := s.Options()
		r.window.flushed, r.window.late = s.FlushedTo(), o.FlushThorough+2*o.FlushInterval+time.Duration(100*r.trip.slow.Load())
		if o.Pooled() {
			r.window.committed = s.Status().CommittedTo
			r.window.late += 2 * commitInterval
			r.Pooled++
		}
	}
	r.late = r.model.before(r.trip.kill, r.window)
}

// crashed goes on with what the crash has left, and sometimes lets recovery crash too.
func (r *run) crashed() error {
	r.count()
	if r.rnd.IntN(5) == 0 {
		if err := r.recoverFull(); err != nil {
			return fmt.Errorf("recovery on a full disk: %w", err)
		}
	}
	for r.rnd.IntN(3) == 0 {
		r.setTrip(1 + r.rnd.IntN(40))
		r.trip.before = func() {
			if !r.trip.kill { // what a kill has left in the page cache may go now
				_ = r.model.before(false, r.window)
			}
		}
		if err := r.open(); err != nil {
			return err
		}
		r.trip.now()
		r.Settle()
		r.shut()
		r.count()
		r.Recovery++
	}
	return nil
}

func (r *run) count() {
	r.disk.Inject(nil)
	r.disk = r.trip.left
	r.disk.SetCapacity(0)
	r.Crashes++
	r.At[r.trip.what]++
	if r.trip.kill {
		r.Kills++
	}
}

// open opens the store on the disk as it is. An error counts unless the power is off.
func (r *run) open() error {
	o := r.opt
	o.Disk = r.disk
	if r.Wrap != nil {
		o.Disk = r.Wrap(r.disk)
	}
	s, err := system.Open(o)
	if err != nil {
		if r.trip.happened() {
			return nil
		}
		return fmt.Errorf("open: %w", err)
	}
	r.is(s)
	if err = r.startTransactions(); errors.Is(err, context.DeadlineExceeded) && !r.trip.happened() {
		r.disk.SetCapacity(0) // they wait for the index, and that for room
		err = r.startTransactions()
	}
	if err != nil && !r.trip.happened() {
		return fmt.Errorf("start transactions: %w", err)
	}
	return nil
}

func (r *run) startTransactions() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r.tx, err = r.store.Transactions(ctx, system.TransactionOptions{})
	return err
}

// is notes which store is open.
func (r *run) is(s *system.Store) {
	r.store = s
	r.opened.Store(s)
}

// shut closes the store after a crash: what it says does not matter any more.
func (r *run) shut() {
	if r.store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_ = r.store.Close(ctx)
	r.is(nil)
	r.Settle()
}

// reopen stops the store in order and opens it again; everything acknowledged is durable then.
func (r *run) reopen() error {
	s := r.store
	err := s.Close(context.Background())
	if r.trip.happened() {
		return nil
	}
	if err != nil {
		return fmt.Errorf("clean stop: %w", err)
	}
	r.is(nil)
	r.model.settled()
	r.choose()
	return r.open()
}

// done tells whether the workload of this generation is over.
func (r *run) done() bool { return r.store == nil || r.trip.happened() }

func (r *run) topic() messages.QueueKey {
	return messages.QueueKey{Topic: []string{"A", "B", "%RETRY%g", "long-topic-name"}[r.rnd.IntN(4)], QueueID: int32(r.rnd.IntN(3))}
}
