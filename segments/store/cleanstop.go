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
// not be read. It is false when that is not known, above all when RocketMQ has run in between; then
// it tells what the manifest still says of the index.
func (s *Store) planAsLeft() (p Plan, asLeft bool, w indexWord, err error) {
	w.complete = -1
	c, ok, err := checkpoint.LoadCleanStop(s.Disk, s.Params.CleanStopPath())
	if err != nil {
		return Plan{}, false, w, err
	}
	s.generation = c.Generation
	if !ok || !s.LastExitClean || s.options.FullScan || s.options.RebuildIndex || s.queueDoubt.from != proven ||
		s.Index != nil && s.indexDoubt.from != proven {
		return Plan{}, false, w, nil
	}
	now, err := s.cleanStop(messages.PhysicalOffset(c.LogEnd), c.StoreMs)
	if err != nil || now == nil || *now != c || !s.endsAt(messages.PhysicalOffset(c.LogEnd)) || s.damaged() {
		if err == nil && now != nil {
			w = s.wordOfIndex(&c, now)
		}
		return Plan{}, false, w, err
	}
	end := messages.PhysicalOffset(c.LogEnd)
	return Plan{
		Clean: true, ScanFrom: end, Min: s.Log.Min(), End: end, LastStoreMs: c.StoreMs, Tail: Span{From: end, To: end},
		QueuesFrom: end, Index: IndexStep{Cut: -1, From: end, Doubt: proven},
	}, true, w, nil
}

// indexWord is what the manifest of the last clean stop says of the index.
type indexWord struct {
	lacking  bool                    // files in front of the last one have gone since, which nothing else would show
	complete messages.PhysicalOffset // every record in front of it is indexed; -1: not known
}

// wordOfIndex compares the index with what was left, provided that the log is as it was. Files that are only damaged are dropped
// one by one.
func (s *Store) wordOfIndex(left, now *checkpoint.CleanStop) indexWord {
	w := indexWord{complete: -1}
	if s.Index == nil || now.LastCRC != left.LastCRC || now.IndexEnd != left.IndexEnd {
		return w
	}
	if now.IndexFiles == left.IndexFiles {
		w.complete = messages.PhysicalOffset(left.LogEnd)
		return w
	}
	missing := left.IndexFiles - now.IndexFiles - int64(len(s.Index.Damaged()))
	if w.lacking = missing > 0 && now.LogMin == left.LogMin; w.lacking {
		s.tell(Event{What: MissingIndex, Path: s.Params.IndexDir(), Err: fmt.Errorf("%d files are missing", missing)})
	}
	return w
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
		Generation: s.generation, LogMin: int64(s.Log.Min()), LogEnd: int64(end), StoreMs: storeMs, LastBytes: n,
		IndexFiles: -1, IndexEnd: -1, Queues: int64(s.Queues.Len()),
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
	if to <= 0 || to > last.Size() { // at 0 the last segment is empty: it goes, which this plan does not do
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

// damaged tells whether a queue or an index file is known to be damaged, or a queue ends in front of where it was noted to go on.
func (s *Store) damaged() bool {
	found := s.Index != nil && len(s.Index.Damaged()) > 0
	s.Queues.Each(func(key messages.QueueKey, q *consumequeue.Queue) {
		found = found || q.Damaged() != nil || q.Max() < s.floors.next(key)
	})
	return found
}
