package system

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/cleaner"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
)

// ballastName is the file in the store's folder that only takes room. RocketMQ ignores it.
const ballastName = "ballast"

func (s *Store) newCleaner() *cleaner.Actor {
	o := s.opt
	folders := []cleaner.DiskUse{
		{What: "commit log", Dir: o.CommitLogDir, Log: true}, {What: "consume queues", Dir: s.files.Params.ConsumeQueueDir()},
	}
	if s.index != nil {
		folders = append(folders, cleaner.DiskUse{What: "index", Dir: s.files.Params.IndexDir()})
	}
	var decide func(context.Context, cleaner.Situation) (int, error)
	if s.opt.replaces(PartCleaner) {
		decide = s.planCleaning
	}
	return cleaner.New(cleaner.Config{
		Decide: decide, Readers: s.slowestReaders, Since: s.since, Expire: s.noteExpired, Keep: s.noteUnwritten,
		Disk: o.Disk, Log: s.log, Queues: s.queues, Folders: folders,
		Policy:      cleaner.PolicyOf(o.Retention, o.SegmentBytes),
		BallastPath: path.Join(o.Dir, ballastName), BallastBytes: max(o.BallastBytes, 0),
		Safe: func() messages.PhysicalOffset {
			return min(messages.PhysicalOffset(s.dispatched.Load()), s.FlushedTo())
		},
		QueueBuilder: s.cast.address(actors.RoleQueueBuilder), Indexer: s.indexPeer(), Allocator: s.cast.address(actors.RoleAllocator),
		Interval: o.CleanInterval, FilePause: o.FilePause, QueuePause: o.QueuePause,
		DestroyForcibly: o.DestroyFileForcibly, RedeleteInterval: o.RedeleteInterval,
		OnFull: s.onFull, Logger: o.Logger,
	})
}

func (s *Store) indexPeer() actors.Peer {
	if s.index == nil {
		return actors.Peer{}
	}
	return s.cast.address(actors.RoleIndexer)
}

func (s *Store) spawnCleaner() error {
	_, err := s.cast.spawn(actors.RoleCleaner, s.cleaner, s.blocking(actors.RoleCleaner))
	return err
}

// Cleaning is what the cleaner last saw of the disk, and what it has deleted.
func (s *Store) Cleaning() cleaner.Status { return s.cleaner.Status() }

// DiskUse is how full the file systems of the commit log and of the consume queues are, in percent; -1 is unknown.
func (s *Store) DiskUse() (log, queues int) {
	log, queues = -1, -1
	for _, d := range s.Cleaning().Disks {
		switch {
		case d.Err != nil:
		case d.Log:
			log = d.Usage.UsedPercent()
		case queues < 0:
			queues = d.Usage.UsedPercent()
		}
	}
	return log, queues
}

// SetRetention changes when commit-log files are deleted; zero fields are set to their defaults. It holds from the next round of
// cleaning, and of checks of transactions, on, and until the store is closed. The error is ErrOptions, or why the store does not run.
func (s *Store) SetRetention(r messages.Retention) error {
	r = retentionDefaults(r)
	if err := validRetention(r); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if err := s.readable(); errors.Is(err, ErrStopped) { // what is not to be read for a while can have a retention
		return err
	}
	s.retention.Store(&r)
	s.cast.address(actors.RoleCleaner).Send(r)
	return nil
}

// Retention is what SetRetention has set last, else that of the options, defaults filled in.
func (s *Store) Retention() messages.Retention { return *s.retention.Load() }

// SetReaders says who knows how far consumer groups have read, for Retention.KeepUnread: a store has no groups. Until it is
// called nothing counts as read. One goroutine at a time calls the function, every CleanInterval.
func (s *Store) SetReaders(readers messages.Readers) { s.readers.Store(&readers) }

// noteExpired notes what has expired of topics with a retention of their own.
func (s *Store) noteExpired(ctx context.Context, below map[string]messages.PhysicalOffset) error {
	if s.readOnly != nil { // what is in memory only is gone with it
		return nil
	}
	done, err := s.exclusively(ctx)
	defer done()
	if err != nil {
		return err
	}
	return s.files.TopicsExpired(below)
}

// noteUnwritten notes where queues go on that are not durable, as there is no room, or that lack units, when all of their records are in front of a place
// and about to go: nothing else would tell the next start. A note of more than the queue has is corrected: as long as it has records nobody believes that.
func (s *Store) noteUnwritten(ctx context.Context, below messages.PhysicalOffset) error {
	if s.readOnly != nil || len(s.unwritten(below)) == 0 {
		return nil
	}
	done, err := s.exclusively(ctx)
	defer done()
	if err != nil {
		return err
	}
	next := s.unwritten(below) // once more: a deletion of their topic has ended meanwhile
	if len(next) == 0 {
		return nil
	}
	return s.files.OffsetsKept(next)
}

// unwritten is where queues go on whose records are all in front of a place, and whose files do not say it, or a note says something else.
func (s *Store) unwritten(below messages.PhysicalOffset) map[messages.QueueKey]messages.QueueOffset {
	next := map[messages.QueueKey]messages.QueueOffset{}
	s.queues.Each(func(key messages.QueueKey, q *consumequeue.Queue) {
		if at, end := q.GoesOn(); end >= 0 && end <= below && (!q.Durable() || q.Lacks() || s.files.KeptAt(key) > at) {
			next[key] = at
		}
	})
	return next
}

func (s *Store) slowestReaders(seen time.Duration) (map[messages.QueueKey]messages.Reader, bool) {
	readers := s.readers.Load()
	if readers == nil {
		return nil, false
	}
	return (*readers)(seen), true
}

// DeleteExpiredFiles has expired commit-log files deleted now, whatever the hour; it does not wait for that.
func (s *Store) DeleteExpiredFiles() error {
	if err := s.readable(); err != nil {
		return err
	}
	s.cast.address(actors.RoleCleaner).Send(messages.CleanNow{})
	return nil
}

// DeleteTopic deletes the queues of a topic: when it returns nil the deletion is durable. The next message of the topic,
// which may come while the topic is being deleted, has queue offset 0 (spec/store.md §7.8). Its records stay in the log
// until they expire, and can be read by their places and keys. A topic that has no queue is no error; the topic's configuration is not the
// store's business.
func (s *Store) DeleteTopic(ctx context.Context, topic string) error {
	if err := s.deleteTopic(ctx, topic); err != nil {
		return fmt.Errorf("delete topic %s: %w", topic, err)
	}
	return nil
}

func (s *Store) deleteTopic(ctx context.Context, topic string) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	done, err := s.exclusively(ctx)
	if err != nil {
		done()
		return err
	}
	// Once it has begun it is brought to its end, also for a caller who does not wait for that: the writer counts anew.
	deleted := make(chan error, 1)
	go func() {
		defer done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opt.StopTimeout)
		defer cancel()
		deleted <- actors.Protect("delete queues", func() error { return s.deleteQueues(ctx, topic) })
	}()
	select {
	case err := <-deleted:
		return err
	case <-ctx.Done():
		return fmt.Errorf("it goes on: %w", context.Cause(ctx))
	}
}

// deleteQueues tells builder and writer in the order in which nothing of the topic's new life is lost: the builder that queues
// may begin anew, the writer that they do, the builder that the old ones go.
func (s *Store) deleteQueues(ctx context.Context, topic string) error {
	if err := s.destroyTopic(ctx, topic, -1); err != nil {
		return err
	}
	forgotten := messages.NewAnswer[messages.PhysicalOffset]()
	s.cast.address(actors.RoleWriter).Send(messages.ForgetTopic{Topic: topic, Answer: forgotten})
	end, err := forgotten.Wait(ctx)
	if err != nil {
		return err
	}
	if err = s.cast.flush(ctx); err == nil { // a deletion may not outlive what was in front of it
		err = s.files.TopicDeleted(topic, end)
	}
	if waiting := s.cast.await(ctx, end); waiting != nil {
		return errors.Join(err, waiting)
	}
	return errors.Join(err, s.destroyTopic(ctx, topic, end))
}

// exclusively gives the caller the token of deletions; done gives it back.
func (s *Store) exclusively(ctx context.Context) (done func(), err error) {
	select {
	case s.deleting <- struct{}{}:
		return func() { <-s.deleting }, errors.Join(s.readable(), s.readOnly)
	case <-s.closed:
		return func() {}, ErrStopped
	case <-ctx.Done():
		return func() {}, context.Cause(ctx)
	}
}

// bounded gives a context without a deadline that of a stop: an actor that is stopped meanwhile may not answer.
func (s *Store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.opt.StopTimeout)
}

func (s *Store) destroyTopic(ctx context.Context, topic string, below messages.PhysicalOffset) error {
	answer := messages.NewAnswer[struct{}]()
	s.cast.address(actors.RoleQueueBuilder).Send(messages.DestroyTopic{Topic: topic, Below: below, Answer: answer})
	_, err := answer.Wait(ctx)
	return err
}

// DeleteUnusedTopics deletes the queues of every topic that used does not know, those of the store's own topics excepted
// (spec/store.md §7.8; the half topic is protected too, weakness W31 of the original).
func (s *Store) DeleteUnusedTopics(ctx context.Context, used func(topic string) bool) error {
	unused := map[string]bool{}
	s.queues.Each(func(key messages.QueueKey, _ *consumequeue.Queue) {
		if !used(key.Topic) && !ownTopic(key.Topic) {
			unused[key.Topic] = true
		}
	})
	var errs []error
	for topic := range unused {
		errs = append(errs, s.DeleteTopic(ctx, topic))
	}
	return errors.Join(errs...)
}

// ownTopic tells whether a topic's queues stay though nobody has configured it.
func ownTopic(topic string) bool {
	switch topic {
	case messages.TopicSchedule, messages.TopicTransactionHalf, messages.TopicTransactionOp, messages.TopicTransCheckMaxTime,
		messages.TopicClusterState, messages.TopicTimer:
		return true
	}
	return strings.HasPrefix(topic, messages.LMQTopicPrefix)
}

// DeleteExpiredQueues deletes the files of queues whose messages have all expired (spec/store.md §7.8). The offsets of such a
// queue go on where they were, so that groups that know them are not ahead of it (weakness W23 of the original).
func (s *Store) DeleteExpiredQueues(ctx context.Context) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	done, err := s.exclusively(ctx)
	defer done()
	if err != nil {
		return err
	}
	least := s.log.Min()
	expired := map[messages.QueueKey]messages.QueueOffset{}
	s.queues.Each(func(key messages.QueueKey, q *consumequeue.Queue) {
		if at, end := q.GoesOn(); end >= 0 && end <= least && key.Topic != messages.TopicSchedule {
			expired[key] = at
		}
	})
	if len(expired) == 0 {
		return nil
	}
	if err := s.files.OffsetsKept(expired); err != nil {
		return err
	}
	var errs []error
	for key := range expired {
		answer := messages.NewAnswer[struct{}]()
		s.cast.address(actors.RoleQueueBuilder).Send(messages.DestroyQueue{Queue: key, Below: least, KeepRange: true, Answer: answer})
		if _, err := answer.Wait(ctx); err != nil {
			errs = append(errs, fmt.Errorf("delete the expired queue %s/%d: %w", key.Topic, key.QueueID, err))
		}
	}
	return errors.Join(errs...)
}

// onFull raises and clears DISK_FULL.
func (s *Store) onFull(cause error) {
	if cause == nil {
		s.ClearFlag(messages.FlagDiskFull)
		return
	}
	s.SetFlag(messages.FlagDiskFull, cause)
}
