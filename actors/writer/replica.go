package writer

import (
	"errors"
	"fmt"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
)

// ErrNotNext: a master's bytes do not follow what the log has, or do not lie in one segment. Nothing was appended.
var ErrNotNext = errors.New("the master's bytes do not follow the log")

// appendReplica appends a master's bytes as they are, or says in Done why not; false when it has to wait for a segment.
func (w *Actor) appendReplica(m *messages.AppendReplica) bool {
	t := w.tail
	if err := t.follows(m.At, int64(len(m.Bytes)), w.cfg.Follower); err != nil {
		m.Done.Result.Status, m.Done.Err = messages.UnknownError, err
		return true
	}
	if t.short {
		return false
	}
	if t.seg == nil || t.pos == int64(len(t.data)) {
		if !w.roll() {
			return false
		}
		t.pos = int64(m.At) - t.seg.Start()
	}
	t.ahead(int64(len(m.Bytes)))
	copy(t.data[t.pos:], m.Bytes)
	t.pos += int64(len(m.Bytes))
	t.learn()
	m.Done.Result = messages.PutResult{PhysicalOffset: m.At, Bytes: int32(len(m.Bytes)), StoreTimestampMs: t.storeMs}
	return true
}

// follows tells whether n bytes of a master belong at the tail.
func (a *appender) follows(at messages.PhysicalOffset, n int64, follower bool) error {
	start := int64(a.log.SegmentStart(at))
	switch {
	case !follower:
		return fmt.Errorf("%d bytes at offset %d for a master: %w", n, at, ErrNotNext)
	case at < 0 || int64(at)-start+n > a.log.SegmentBytes():
		return fmt.Errorf("%d bytes at offset %d, segments have %d: %w", n, at, a.log.SegmentBytes(), ErrNotNext)
	case a.seg != nil && int64(at) != a.seg.Start()+a.pos:
		return fmt.Errorf("%d bytes at offset %d, the log ends at %d: %w", n, at, a.seg.Start()+a.pos, ErrNotNext)
	case a.seg == nil && a.begins >= 0 && a.begins != start:
		return fmt.Errorf("%d bytes at offset %d, the log was to begin at %d: %w", n, at, a.begins, ErrNotNext)
	}
	if a.seg == nil {
		a.begins = start
	}
	return nil
}

// learn looks at the records that have become whole, for the store timestamp of the last one: the checkpoint of a slave
// moves on like its master's.
func (a *appender) learn() {
	for a.learned >= 0 && a.learned+record.MinBytes <= a.pos {
		r, kind, err := record.Parse(a.data[a.learned:a.pos], false)
		switch {
		case err == nil && kind == record.KindMessage:
			a.storeMs = max(a.storeMs, r.StoreTimestampMs)
			a.learned += int64(r.Size)
		case errors.Is(err, record.ErrTruncated):
			return
		default:
			a.learned = -1 // a blank or damage: on from the next segment
		}
	}
}
