package store

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/record"
)

// gapBytes is the size in a unit that stands for a lost message and names no record; no record is as short.
const gapBytes = 1

// StandsForLost tells whether a unit stands for a message that the log has lost, so that it names no record.
func StandsForLost(u consumequeue.Unit) bool { return u.Size == gapBytes }

// unknown is a part of the log that stands for lost records of which nothing is known.
type unknown struct {
	Span
	blank   bool // a blank, which must stay at its end
	storeMs int64
}

// piece returns where a piece that begins in the part and is so long ends, longer where nothing could stand behind it; 0: it does not fit.
func (u *unknown) piece(at messages.PhysicalOffset, size int) messages.PhysicalOffset {
	to := at + messages.PhysicalOffset(size)
	left, least := int(u.To-to), record.LostBytes(record.LostTopic)
	switch {
	case u.blank && left < record.BlankBytes, left < 0:
		return 0
	case !u.blank && left > 0 && left < least:
		return u.To
	}
	return to
}

// noteUnknown remembers such a part.
func (d *dispatcher) noteUnknown(it *Item) {
	if r := &it.Record; r.Lost() && string(r.Topic) == record.LostTopic {
		d.unknown = append(d.unknown, unknown{Span: Span{From: it.From, To: it.To}, storeMs: r.StoreTimestampMs})
	}
}

// closeGap puts the odd record into the queue. Each missing queue offset gets the unit of a record that stands for the lost one, in a part
// of the log that stands for unknown ones, so that RocketMQ too finds a record there. Where there is no such part, as in a missing
// segment, or it is too small, the unit names one byte of what lies between the neighbours. Either way the reader is told that the message is gone.
func (d *dispatcher) closeGap(t *target) error {
	next, place := t.q.Max(), t.q.PhysicalEnd()
	standIns, err := d.divide(t)
	if err != nil {
		return err
	}
	for i := next; i < t.oddAt; i++ {
		u := consumequeue.Unit{PhysicalOffset: place, Size: gapBytes}
		if standIns != nil {
			u = standIns[i-next]
		}
		if _, err := t.q.Append(u, i); err != nil {
			return err
		}
		place++
	}
	d.tell(Event{What: ClosedGap, Queue: t.q.Key(), From: int64(next), To: int64(t.oddAt)})
	return d.appendOdd(t)
}

// divide makes records for the missing queue offsets out of parts of the log that stand for unknown ones; nil when they are too small.
func (d *dispatcher) divide(t *target) ([]consumequeue.Unit, error) {
	key, missing := t.q.Key(), int(t.oddAt-t.q.Max())
	slices.SortFunc(d.unknown, func(a, b unknown) int { return cmp.Compare(a.From, b.From) })
	var parts []Filler
	from := make(map[int]messages.PhysicalOffset) // what is left of a part begins here
	for i := range d.unknown {
		part := &d.unknown[i]
		if part.From < t.q.PhysicalEnd() || part.To > t.odd.PhysicalOffset {
			continue
		}
		at := part.From
		for len(parts) < missing {
			to := part.piece(at, record.LostBytes(key.Topic))
			if to == 0 {
				break
			}
			parts = append(parts, Filler{Span: Span{From: at, To: to}, Queue: key, Offset: t.q.Max() + messages.QueueOffset(len(parts))})
			at = to
		}
		if at > part.From {
			from[i] = at
		}
	}
	if len(parts) < missing {
		return nil, nil
	}
	units := make([]consumequeue.Unit, missing)
	for i, f := range parts {
		units[i] = consumequeue.Unit{PhysicalOffset: f.From, Size: int32(f.To - f.From)}
	}
	return units, d.writeParts(parts, from)
}

// writeParts writes what divided parts consist of, the last one first: until the first one is written, the part is as it was, or a hole
// for the next recovery.
func (d *dispatcher) writeParts(parts []Filler, from map[int]messages.PhysicalOffset) error {
	for i, at := range from {
		part := &d.unknown[i]
		if err := d.changing(ClosedGap, part.Span); err != nil {
			return err
		}
		if at < part.To {
			left := Filler{Span: Span{From: at, To: part.To}, Blank: part.blank, Queue: messages.QueueKey{Topic: record.LostTopic}}
			if err := d.fill(left, part.storeMs); err != nil {
				return fmt.Errorf("divide what stands for lost records at %d: %w", part.From, err)
			}
		}
		if d.divided < 0 || part.From < d.divided {
			d.divided = part.From
		}
		for k := len(parts) - 1; k >= 0; k-- {
			if f := parts[k]; f.From >= part.From && f.To <= at {
				if err := d.fill(f, part.storeMs); err != nil {
					return fmt.Errorf("divide what stands for lost records at %d: %w", part.From, err)
				}
			}
		}
		part.From = at
	}
	return nil
}
