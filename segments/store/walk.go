package store

import (
	"errors"
	"fmt"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
)

var (
	// ErrMisplaced: a record names another physical offset than its own place.
	ErrMisplaced = errors.New("record names another place")
	// ErrMissing: a segment is missing inside the log.
	ErrMissing = errors.New("segment is missing")
	// ErrBlankSize: a blank record at the end of the log does not fill its segment.
	ErrBlankSize = errors.New("blank record does not fill the segment")
)

// ItemKind tells what a walk has found.
type ItemKind int

// Kinds of items.
const (
	ItemRecord ItemKind = iota
	ItemBlank           // the rest of a segment
	ItemHole            // damage, or missing segments, with something sound behind
)

// Item is one piece of the log: From is its place, To the place where the walk goes on.
type Item struct {
	Kind     ItemKind
	From, To messages.PhysicalOffset
	Record   record.Record // of a record; its slices are valid during the call only
	Err      error         // of a hole: what is wrong there
}

// Walk reads the log record by record.
type Walk struct {
	Log *commitlog.Log
	// Queues name records behind damage; nil: the walk goes on at the next segment.
	Queues *consumequeue.Table
	// CheckCRC takes a record whose body does not match its checksum for damage.
	CheckCRC bool
	// Strict ends the walk at the first damage.
	Strict bool
	// Until, above 0, is where the walk ends at the latest.
	Until messages.PhysicalOffset
	// Progress, if not nil, hears where the walk is at the start of each segment.
	Progress func(at messages.PhysicalOffset)

	used usedPart
}

// Run calls fn for every item from a place on, which is the start of a record or a segment, until fn fails or there is
// nothing more that is believed. It returns where that is and, when it is not the readable end of the log, what stands
// there (stop). An error is one of fn, or of the disk.
func (w *Walk) Run(from messages.PhysicalOffset, fn func(*Item) error) (end messages.PhysicalOffset, stop, err error) {
	view := w.Log.View()
	pos := int64(from)
	if first := view.First(); first != nil {
		pos = max(pos, first.Start())
	}
	for i := range view.Len() {
		seg := view.At(i)
		if pos >= seg.Start()+seg.Size() {
			continue
		}
		if w.Until > 0 && pos >= int64(w.Until) {
			break
		}
		if pos < seg.Start() {
			if stop, err = w.overGap(&pos, seg, fn); stop != nil || err != nil {
				break
			}
		}
		if w.Progress != nil {
			w.Progress(messages.PhysicalOffset(pos))
		}
		if !seg.Hold() {
			return messages.PhysicalOffset(pos), nil, fmt.Errorf("walk at offset %d: %w", pos, segments.ErrGone)
		}
		err = vfs.Guard(seg.Path(), func() (err error) {
			stop, err = w.segment(seg, &pos, fn)
			return err
		})
		seg.Release()
		if stop != nil || err != nil {
			break
		}
	}
	return messages.PhysicalOffset(pos), stop, err
}

// overGap goes on at the segment behind missing ones, when that begins with something sound, or with damage behind which the log goes on.
func (w *Walk) overGap(pos *int64, seg *segments.Segment, fn func(*Item) error) (stop, err error) {
	from := *pos
	gap := fmt.Errorf("offset %d to %d: %w", from, seg.Start(), ErrMissing)
	if w.Strict || !w.soundAt(messages.PhysicalOffset(seg.Start())) && !w.goesOn(seg) {
		return gap, nil
	}
	*pos = seg.Start()
	return nil, fn(&Item{Kind: ItemHole, From: messages.PhysicalOffset(from), To: messages.PhysicalOffset(*pos), Err: gap})
}

// goesOn tells whether the log goes on behind the damage that a segment begins with.
func (w *Walk) goesOn(seg *segments.Segment) (found bool) {
	if !seg.Hold() {
		return false
	}
	defer seg.Release()
	it := Item{From: messages.PhysicalOffset(seg.Start())}
	err := vfs.Guard(seg.Path(), func() error {
		if it.Err = w.parse(seg.Data()[:seg.Wrote()], seg, &it); it.Err != nil {
			_, found = w.resync(&it, seg)
		}
		return nil
	})
	return err == nil && found
}

// segment walks over one segment from *pos on.
func (w *Walk) segment(seg *segments.Segment, pos *int64, fn func(*Item) error) (stop, err error) {
	data := seg.Data()[:seg.Wrote()]
	if w.Until > 0 {
		data = data[:min(int64(len(data)), max(int64(w.Until)-seg.Start(), 0))]
	}
	end := seg.Start() + int64(len(data))
	var it Item
	for *pos < end && err == nil {
		b := data[*pos-seg.Start():]
		it.From = messages.PhysicalOffset(*pos)
		it.Err = w.parse(b, seg, &it)
		if it.Err != nil {
			if stop = w.damaged(&it, seg); stop != nil {
				return stop, nil
			}
		}
		*pos = int64(it.To)
		err = fn(&it)
	}
	return nil, err
}

// parse reads a record or blank at the start of b.
func (w *Walk) parse(b []byte, seg *segments.Segment, it *Item) error {
	r := &it.Record
	kind, err := r.Parse(b, w.CheckCRC)
	if err != nil {
		return err
	}
	if kind == record.KindBlank {
		behind := messages.PhysicalOffset(seg.Start() + seg.Size())
		// The size of a blank is not to be trusted (spec/store.md §2.4), but what ends the log must be what it says.
		if int64(r.Size) != int64(len(b)) && w.Log.View().Last() == seg {
			return fmt.Errorf("%w: size %d, %d bytes are left", ErrBlankSize, r.Size, len(b))
		}
		it.Kind, it.To = ItemBlank, behind
		return nil
	}
	if r.PhysicalOffset != it.From {
		return fmt.Errorf("%w: %d", ErrMisplaced, r.PhysicalOffset)
	}
	it.Kind, it.To = ItemRecord, it.From+messages.PhysicalOffset(r.Size)
	return nil
}

// damaged makes the item a hole up to the next sound place, or returns the damage when there is none.
func (w *Walk) damaged(it *Item, seg *segments.Segment) (stop error) {
	err := &segments.CorruptionError{File: seg.Path(), Offset: int64(it.From) - seg.Start(), Err: it.Err}
	if w.Strict {
		return err
	}
	to, found := w.resync(it, seg)
	if !found {
		return err
	}
	it.Kind, it.To, it.Err = ItemHole, to, err
	return nil
}
