package system

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
)

// ErrNoMessage: there is no message at the offset.
var ErrNoMessage = errors.New("no message there")

// MessageAt reads the message at a physical offset. Whatever the offset, only a whole record that says of itself that it
// stands there is returned (weakness W27 of the original); damage is a segments.CorruptionError.
func (s *Store) MessageAt(off messages.PhysicalOffset) (messages.StoredMessage, error) {
	var m messages.StoredMessage
	err := s.withRecord(off, true, func(r *record.Record) { m = r.Stored() })
	return m, err
}

// withRecord gives the record at a physical offset to fn, while its segment is held.
func (s *Store) withRecord(off messages.PhysicalOffset, checkCRC bool, fn func(*record.Record)) error {
	if err := s.readable(); err != nil {
		return err
	}
	if err := s.committed(off); err != nil {
		return err
	}
	slice, err := s.log.ReadFrom(off)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoMessage, err)
	}
	defer slice.Release()
	return vfs.Guard("read the commit log", func() error {
		var r record.Record
		err := recordAt(&r, slice, off, checkCRC)
		if err == nil {
			fn(&r)
		}
		return err
	})
}

// recordAt takes the record at a physical offset apart, where the slice begins; the error is one of MessageAt. It may fault.
func recordAt(r *record.Record, slice commitlog.Slice, off messages.PhysicalOffset, checkCRC bool) error {
	kind, err := r.Parse(slice.Bytes, checkCRC)
	switch {
	case errors.Is(err, record.ErrBadCRC) || errors.Is(err, record.ErrTorn):
		err = &segments.CorruptionError{File: slice.Path(), Offset: slice.Offset(), Err: err}
	case err != nil:
		err = fmt.Errorf("offset %d: %w: %w", off, ErrNoMessage, err)
	case kind != record.KindMessage:
		err = fmt.Errorf("offset %d is the end of a segment: %w", off, ErrNoMessage)
	case r.PhysicalOffset != off:
		err = fmt.Errorf("offset %d: the record says %d: %w", off, r.PhysicalOffset, ErrNoMessage)
	case checkCRC && r.Lost():
		err = fmt.Errorf("offset %d: the message was lost to damage: %w", off, ErrNoMessage)
	}
	return err
}

// Query finds messages of a topic by a key, the newest first. Only messages that carry the very key are returned, not
// others of the same hash.
func (s *Store) Query(ctx context.Context, q messages.QueryMessage) ([]messages.StoredMessage, error) {
	if err := s.readable(); err != nil {
		return nil, err
	}
	offsets, err := s.indexed(ctx, nil, q)
	if err != nil {
		return nil, err
	}
	var found []messages.StoredMessage
	for _, off := range offsets {
		if err := ctx.Err(); err != nil {
			return found, context.Cause(ctx)
		}
		m, err := s.MessageAt(off)
		if err != nil {
			s.unread(off, err)
			continue
		}
		if m.Topic == q.Topic && hasKey(m.Properties, q.Key) && m.StoreTimestampMs >= q.BeginMs && m.StoreTimestampMs <= q.EndMs {
			found = append(found, m)
		}
	}
	return found, nil
}

// indexed appends where the messages may be that a query asks for. The index knows seconds, so it is asked for a second more on
// both sides.
func (s *Store) indexed(ctx context.Context, dst []messages.PhysicalOffset, q messages.QueryMessage) ([]messages.PhysicalOffset, error) {
	if s.opt.replaces(PartIndex) {
		found, err := s.queryIndex(ctx, q)
		if err != nil {
			err = fmt.Errorf("query %s for key %s: %w", q.Topic, q.Key, err)
		}
		return append(dst, found...), err
	}
	if s.index == nil {
		return dst, nil
	}
	const slackMs = 1000
	begin, end := max(q.BeginMs-slackMs, 0), q.EndMs
	if end < end+slackMs {
		end += slackMs
	}
	offsets, err := s.index.AppendQuery(dst, q.Topic, q.Key, q.MaxMessages, begin, end)
	if err != nil {
		return dst, fmt.Errorf("query %s for key %s: %w", q.Topic, q.Key, err)
	}
	return offsets, nil
}

// unread notes why a message that the index names is not returned.
func (s *Store) unread(off messages.PhysicalOffset, err error) {
	if !errors.Is(err, ErrNoMessage) {
		s.opt.Logger.Warn().Err(err).Int64("offset", int64(off)).Msg("a message that the index names can't be read")
	}
}

func hasKey(p messages.Properties, key string) bool {
	keys, unique, _ := p.Dispatched()
	if unique == key && key != "" {
		return true
	}
	for word := range strings.SplitSeq(keys, " ") {
		if word == key {
			return true
		}
	}
	return false
}

// EarliestStoreTime is the store timestamp (ms) of a queue's first message; false when there is none.
func (s *Store) EarliestStoreTime(key messages.QueueKey) (int64, bool) {
	q := s.queues.Lookup(key)
	if q == nil {
		return 0, false
	}
	ms, err := s.storeTime(q, q.Min())
	return ms, err == nil
}

// StoreTime is the store timestamp (ms) of a message of a queue.
func (s *Store) StoreTime(key messages.QueueKey, at messages.QueueOffset) (int64, error) {
	q := s.queues.Lookup(key)
	if q == nil {
		return 0, fmt.Errorf("queue %s/%d: %w", key.Topic, key.QueueID, ErrNoMessage)
	}
	return s.storeTime(q, at)
}

func (s *Store) storeTime(q *consumequeue.Queue, at messages.QueueOffset) (int64, error) {
	var one [1]consumequeue.Unit
	n, err := q.Read(at, one[:])
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, fmt.Errorf("queue offset %d: %w", at, ErrNoMessage)
	}
	return s.timeOf(one[0].PhysicalOffset)
}

// timeOf is the store timestamp (ms) in the head of the record at a physical offset. What else is wrong with the record is for
// its reader to find; without a head that says where it stands, the error is one of MessageAt.
func (s *Store) timeOf(off messages.PhysicalOffset) (ms int64, err error) {
	if err := s.readable(); err != nil {
		return 0, err
	}
	if err := s.committed(off); err != nil {
		return 0, err
	}
	slice, err := s.log.ReadFrom(off)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNoMessage, err)
	}
	defer slice.Release()
	err = vfs.Guard("read the commit log", func() error {
		var ok bool
		if ms, ok = record.StoreTimestamp(slice.Bytes, off); ok {
			return nil
		}
		var r record.Record
		err := recordAt(&r, slice, off, false)
		ms = r.StoreTimestampMs
		return err
	})
	return ms, err
}
