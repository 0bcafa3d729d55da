package writer

import (
	"errors"
	"fmt"
	"maps"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/record"
)

// errNoRoom: the record does not fit into the rest of the segment, or there is no segment.
var errNoRoom = errors.New("no room in the segment")

// sizeBytes is the TOTALSIZE field at the start of a record (spec/store.md §2.1).
const sizeBytes = 4

// ErrRecordTooLarge: the records of a put do not fit into an empty segment (weakness W1 of the original, which answers
// PUT_OK there).
var ErrRecordTooLarge = errors.New("larger than a commit-log segment")

// ErrNoRecords: the put carries nothing to store.
var ErrNoRecords = errors.New("no records in the put")

// appender owns the tail of the log and the queue-offset table. It is plain state: the actor runs it, and a benchmark
// runs it behind a mutex.
type appender struct {
	log     *commitlog.Log
	offsets map[messages.QueueKey]*messages.QueueOffset // next queue offset of each queue

	seg     *segments.Segment // nil: none yet, or full
	data    []byte            // of seg: its write buffer, or the map
	pooled  bool              // a committer publishes what is appended (transient store pool)
	byWrite bool              // records are written to the file by publish, instead of being copied into its map
	staged  []byte            // they are kept here until then: what lies right before pos
	undo    []undo            // what to take back when they can't be written
	pos     int64             // behind the last record in seg
	storeMs int64             // store timestamp of the last record; never goes back
	short   bool              // the disk has no room for the rest of seg: it must not be touched

	lights, maxLights int // light queues, and how many there may be; 0: any number

	begins  int64 // start of the log's first segment, once it is known; -1: the log is empty
	learned int64 // of the master's bytes in seg: every record below has been looked at; -1: not in this segment any more
}

func newAppender(log *commitlog.Log, offsets map[messages.QueueKey]messages.QueueOffset) *appender {
	a := &appender{log: log, storeMs: log.StoreTimestampMs(), begins: int64(log.Min())}
	a.setOffsets(offsets)
	if last := log.View().Last(); last != nil {
		a.seg, a.data, a.pos = last, last.Tail(), last.Wrote()
		a.learned = a.pos
	}
	return a
}

func (a *appender) setOffsets(offsets map[messages.QueueKey]messages.QueueOffset) {
	a.offsets = make(map[messages.QueueKey]*messages.QueueOffset, len(offsets))
	a.undo = a.undo[:0]
	for key, next := range offsets {
		a.offsets[key] = &next
	}
	a.countLights()
}

// forget drops the offsets of a topic's queues.
func (a *appender) forget(topic string) {
	maps.DeleteFunc(a.offsets, func(key messages.QueueKey, _ *messages.QueueOffset) bool { return key.Topic == topic })
	a.countLights()
}

// tick takes the time for the records that follow. It never goes back, even when the clock does.
func (a *appender) tick(nowMs int64) { a.storeMs = max(a.storeMs, nowMs) }

// append puts the records of one message behind the tail and fills in its result; they are readable after publish. The
// message is unchanged, and nothing is used up, when it returns an error.
func (a *appender) append(p *messages.PutMessage) error {
	if p.Multi {
		if err := a.addQueueOffsets(p); err != nil {
			return err
		}
	}
	n := int64(len(p.Records))
	if a.seg == nil || a.short || a.pos+n+record.BlankBytes > int64(len(a.data)) {
		return errNoRoom
	}
	a.ahead(n + record.BlankBytes)
	next := a.offsets[p.Queue]
	if next == nil {
		next = new(messages.QueueOffset)
		a.offsets[p.Queue] = next
	}
	takes := messages.TakesQueueOffset(p.SysFlag)
	at := *next
	if !takes {
		at = 0 // spec/store.md §2.11: prepared and rollback records carry queue offset 0
	}
	first := messages.PhysicalOffset(a.seg.Start() + a.pos)
	if p.Count != 1 {
		if err := a.placeAll(p, at, first); err != nil {
			return err
		}
	}
	a.lay(p, at, first)
	a.pos += n
	if takes {
		*next = at + messages.QueueOffset(p.Count)
		if p.Multi {
			a.advance(p)
		}
		if a.byWrite {
			a.note(p, next)
		}
	}
	p.Result = messages.PutResult{
		PhysicalOffset: first, QueueOffset: at, Bytes: int32(n), Count: p.Count, StoreTimestampMs: a.storeMs,
	}
	return nil
}

// ahead makes sure that the next n bytes may be written through the map. Mostly the allocator has been there; else they are prepared
// here, which takes as long as it takes for 256 KiB. A failure only costs page faults.
func (a *appender) ahead(n int64) {
	if to := a.pos + n; to > a.seg.Prepared() {
		_ = a.seg.Prepare(min(to, a.seg.Size()))
	}
}

// lay copies records behind the tail, the size of the first one last: before it is there, a process that is killed leaves what
// recovery reads as the end of the log. The place of a single record is filled in over there: filled in here, the copy would
// wait for those bytes, and they for all of the record before. A panic leaves nothing staged.
func (a *appender) lay(p *messages.PutMessage, at messages.QueueOffset, first messages.PhysicalOffset) {
	dst, staged := a.data[a.pos:], a.staged
	if a.byWrite {
		staged = append(staged, p.Records...)
		dst = staged[len(a.staged):]
	} else {
		copy(dst[sizeBytes:], p.Records[sizeBytes:])
	}
	if p.Count == 1 {
		record.SetPlace(dst[:len(p.Records)], at, first, a.storeMs)
	}
	copy(dst, p.Records[:sizeBytes])
	a.staged = staged
}

// placeAll fills in the three fields of each record of a batch that need the order.
func (a *appender) placeAll(p *messages.PutMessage, at messages.QueueOffset, first messages.PhysicalOffset) error {
	rest := p.Records
	for i := range p.Count {
		size := int(record.TotalSize(rest))
		if size < record.MinBytes || size > len(rest) {
			return fmt.Errorf("record %d of a batch of %d: size %d, %d bytes left", i, p.Count, size, len(rest))
		}
		record.SetPlace(rest[:size], at+messages.QueueOffset(i), first, a.storeMs)
		rest = rest[size:]
		first += messages.PhysicalOffset(size)
	}
	if len(rest) != 0 || p.Count < 1 {
		return fmt.Errorf("batch of %d records: %d bytes left over", p.Count, len(rest))
	}
	return nil
}

// publish makes everything up to the tail readable, or, with a transient store pool, ready to be committed. The error is one of
// the disk, with byWrite: then nothing is published, and what was appended since the last time is gone.
func (a *appender) publish() error {
	if len(a.staged) > 0 {
		if err := a.write(); err != nil {
			return err
		}
	}
	switch {
	case a.seg == nil:
	case a.pooled:
		a.log.SetWritten(a.seg, a.pos, a.storeMs)
	default:
		a.log.Publish(a.seg, a.pos, a.storeMs)
	}
	return nil
}

// fits tells whether a put can ever be stored.
func (a *appender) fits(p *messages.PutMessage) error {
	switch n := int64(len(p.Records)); {
	case n < record.MinBytes:
		return fmt.Errorf("%d bytes: %w", n, ErrNoRecords)
	case n+record.BlankBytes > a.log.SegmentBytes():
		return fmt.Errorf("%d bytes, segment of %d: %w", n, a.log.SegmentBytes(), ErrRecordTooLarge)
	}
	return nil
}

// roll closes the current segment with a blank record (spec/store.md §2.4) and goes on in the next one.
func (a *appender) roll(next *segments.Segment) {
	a.finish()
	a.log.Add(next)
	a.seg, a.data, a.pos, a.learned = next, next.Tail(), 0, 0
}

// finish closes the current segment, if there is one; nothing is staged.
func (a *appender) finish() {
	if a.seg == nil {
		return
	}
	if rest := int64(len(a.data)) - a.pos; rest >= record.BlankBytes {
		a.ahead(record.BlankBytes)
		record.AppendBlank(a.data[a.pos:a.pos], int32(rest))
	}
	a.pos = int64(len(a.data))
	_ = a.publish() // nothing is staged, so nothing can fail
}

// nextStart is the physical offset at which the segment behind the current one begins.
func (a *appender) nextStart() int64 {
	if a.seg != nil {
		return a.seg.Start() + a.seg.Size()
	}
	if a.begins >= 0 {
		return a.begins
	}
	end := int64(a.log.Written())
	return end - end%a.log.SegmentBytes()
}
