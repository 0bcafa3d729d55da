package system

import (
	"context"
	"fmt"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/committer"
	"github.com/actormq/actormq/messages"
)

// TransientPool puts write buffers in front of the commit log's files (spec/store.md §3.8): a put is answered when it is in memory of
// the process, and readable once it is committed to the file. What is not committed yet is lost when the process ends, not
// only in a power cut. It has an effect with AsyncFlush, and not at a slave.
type TransientPool struct {
	TransientPoolEnable   bool          // transientStorePoolEnable
	TransientPoolSize     int           // transientStorePoolSize: buffers of SegmentBytes; default 5
	TransientPoolFailFast bool          // fastFailIfNoBufferInStorePool: no segment is made without a buffer
	CommitInterval        time.Duration // commitIntervalCommitLog; default 200 ms
	CommitLeastPages      int           // commitCommitLogLeastPages; default 4, -1: whatever there is
	CommitThorough        time.Duration // commitCommitLogThoroughInterval; default 200 ms
}

func (p *TransientPool) defaults() {
	def(&p.TransientPoolSize, 5)
	def(&p.CommitInterval, 200*time.Millisecond)
	def(&p.CommitLeastPages, 4)
	def(&p.CommitThorough, 200*time.Millisecond)
}

// Pooled tells whether the transient store pool has an effect: then a killed process loses what is not committed.
func (o Options) Pooled() bool {
	return o.TransientPoolEnable && o.FlushDiskType == AsyncFlush && o.Role != messages.Slave && o.Group == nil
}

// spawnCommitter starts the committer, if there is a transient store pool.
func (s *Store) spawnCommitter() error {
	o := s.opt
	if !o.Pooled() {
		return nil
	}
	s.written = actors.NewBell(s.cast.address(actors.RoleCommitter), messages.Announce(messages.LogGrown{}))
	a := committer.New(committer.Config{
		Log: s.log, Interval: o.CommitInterval, LeastPages: o.CommitLeastPages, ThoroughInterval: o.CommitThorough,
		Bell: s.written, Grown: append(s.followers(), s.grown), Flusher: s.peer(actors.RoleFlusher), Pool: s.peer(actors.RoleAllocator),
		Space: s.cast.address(actors.RoleCleaner), OnFailed: s.onFailed, Logger: o.Logger,
	})
	_, err := s.cast.spawn(actors.RoleCommitter, a, s.blocking(actors.RoleCommitter))
	return err
}

// commit makes everything readable that has been appended, and returns the end of the log then.
func (s *Store) commit(ctx context.Context) (messages.PhysicalOffset, error) {
	end := s.log.End()
	if s.written == nil || s.log.Written() == end {
		return end, nil
	}
	answer := messages.NewAnswer[messages.PhysicalOffset]()
	s.cast.send(actors.RoleCommitter, messages.CommitNow{Answer: answer})
	end, err := answer.Wait(ctx)
	if err != nil {
		return 0, fmt.Errorf("commit the commit log: %w", err)
	}
	return end, nil
}

// flushing is who is asked to make everything durable.
func (s *Store) flushing() actors.Peer { return s.cast.address(s.cast.flusher) }

// committed makes the record at an offset readable that has been answered already: whoever asks by offset has it from an answer,
// a producer that ends its transaction for one.
func (s *Store) committed(off messages.PhysicalOffset) error {
	if s.written == nil || off < s.log.End() || off >= s.log.Written() {
		return nil
	}
	ctx, cancel := s.bounded(context.Background())
	defer cancel()
	_, err := s.commit(ctx)
	return err
}

// sayPool says at start what a transient store pool costs, or that there is none though one is wanted.
func (s *Store) sayPool() {
	switch o := s.opt; {
	case o.Pooled():
		o.Logger.Warn().Dur("a_killed_process_may_lose", o.CommitThorough).
			Msg("the transient store pool is on: what is not committed to the files is lost when the process ends")
	case o.TransientPoolEnable:
		o.Logger.Warn().Str("role", o.Role.String()).Str("flush", o.FlushDiskType.String()).
			Msg("transientStorePoolEnable has no effect: the pool is for ASYNC_FLUSH, and neither for a slave nor in a group")
	}
}
