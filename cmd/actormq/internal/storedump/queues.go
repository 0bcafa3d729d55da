package storedump

import (
	"cmp"
	"slices"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
)

// examinedUnits is how many units one get looks at (spec/store.md §7.2).
const examinedUnits = 800

// queueReader reads messages as a broker answers a pull for one message.
type queueReader struct {
	store *store.Store
	q     *consumequeue.Queue
	read  *reading
}

// queues describes every queue with all its messages.
func queues(s *store.Store, read *reading) stream {
	var all []*consumequeue.Queue
	s.Queues.Each(func(_ messages.QueueKey, q *consumequeue.Queue) { all = append(all, q) })
	slices.SortFunc(all, func(a, b *consumequeue.Queue) int {
		return cmp.Or(compareUTF16(a.Key().Topic, b.Key().Topic), cmp.Compare(a.Key().QueueID, b.Key().QueueID))
	})
	return stream{none: len(all) == 0, each: func(yield func(any) error) error {
		for _, q := range all {
			if err := yield(queue(s, q, read)); err != nil {
				return err
			}
		}
		return nil
	}}
}

func queue(s *store.Store, q *consumequeue.Queue, read *reading) object {
	least, end := q.Range()
	r := queueReader{store: s, q: q, read: read}
	return object{
		{"topic", q.Key().Topic}, {"queueId", q.Key().QueueID}, {"minOffset", int64(least)}, {"maxOffset", int64(end)},
		{"messages", stream{none: least == end, each: func(yield func(any) error) error {
			for at := least; at < end; at++ {
				o, err := r.get(at)
				if err != nil {
					return err
				}
				if err := yield(o); err != nil {
					return err
				}
			}
			return nil
		}}},
	}
}

// get answers for one queue offset: its unit, and the first message at or behind it (spec/store.md §7.2, without filter).
func (r queueReader) get(at messages.QueueOffset) (object, error) {
	unit, err := r.unit(at)
	if err != nil {
		return nil, err
	}
	o := object{{"offset", int64(at)}, {"cq", object{
		{"phyOffset", int64(unit.PhysicalOffset)}, {"size", unit.Size}, {"tagsCode", unit.TagsCode},
	}}}
	r.read.add(int64(unit.Size))
	perFile := messages.QueueOffset(r.store.Params.ConsumeQueueFileBytes / consumequeue.UnitBytes)
	end := min(r.q.Max(), at-at%perFile+perFile, at+examinedUnits)
	status, next := messages.NoMatchedMessage, at
	skipTo := messages.PhysicalOffset(-1)
	for ; next < end; next++ {
		if unit, err = r.unit(next); err != nil {
			return nil, err
		}
		if unit.PhysicalOffset < skipTo {
			continue
		}
		msg, found, err := r.message(unit)
		if err != nil {
			return nil, err
		}
		if found {
			return append(o, field{"status", messages.Found.String()}, field{"next", int64(next + 1)}, field{"msg", msg}), nil
		}
		status = messages.MessageWasRemoving
		skipTo = r.store.Log.SegmentStart(unit.PhysicalOffset) + messages.PhysicalOffset(r.store.Params.SegmentBytes)
	}
	return append(o, field{"status", status.String()}, field{"next", int64(next)}), nil
}

func (r queueReader) unit(at messages.QueueOffset) (consumequeue.Unit, error) {
	var u [1]consumequeue.Unit
	_, err := r.q.Read(at, u[:])
	return u[0], err
}

// message describes what a unit names; not found: the log does not have these bytes. What they hold is shown whatever its
// checksum says, and as null when it is no record.
func (r queueReader) message(u consumequeue.Unit) (msg any, found bool, err error) {
	s, err := r.store.Log.Read(u.PhysicalOffset, int(u.Size))
	if err != nil {
		return nil, false, nil
	}
	defer s.Release()
	err = vfs.Guard(s.Path(), func() error {
		rec, kind, err := record.Parse(s.Bytes, false)
		if err == nil && kind == record.KindMessage && int(rec.Size) == len(s.Bytes) {
			msg = message(&rec, s.Bytes)
		}
		return nil
	})
	return msg, true, err
}
