package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/checkpoint"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/index"
	"github.com/actormq/actormq/segments/vfs"
)

// lockText is what RocketMQ writes into the lock file.
const lockText = "lock"

// takeLock keeps every other holder out, before anything is read (spec/store.md §16, W7): of the store, and of the log,
// which may have a folder of its own that another store is told to use too. The text is written before, since on some
// systems closing any descriptor of the file gives the lock up.
func (s *Store) takeLock() error {
	if err := s.Disk.MkdirAll(s.Params.Dir); err != nil {
		return err
	}
	if err := s.writeLockFile(); err != nil {
		return err
	}
	var err error
	if s.lock, err = s.Disk.Lock(s.Params.LockPath()); err != nil {
		return err
	}
	if err = s.Disk.MkdirAll(s.Params.CommitLogDir); err != nil {
		return err
	}
	s.logLock, err = s.Disk.Lock(s.Params.CommitLogDir) // the folder: RocketMQ takes every file in it for a segment
	return err
}

func (s *Store) writeLockFile() error {
	name := s.Params.LockPath()
	f, err := s.Disk.Open(name, true)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = s.Disk.Create(name)
	}
	if errors.Is(err, fs.ErrExist) {
		f, err = s.Disk.Open(name, true) // somebody else was quicker
	}
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err == nil && size != int64(len(lockText)) {
		_, err = f.WriteAt([]byte(lockText), 0)
	}
	return errors.Join(err, f.Close())
}

// load opens all parts.
func (s *Store) load() error {
	p := s.Params
	abort, err := checkpoint.HasAbort(s.Disk, p.AbortPath())
	if err != nil {
		return err
	}
	s.LastExitClean = !abort
	if err := s.proveLog(); err != nil {
		return err
	}
	if err := s.loadLog(); err != nil {
		return err
	}
	s.queueDoubt = doubt{disk: s.Disk, path: p.UnprovenQueuesPath(), what: "consume queues"}
	if err := s.queueDoubt.load(); err != nil {
		return err
	}
	if s.queueDoubt.from != proven {
		s.tell(Event{What: UnprovenQueues, Path: p.UnprovenQueuesPath(), From: int64(min(s.queueDoubt.from, s.Log.End()))})
	}
	queues := p.QueueOptions()
	queues.ExtClean, queues.OnUnproven = s.LastExitClean && s.queueDoubt.from == proven, s.queuesUnproven
	if s.Queues, err = consumequeue.OpenTable(s.Disk, p.ConsumeQueueDir(), queues); err != nil {
		return err
	}
	if err := errors.Join(s.loadFloors(), s.loadFurther()); err != nil {
		return err
	}
	for _, name := range s.Queues.Ignored() {
		s.tell(Event{What: FoundForeign, Path: name})
	}
	if p.MessageIndex {
		files := p.IndexParams(s.now)
		files.Found = s.fetch
		if s.Index, err = index.Open(s.Disk, p.IndexDir(), files); err != nil {
			return err
		}
	}
	if err := s.loadIndexDoubt(); err != nil {
		return err
	}
	var damage *segments.CorruptionError
	if s.Checkpoint, err = checkpoint.Load(s.Disk, p.CheckpointPath()); errors.As(err, &damage) {
		s.tell(Event{What: DamagedCheckpoint, Path: p.CheckpointPath(), Err: err})
		return nil
	}
	return err
}

// fetchBytes is how much of a record is fetched as soon as the index names it, before its size is known: most are smaller.
const fetchBytes = 1536

func (s *Store) fetch(at messages.PhysicalOffset) { s.Log.Fetch(at, fetchBytes) }

// loadAttempts bounds how often the log is looked at again whose segments vanish meanwhile: a reader of a running node's
// directory sees that.
const loadAttempts = 5

// loadLog opens the commit log. An empty or short last file, as it is left when the process dies while making it, is
// mended (RocketMQ does not start then); any other file of a wrong size means wrong parameters.
func (s *Store) loadLog() error {
	for vanished := 0; ; {
		log, foreign, err := commitlog.Open(s.Disk, s.Params.CommitLogDir, s.Params.SegmentBytes)
		if errors.Is(err, fs.ErrNotExist) && vanished < loadAttempts {
			vanished++
			continue
		}
		if err != nil {
			return err
		}
		mended, err := s.mendLog(log, foreign)
		if err == nil && !mended {
			s.Log = log
			return nil
		}
		if err = errors.Join(err, log.Close()); err != nil {
			return err
		}
	}
}

// ErrNoLog: there are consume queues with messages, but no segment of the log that they are about: a disk that is not mounted, or
// another folder. Nothing is changed.
var ErrNoLog = errors.New("the commit log is gone")

// missesLog refuses a store without a log: it would begin at 0 again, and the groups of its consumers with it.
func (s *Store) missesLog() error {
	if s.Log.View().Len() > 0 {
		return nil
	}
	var err error
	s.Queues.Each(func(key messages.QueueKey, q *consumequeue.Queue) {
		if first, end := q.Range(); err == nil && first < end {
			err = fmt.Errorf("%w: %s has no segment, and %s/%d has messages %d to %d: mount its disk, put the files back, or give them up with"+
				" actormq store repair --apply", ErrNoLog, s.Params.CommitLogDir, key.Topic, key.QueueID, first, end-1)
		}
	})
	if err != nil && (s.options.LogIsGone || s.scratch) {
		s.tell(Event{What: EmptyLog, Path: s.Params.CommitLogDir, Err: err})
		return nil
	}
	return err
}

// mendLog looks at the files that are no segments; it is true when it has changed one.
func (s *Store) mendLog(log *commitlog.Log, foreign []commitlog.Foreign) (bool, error) {
	for _, f := range slices.Backward(foreign) {
		start, err := segments.ParseName(f.Name)
		if err != nil {
			continue
		}
		last := log.View().Last()
		if !errors.Is(f.Reason, segments.ErrSize) || f.Size >= s.Params.SegmentBytes || last != nil && last.Start() > start ||
			last == nil && f.Size > 0 {
			return false, fmt.Errorf("%s: %w", s.Params.CommitLogDir, f.Reason)
		}
		return true, s.mendSegment(path.Join(s.Params.CommitLogDir, f.Name), f)
	}
	for _, f := range foreign {
		s.tell(Event{What: FoundForeign, Path: path.Join(s.Params.CommitLogDir, f.Name), Err: f.Reason})
	}
	return false, nil
}

// mendSegment removes an empty file and extends a short one.
func (s *Store) mendSegment(name string, f commitlog.Foreign) error {
	s.tell(Event{What: MendedSegment, Path: name, Err: f.Reason})
	if f.Size == 0 {
		if err := s.Disk.Remove(name); err != nil {
			return err
		}
		return s.Disk.SyncDir(s.Params.CommitLogDir)
	}
	file, err := s.Disk.Open(name, true)
	if err != nil {
		return err
	}
	err = file.Allocate(0, s.Params.SegmentBytes)
	if errors.Is(err, vfs.ErrNoSpace) { // with a hole, which takes none: reserveTail says that there is no room
		err = file.Truncate(s.Params.SegmentBytes)
	}
	if err == nil {
		err = file.DataSync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("extend short segment: %w", err)
	}
	return nil
}
