package cleaner

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
)

// flushWait bounds how long a round waits for the queues to be durable before it deletes what they were built from.
const flushWait = 30 * time.Second

// leaving is a segment that is out of the log, but whose file is still there.
type leaving struct {
	path  string
	since time.Time
	left  atomic.Bool // the last reader has gone
}

// round is one round of cleaning, on a goroutine of its own. Rounds follow one another; what they share belongs to the one
// that runs.
type round struct {
	cfg     Config
	policy  Policy
	plan    Situation // what is known before the round looks
	sweep   bool      // only delete files that wait for it
	told    func()    // the last reader of a segment has gone
	leaving []*leaving
	removed int64                   // files that have been deleted
	failed  time.Time               // of the last attempt to delete a file
	raised  messages.PhysicalOffset // the queues' minimums are those of a log that begins here
	min     messages.PhysicalOffset // queue and index files too
	stalled bool                    // what was to be deleted was not

	done Cleaned
}

// Cleaned is what rounds have done so far.
type Cleaned struct {
	Segments, Unexpired, Unread, QueueFiles int64
	Hanging                                 int // segments whose files wait for their readers

	WaitsFor string // the group and queue that keep files which have expired; empty: none does
}

// run does the round and returns the errors that it has met. The context ends it early.
func (r *round) run(ctx context.Context) error {
	var errs []error
	if r.sweep {
		err := r.removeLeft(ctx)
		r.done.Hanging = len(r.leaving)
		return err
	}
	r.stalled = true // should it not come to that
	r.plan.Disks = look(r.cfg.Disk, r.cfg.Folders)
	r.plan.Segments, r.plan.Leaving = r.oldest(), len(r.leaving)
	topics, err := r.topics(ctx)
	errs = append(errs, err, r.markUnread(topics))
	plan, err := r.decide(ctx)
	errs = append(errs, err)
	err = nil
	if plan.Delete > 0 {
		err = r.delete(ctx, plan)
	}
	r.stalled = err != nil
	errs = append(errs, err)
	least := r.cfg.Log.Min()
	if least > r.raised { // first, so that nobody is shown what is gone while files are being deleted
		errs = append(errs, r.raiseMins(least))
	}
	errs = append(errs, r.removeLeft(ctx))
	if least > r.min {
		errs = append(errs, r.align(ctx, least))
	}
	errs = append(errs, r.expire(ctx, topics))
	r.done.Hanging = len(r.leaving)
	return errors.Join(errs...)
}

// decide is the policy's plan, or that of somebody else.
func (r *round) decide(ctx context.Context) (Plan, error) {
	if r.cfg.Decide == nil {
		return r.policy.Plan(r.plan), nil
	}
	oldest, err := r.cfg.Decide(ctx, r.plan)
	if err != nil {
		return r.policy.Plan(r.plan), fmt.Errorf("the retention decides what is deleted: %w", err)
	}
	return Plan{Delete: min(oldest, len(r.plan.Segments)), Why: "the cleaner of the user's own says so"}, nil
}

// oldest describes the segments that may go, as many as a round may take.
func (r *round) oldest() []OldSegment {
	view := r.cfg.Log.View()
	var all []OldSegment
	for i := 0; i < view.Len()-1 && len(all) < maxRound; i++ {
		seg := view.At(i)
		all = append(all, OldSegment{
			End: messages.PhysicalOffset(seg.Start() + seg.Size()), NewestMs: r.newest(view, i),
		})
	}
	return all
}

// newest is the store time (ms) of the record behind a segment, which no record in it is later than; that of the file when
// the record can't be read.
func (r *round) newest(view *segments.View, i int) int64 {
	for next := i + 1; next < view.Len(); next++ { // one that begins with a closed hole tells nothing
		if ms := firstMs(view.At(next)); ms > 0 {
			return ms
		}
	}
	seg := view.At(i)
	e, err := r.cfg.Disk.Stat(seg.Path())
	if err != nil {
		return r.plan.Now.UnixMilli() // not expired, as far as is known
	}
	return e.ModTime.UnixMilli()
}

// firstMs is the store time of the record with which a segment begins, 0 when that cannot be told.
func firstMs(seg *segments.Segment) (ms int64) {
	if !seg.Hold() {
		return 0
	}
	defer seg.Release()
	err := vfs.Guard(seg.Path(), func() error {
		rec, kind, err := record.Parse(seg.Data()[:seg.Wrote()], false)
		if err == nil && kind == record.KindMessage && rec.PhysicalOffset == messages.PhysicalOffset(seg.Start()) {
			ms = rec.StoreTimestampMs
		}
		return err
	})
	if err != nil {
		return 0
	}
	return ms
}

// delete takes segments out of the log.
func (r *round) delete(ctx context.Context, plan Plan) error {
	// What the queues have of these records can't be built again.
	if err := r.flushQueues(ctx); err != nil && !errors.Is(err, vfs.ErrNoSpace) {
		return fmt.Errorf("delete segments: flush the consume queues first: %w", err)
	}
	if err := r.cfg.Keep(ctx, r.plan.Segments[plan.Delete-1].End); err != nil {
		return fmt.Errorf("delete segments: note where consume queues go on that there is no room for: %w", err)
	}
	r.cfg.Logger.Info().Str("why", plan.Why).Int("segments", plan.Delete).Int("not_expired", plan.Unexpired).
		Msg("deleting the oldest commit-log files")
	if plan.Unread > 0 {
		r.cfg.Logger.Warn().Int("segments", plan.Unread).Int("keepUnreadMaxUsedSpaceRatio", r.policy.UnreadMaxUsed).
			Msg("the disk is too full to keep commit-log files for consumer groups that have not read them")
	}
	for i := range plan.Delete {
		seg := r.cfg.Log.DropFirst(r.plan.Safe)
		if seg == nil {
			return nil
		}
		r.leave(seg)
		r.done.Segments++
		switch {
		case i >= plan.Delete-plan.Unexpired:
			r.done.Unexpired++
		case r.plan.Segments[i].Unread:
			r.done.Unread++
		}
	}
	return nil
}

func (r *round) flushQueues(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, flushWait)
	defer cancel()
	answer := messages.NewAnswer[int64]()
	r.cfg.QueueBuilder.Send(messages.FlushQueues{Answer: answer})
	_, err := answer.Wait(ctx)
	return err
}

// pause waits; false when the context has ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// leave gives a segment up: its last reader unmaps it.
func (r *round) leave(seg *segments.Segment) {
	l := &leaving{path: seg.Path(), since: r.cfg.Now()}
	r.leaving = append(r.leaving, l)
	log, told := r.cfg.Logger, r.told
	seg.Retire(func(err error) {
		if err != nil {
			log.Error().Err(err).Str("file", l.path).Msg("closing a deleted commit-log file failed")
		}
		l.left.Store(true)
		told()
	})
}

// removeLeft deletes files in order, with a pause between them: up to the first that somebody still reads, and for not too long.
func (r *round) removeLeft(ctx context.Context) error {
	for first := true; r.mayRemove(); first = false {
		if !first && !pause(ctx, r.cfg.FilePause) {
			return nil
		}
		l, now := r.leaving[0], r.cfg.Now()
		if err := removeDurably(r.cfg.Disk, l.path); err != nil {
			r.failed = now
			return fmt.Errorf("delete commit-log file, again in %v: %w", r.cfg.RedeleteInterval, err)
		}
		if !l.left.Load() {
			r.cfg.Logger.Warn().Str("file", l.path).Dur("held", now.Sub(l.since)).
				Msg("a commit-log file was deleted that is still being read: its room comes back with the last reader")
		}
		r.failed = time.Time{}
		r.removed++
		r.leaving = r.leaving[1:]
	}
	return nil
}

// mayRemove tells whether the file that is next in order may be deleted now.
func (r *round) mayRemove() bool {
	if len(r.leaving) == 0 {
		return false
	}
	l, now := r.leaving[0], r.cfg.Now()
	if !l.left.Load() && now.Sub(l.since) < r.cfg.DestroyForcibly {
		return false
	}
	return r.failed.IsZero() || now.Sub(r.failed) >= r.cfg.RedeleteInterval
}

func removeDurably(disk vfs.Disk, name string) error {
	if err := vfs.RemoveIfThere(disk, name); err != nil {
		return err
	}
	return disk.SyncDir(path.Dir(name))
}

// eachQueue calls fn for every queue until it says that the round is over, and returns all errors.
func (r *round) eachQueue(fn func(*consumequeue.Queue) (bool, error)) error {
	var errs []error
	for _, q := range r.cfg.Queues.InOrder(func(*consumequeue.Queue) bool { return true }) {
		goOn, err := fn(q)
		if errs = append(errs, err); !goOn {
			break
		}
	}
	return errors.Join(errs...)
}

// raiseMins makes the queues begin where the log does (spec/store.md §8.7).
func (r *round) raiseMins(least messages.PhysicalOffset) error {
	err := r.eachQueue(func(q *consumequeue.Queue) (bool, error) {
		if err := q.SetMin(least); err != nil {
			return true, fmt.Errorf("raise the minimum of %s/%d: %w", q.Key().Topic, q.Key().QueueID, err)
		}
		return true, nil
	})
	if err == nil {
		r.raised = least
	}
	return err
}

// removeQueueFiles deletes the files of a queue that name only what is gone; false when the round is over.
func (r *round) removeQueueFiles(ctx context.Context, q *consumequeue.Queue) (goOn bool, err error) {
	n, err := q.DeleteExpired()
	if err == nil && n > 0 {
		err = q.SyncWritten()
	}
	r.done.QueueFiles += int64(n)
	return n == 0 || pause(ctx, r.cfg.QueuePause), err
}

// align deletes the files of queues and index that name only what is gone (spec/store.md §9.4).
func (r *round) align(ctx context.Context, least messages.PhysicalOffset) error {
	ended := false
	err := r.eachQueue(func(q *consumequeue.Queue) (goOn bool, err error) {
		goOn, err = r.removeQueueFiles(ctx, q)
		ended = !goOn
		return goOn, err
	})
	r.cfg.Indexer.Send(messages.ExpireIndex{Below: least})
	if err == nil && !ended {
		r.min = least
	}
	return err
}
