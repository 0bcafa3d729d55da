package reput

import (
	"errors"
	"slices"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/vfs"
)

// flushState is what the queue builder knows of writing and syncing.
type flushState struct {
	dirty   []*queueState // queues with units that are not durable
	warm    []*queueState // queues whose tail is in memory
	pending int64         // units that are only in memory, at least so many

	running *flushJob
	asked   []messages.FlushQueues // wait for the next thorough flush
	serving []messages.FlushQueues // wait for the running one

	short bool // Space has been told that there is no room

	timer    *time.Timer
	pause    time.Duration // until the next tick
	thorough time.Time     // of the last thorough flush
	toldMs   int64         // what the flusher was told last
}

type (
	// flushTick is the builder's timer; one at most is set.
	flushTick struct{}

	// flushJob is one round over queues, on a goroutine of its own.
	flushJob struct {
		states   []*queueState
		thorough bool
		all      bool  // no dirty queue was left out, and none lacked units
		ms       int64 // then durable up to this store timestamp
	}

	// flushed ends a round.
	flushed struct {
		job      *flushJob
		failed   []*queueState // whose units are not durable
		writeErr error         // may pass: nothing is lost
		syncErr  error         // final
	}
)

func (f *flushState) takeAll() []messages.FlushQueues {
	all := append(f.serving, f.asked...)
	f.serving, f.asked = nil, nil
	return all
}

// touch notes that a queue has units that are not durable.
func (f *flushState) touch(st *queueState) {
	if !st.dirty {
		st.dirty = true
		f.dirty = append(f.dirty, st)
	}
	if !st.warm {
		st.warm = true
		f.warm = append(f.warm, st)
	}
}

func (f *flushState) forget(st *queueState) {
	same := func(other *queueState) bool { return other == st }
	f.dirty, f.warm = slices.DeleteFunc(f.dirty, same), slices.DeleteFunc(f.warm, same)
	st.dirty, st.warm = false, false
}

// idle tells whether a round would do nothing.
func (a *QueueBuilder) idle() bool {
	return len(a.flush.dirty)+len(a.flush.warm) == 0 && a.builtMs == a.flush.toldMs
}

// armTick sets the timer, when there is something that a flush would do.
func (a *QueueBuilder) armTick() {
	if a.flush.timer == nil && a.failed == nil && !a.idle() {
		a.flush.timer = a.self.After(a.flush.pause, flushTick{})
	}
}

func (a *QueueBuilder) flushTick() {
	a.flush.timer = nil
	if a.flush.running == nil && a.failed == nil {
		failing := a.flush.pause != a.cfg.Interval
		a.startFlush(failing || time.Since(a.flush.thorough) >= a.cfg.ThoroughInterval)
	}
	a.armTick()
}

// writeSoon begins to write before the timer when much waits.
func (a *QueueBuilder) writeSoon() {
	if a.flush.pending >= a.cfg.MaxPending/2 && a.flush.running == nil && a.failed == nil && a.flush.pause == a.cfg.Interval {
		a.startFlush(true)
	}
}

func (a *QueueBuilder) flushNow(m messages.FlushQueues) {
	if a.failed != nil {
		m.Refuse(a.failed)
		return
	}
	a.flush.asked = append(a.flush.asked, m)
	if a.flush.running == nil {
		a.startFlush(true)
	}
}

// startFlush begins a round: a thorough one takes every dirty queue, another those with enough pages.
func (a *QueueBuilder) startFlush(thorough bool) {
	f := &a.flush
	job := &flushJob{thorough: thorough, ms: a.builtMs}
	if thorough {
		f.thorough = time.Now()
		job.states, f.dirty = f.dirty, nil
		f.serving, f.asked = f.asked, nil
	} else {
		least := max(int64(a.cfg.LeastPages)*pageBytes/consumequeue.UnitBytes, 1)
		f.dirty = slices.DeleteFunc(f.dirty, func(st *queueState) bool {
			enough := st.queue.Pending() >= least
			if enough {
				job.states = append(job.states, st)
			}
			return enough
		})
	}
	job.all = len(f.dirty) == 0 && a.whole()
	for _, st := range job.states {
		st.dirty = false
	}
	f.running = job
	if len(job.states) == 0 {
		a.flushDone(flushed{job: job})
		return
	}
	self := a.self
	go func() { self.Send(job.run()) }()
}

const (
	// inOneGo is how many queues are written before the first of them is synced. The file system then makes what it has noted of all
	// of them durable with the first sync, and each of the others waits for its own units only. Fewer than there may be open files.
	inOneGo = 128
	// diskWaiters is how many goroutines more than one wait for the disk at a time, one for so many queues: what it has to note of new files and
	// folders becomes durable for all of them together.
	diskWaiters, queuesOfOne = 16, 8
)

// run writes and syncs the queues of a job.
func (j *flushJob) run() flushed {
	done := flushed{job: j}
	for part := range slices.Chunk(j.states, inOneGo) {
		came := make([]struct{ writeErr, syncErr error }, len(part))
		waiters := 1 + min(diskWaiters, len(part)/queuesOfOne)
		_ = consumequeue.InParallel(len(part), waiters, func(i int) error {
			came[i].syncErr = actors.Protect("write a consume queue", func() error {
				came[i].writeErr = part[i].queue.Write()
				return nil
			})
			return nil
		})
		_ = consumequeue.InParallel(len(part), waiters, func(i int) error {
			if came[i].writeErr == nil && came[i].syncErr == nil {
				came[i].syncErr = actors.Protect("sync a consume queue", func() (err error) {
					came[i].writeErr, err = syncQueue(part[i].queue)
					return err
				})
			}
			return nil
		})
		for i, c := range came {
			if c.writeErr != nil || c.syncErr != nil {
				done.writeErr, done.syncErr = errors.Join(done.writeErr, c.writeErr), errors.Join(done.syncErr, c.syncErr)
				done.failed = append(done.failed, part[i])
			}
		}
	}
	return done
}

// syncQueue syncs what has been written of a queue, not what has come meanwhile: that would have to be noted anew. A sync that fails,
// unlike a write or the opening of a file, fails again when it is repeated.
func syncQueue(q *consumequeue.Queue) (writeErr, syncErr error) {
	if q.SyncWritten() == nil {
		return nil, nil
	}
	if err := q.Write(); err != nil {
		return err, nil
	}
	return nil, q.Sync()
}

func (a *QueueBuilder) flushDone(m flushed) {
	f := &a.flush
	f.running = nil
	if a.failed != nil {
		return
	}
	if m.syncErr != nil {
		a.fail(m.syncErr)
		a.buildHeld()
		return
	}
	for _, st := range m.failed {
		if a.queues[st.key] == st {
			f.touch(st)
		}
	}
	a.countPending()
	if len(m.job.states) > 0 {
		a.pauseAfter(m.writeErr)
	}
	if m.writeErr == nil && m.job.all {
		a.tellFlusher(m.job.ms)
	}
	for _, q := range f.serving {
		q.Answer.Complete(m.job.ms, m.writeErr)
	}
	f.serving = nil
	if m.job.thorough {
		a.cool()
	}
	if len(f.asked) > 0 {
		a.startFlush(true)
	}
	a.armTick()
	if len(a.held) > 0 {
		a.buildHeld()
	}
}

// pauseAfter lengthens the pause between attempts while writing fails.
func (a *QueueBuilder) pauseAfter(err error) {
	f := &a.flush
	if err == nil {
		f.pause = a.cfg.Interval
		if f.short {
			f.short = false
			a.cfg.Space.Send(messages.SpaceProblem{Part: part})
		}
		return
	}
	said := f.short
	if f.short = errors.Is(err, vfs.ErrNoSpace); f.short {
		a.cfg.Space.Send(messages.SpaceProblem{Part: part, Err: err, Refuse: true})
	}
	if !said || !f.short {
		a.cfg.Logger.Error().Err(err).Dur("retry_in", f.pause).Int64("pending", f.pending).
			Msg("writing consume queues failed: their units stay in memory, it is tried again")
	}
	longest := maxRetryPause
	if f.short {
		longest = maxSpacePause // a deletion helps at once
	}
	f.pause = min(2*f.pause, max(longest, a.cfg.Interval))
}

// part is how the queue builder is called in messages.SpaceProblem.
const part = "consume queues"

func (a *QueueBuilder) countPending() {
	a.flush.pending = 0
	for _, st := range a.flush.dirty {
		a.flush.pending += st.queue.Pending()
	}
}

// tellFlusher says what is durable, unless a queue lacks units meanwhile: after a crash they must be found again.
func (a *QueueBuilder) tellFlusher(ms int64) {
	if !a.whole() || ms == a.flush.toldMs {
		return
	}
	a.flush.toldMs = ms
	a.cfg.Flusher.Send(messages.QueuesFlushed{StoreTimestampMs: a.cfg.Durable.set(a.cfg.Shard, ms)})
}

// cool gives back the memory of queues that have not grown since the last thorough round.
func (a *QueueBuilder) cool() {
	a.flush.warm = slices.DeleteFunc(a.flush.warm, func(st *queueState) bool {
		end := st.queue.Max()
		if st.dirty || end != st.seenEnd {
			st.seenEnd = end
			return false
		}
		st.queue.Cool()
		st.warm = false
		return true
	})
}
