package store

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/checkpoint"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/index"
	"github.com/actormq/actormq/segments/vfs"
)

// Store is an open directory. Open returns it in order: queues and index have everything up to the end of the log, and
// all of it is durable. The parts follow their own rules for concurrent use; the methods are for one goroutine.
type Store struct {
	Params Params   // with the defaults filled in, and with MultiDispatch if the store has ever had such queues
	Disk   vfs.Disk // an overlay when opened read-only
	Log    *commitlog.Log
	Queues *consumequeue.Table
	Index  *index.Set // nil without Params.MessageIndex
	Delays messages.DelayLevels

	Checkpoint    checkpoint.Values                          // as it is on the disk
	QueueOffsets  map[messages.QueueKey]messages.QueueOffset // of the next message of each queue
	DispatchFrom  messages.PhysicalOffset                    // where the dispatcher goes on: the end of the log
	LastExitClean bool
	Report        Report
	// TailShort is why the rest of the last segment has no room on the disk; nil: it has.
	TailShort error

	options    Options
	blanks     []unknown // that this recovery has closed holes with
	kept       *keptKeys // of what this recovery has scanned; nil: none
	floors     floors
	floorsMu   sync.Mutex // guards floors once the store is open
	queueDoubt doubt
	indexDoubt doubt
	unwritten  bool // the disk was full: not all that recovery has built is in the files

	indexDurable bool         // all of the index, by the last sync
	indexOwed    func() error // marks the index, for which there was no room; nil: it is marked, or need not be
	furtherNoted bool         // the marker of further queues is there

	generation int64 // of the last clean stop
	lock       io.Closer
	logLock    io.Closer        // of the log's folder
	overlay    *vfs.OverlayDisk // nil unless opened read-only or in memory
	scratch    bool             // changes are not meant to last: nothing has to be prepared for later
}

// Open locks the store in p.Dir, which is made when it is not there, loads it, and recovers it. While it is open `abort`
// exists; after an error nothing is open, and Open may be called again. A store that somebody else has open is refused
// with vfs.ErrLocked, one with other file sizes with segments.ErrSize.
func Open(disk vfs.Disk, p Params, o Options) (*Store, error) {
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := &Store{Params: p.WithDefaults(), Disk: disk, options: o}
	s.Delays, _ = messages.ParseDelayLevels(s.Params.DelayLevels) // Validate has looked at them
	if o.ReadOnly {
		s.overlay = vfs.Overlay(disk)
		s.Disk = s.overlay
	}
	_, s.scratch = s.Disk.(*vfs.OverlayDisk)
	if err := s.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", p.Dir, err), s.Close())
	}
	return s, nil
}

func (s *Store) open() error {
	if err := s.takeLock(); err != nil {
		return err
	}
	if s.options.InMemory && !s.scratch {
		s.overlay = vfs.Overlay(s.Disk)
		s.Disk, s.scratch = s.overlay, true
	}
	if err := s.giveUpBallast(); err != nil {
		return err
	}
	if err := s.load(); err != nil {
		return err
	}
	if err := s.missesLog(); err != nil {
		return err
	}
	plan, asLeft, word, err := s.planAsLeft()
	if s.Params.CutAt > 0 && plan.End > s.Params.CutAt {
		asLeft = false
	}
	if err == nil && !asLeft {
		l := loaded{
			log: s.Log, queues: s.Queues, floors: &s.floors, index: s.Index, checkpoint: s.Checkpoint, clean: s.LastExitClean,
			all: s.options.FullScan, indexDoubt: s.indexDoubt.from, indexed: word.complete, unproven: s.queueDoubt.from,
		}
		if s.options.RebuildIndex || word.lacking {
			l.indexDoubt = 0
		}
		plan, s.kept, err = makePlan(l, s.Params, &s.options)
	}
	if err != nil {
		return err
	}
	s.Report.Plan = plan
	if err := s.noteNewIndex(&plan); err != nil {
		return err
	}
	if err := s.setAbort(); err != nil {
		return err
	}
	if err := s.noteFurther(); err != nil {
		return err
	}
	if err := s.apply(&plan); err != nil {
		return err
	}
	s.kept = nil
	if !s.unwritten {
		if err := s.room(s.saveCheckpoint()); err != nil {
			return err
		}
		if err := s.queueDoubt.clear(); err != nil {
			return err
		}
	}
	if err := s.settleIndex(); err != nil {
		return err
	}
	if err := s.reserveTail(); err != nil {
		return err
	}
	s.DispatchFrom = s.Log.End()
	s.QueueOffsets = make(map[messages.QueueKey]messages.QueueOffset, s.Queues.Len())
	s.Queues.Each(func(key messages.QueueKey, q *consumequeue.Queue) { s.QueueOffsets[key] = q.Max() })
	return nil
}

// saveCheckpoint says that everything up to the last record is durable.
func (s *Store) saveCheckpoint() error {
	ms := s.Log.StoreTimestampMs()
	v := checkpoint.Values{PhysicMs: ms, LogicsMs: ms}
	if s.Index != nil {
		v.IndexMs = s.Index.FlushedTimestampMs()
	}
	if v == s.Checkpoint {
		return nil
	}
	if err := checkpoint.Save(s.Disk, s.Params.CheckpointPath(), v); err != nil {
		return err
	}
	s.Checkpoint = v
	return nil
}

// Close closes all files and gives the lock back. `abort` stays: what comes next recovers as after a crash. Nothing may be
// using the store any more.
func (s *Store) Close() error {
	var errs []error
	if s.Log != nil {
		errs = append(errs, s.Log.Close())
	}
	if s.Queues != nil {
		errs = append(errs, s.Queues.Close())
	}
	if s.Index != nil {
		errs = append(errs, s.Index.Close())
	}
	for _, lock := range []io.Closer{s.logLock, s.lock} {
		if lock != nil {
			errs = append(errs, lock.Close())
		}
	}
	if s.overlay != nil {
		errs = append(errs, s.overlay.Close())
	}
	s.Log, s.Queues, s.Index, s.logLock, s.lock, s.overlay = nil, nil, nil, nil, nil, nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close store %s: %w", s.Params.Dir, err)
	}
	return nil
}

// CloseClean makes everything durable, saves the checkpoint, removes `abort` and closes. The log must have been dispatched
// to its end, and nothing may be using the store any more. On an error `abort` stays.
func (s *Store) CloseClean() error {
	err := s.settle()
	if err != nil {
		err = fmt.Errorf("close store %s: %w", s.Params.Dir, err)
	}
	return errors.Join(err, s.Close())
}

func (s *Store) settle() error {
	// Everything but the last segments was synced before they were rolled, or by Open.
	from := s.Log.End() - messages.PhysicalOffset(2*s.Params.SegmentBytes)
	if err := s.syncLog(from); err != nil {
		return err
	}
	if err := errors.Join(s.syncQueues(nil), s.syncIndex()); err != nil {
		return err
	}
	if err := s.noteLacking(); err != nil {
		return err
	}
	if err := s.saveCheckpoint(); err != nil {
		return err
	}
	if s.indexOwed != nil { // without that `abort` has to stay: then the next start believes of the index what the checkpoint vouches for
		if err := s.indexOwed(); err != nil {
			return err
		}
	}
	if err := s.saveCleanStop(); err != nil && !errors.Is(err, vfs.ErrNoSpace) { // without it the next start reads the log
		return err
	}
	return checkpoint.ClearAbort(s.Disk, s.Params.AbortPath())
}

func (s *Store) now() time.Time {
	if s.options.Now != nil {
		return s.options.Now()
	}
	return time.Now()
}

// tell notes a finding.
func (s *Store) tell(e Event) {
	if len(s.Report.Events) < maxEvents {
		s.Report.Events = append(s.Report.Events, e)
	} else {
		s.Report.MoreEvents++
	}
	if s.options.Events != nil {
		s.options.Events(e)
	}
}
