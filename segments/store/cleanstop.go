package store

import (
	"fmt"
	"hash/crc32"
	"hash/fnv"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/checkpoint"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/vfs"
)

const (
	// lastBytes is how much of the log's end a clean-stop manifest vouches for.
	lastBytes = 16 << 10
	// behindBytes is how far behind the log's end it is looked whether somebody has gone on.
	behindBytes = 64 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// planAsLeft makes the plan of a store that is as its last clean stop has left it: there is nothing to do, and the log need
// not be read. It is false when that is not known, above all when RocketMQ has run in between. lacking: index files have gone since, though
// the log is the same.
func (s *Store) planAsLeft() (p Plan, asLeft, lacking bool, err error) {
	c, ok, err := checkpoint.LoadCleanStop(s.Disk, s.Params.CleanStopPath())
	if err != nil {
		return Plan{}, false, false, err
	}
	s.generation = c.Generation
	if !ok || !s.LastExitClean || s.options.FullScan || s.options.RebuildIndex {
		return Plan{}, false, false, nil
	}
	now, err := s.cleanStop(messages.PhysicalOffset(c.LogEnd), c.StoreMs)
	if err != nil || now == nil || *now != c || !s.endsAt(messages.PhysicalOffset(c.LogEnd)) || s.damaged() {
		return Plan{}, false, err == nil && now != nil && s.lacksIndex(&c, now), err
	}
	end := messages.PhysicalOffset(c.LogEnd)
	return Plan{
		Clean: true, ScanFrom: end, Min: s.Log.Min(), End: end, LastStoreMs: c.StoreMs, Tail: Span{From: end, To: end},
		QueuesFrom: end, Index: IndexStep{Cut: -1, From: end},
	}, true, false, nil
}

// lacksIndex tells whether index files are missing in front of the last one, which nothing else would show: the log is as it was left.
// Files that are only damaged are dropped one by one.
func (s *Store) lacksIndex(left, now *checkpoint.CleanStop) bool {
	if s.Index == nil || now.LogMin != left.LogMin || now.LastCRC != left.LastCRC || now.IndexEnd != left.IndexEnd {
		return false
	}
	missing := left.IndexFiles - now.IndexFiles - int64(len(s.Index.Damaged()))
	if missing > 0 {
		s.tell(Event{What: MissingIndex, Path: s.Params.IndexDir(), Err: fmt.Errorf("%d files are missing", missing)})
	}
	return missing > 0
}

// saveCleanStop describes the store as it is.
func (s *Store) saveCleanStop() error {
	s.generation++
	c, err := s.cleanStop(s.Log.End(), s.Log.StoreTimestampMs())
	if err != nil || c == nil {
		return err
	}
	return checkpoint.SaveCleanStop(s.Disk, s.Params.CleanStopPath(), *c)
}

// cleanStop describes a store whose log has an end; nil when there is no such log.
func (s *Store) cleanStop(end messages.PhysicalOffset, storeMs int64) (*checkpoint.CleanStop, error) {
	seg := s.Log.View().Find(int64(end) - 1)
	if seg == nil {
		return nil, nil
	}
	to := int64(end) - seg.Start()
	n := min(to, lastBytes)
	c := &checkpoint.CleanStop{
		Generation: s.generation, LogMin: int64(s.Log.Min()), LogEnd: int64(end), StoreMs: storeMs, LastBytes: n, IndexEnd: -1,
		Queues: int64(s.Queues.Len()),
	}
	if s.Index != nil {
		c.IndexFiles, c.IndexEnd = int64(s.Index.Len()), int64(s.Index.EndPhysical())
	}
	s.Queues.Each(func(key messages.QueueKey, q *consumequeue.Queue) {
		h := fnv.New64a()
		fmt.Fprintf(h, "%s/%d %d %d", key.Topic, key.QueueID, q.Max(), q.PhysicalEnd())
		c.QueueSum += h.Sum64() // a sum, since they come in no order
	})
	return c, vfs.Guard(seg.Path(), func() error {
		c.LastCRC = crc32.Checksum(seg.Data()[to-n:to], castagnoli)
		return nil
	})
}

// endsAt tells whether nothing stands behind a place in the log.
func (s *Store) endsAt(end messages.PhysicalOffset) bool {
	last := s.Log.View().Last()
	to := int64(end) - last.Start()
	if to < 0 || to > last.Size() {
		return false
	}
	empty := false
	err := vfs.Guard(last.Path(), func() error {
		b := last.Data()[to:]
		b = b[:min(len(b), behindBytes)]
		empty = zeros(b) == len(b)
		return nil
	})
	return err == nil && empty
}

// damaged tells whether a queue or an index file is known to be damaged.
func (s *Store) damaged() bool {
	found := s.Index != nil && len(s.Index.Damaged()) > 0
	s.Queues.Each(func(_ messages.QueueKey, q *consumequeue.Queue) { found = found || q.Damaged() != nil })
	return found
}
