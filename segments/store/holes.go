package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
)

// errNoFit: what is left of a hole beside the records that are known is too small for a record.
var errNoFit = errors.New("the hole cannot be closed: no record fits")

// Filler is what is written over a part of a hole: a record that stands in the place of a lost one, of the same size, topic
// and queue offset, and further queues where there is room for their names, so that RocketMQ too keeps what follows; or a blank, at the end of a segment.
type Filler struct {
	Span
	Blank   bool
	Queue   messages.QueueKey // of the lost record; topic record.LostTopic when it is not known
	Offset  messages.QueueOffset
	Further record.Further // the other queues whose units name the same place
}

// planFillers decides what the holes are closed with.
func (p *planner) planFillers() error {
	var own []*Hole
	for i := range p.Holes {
		h := &p.Holes[i]
		if errors.Is(h.Err, ErrMissing) {
			continue
		}
		lost, err := p.judge.lostIn(h)
		if err != nil {
			return err
		}
		view := p.log.View()
		for k := range view.Len() {
			seg := view.At(k)
			begin := messages.PhysicalOffset(seg.Start())
			end := begin + messages.PhysicalOffset(seg.Size())
			part := Span{From: max(h.From, begin), To: min(h.To, end)}
			if part.Empty() {
				continue
			}
			fill, err := fillers(part, part.To == end, lost)
			if err != nil {
				h.Fill, h.Unfit = nil, err
				break
			}
			h.Fill = append(h.Fill, fill...)
		}
		if h.own != nil && slices.Contains(h.Fill, *h.own) {
			own = append(own, h)
		}
	}
	return p.planOwn(own)
}

// planOwn judges queues by the records that stand for themselves, as the next recovery would: their queues do not name them, and would
// give their places to other messages.
func (p *planner) planOwn(own []*Hole) error {
	for _, h := range own {
		b, err := h.own.record(h.StoreMs)
		if err != nil {
			return err
		}
		r, _, err := record.Parse(b, true)
		if err == nil {
			err = p.judge.record(&r)
		}
		if err != nil {
			return fmt.Errorf("what is to stand at %d: %w", h.own.From, err)
		}
	}
	if len(own) == 0 {
		return nil
	}
	return p.judge.finish()
}

// lostIn returns the records of a hole that the queues name, in order; without any the damaged record itself, when only its
// body is damaged.
func (j *judge) lostIn(h *Hole) ([]Filler, error) {
	var lost []Filler
	err := j.eachQueue(func(v *verdict) error {
		if v.drop || v.q.PhysicalEnd() <= h.From {
			return nil
		}
		at, err := v.q.Search(h.From)
		if err != nil {
			return err
		}
		end := v.q.Max()
		if v.cut >= 0 {
			end = v.cut
		}
		for ; at < end; at++ {
			u, err := v.unitAt(at)
			if err != nil || u.PhysicalOffset >= h.To {
				return err
			}
			if int(u.Size) >= record.LostBytes(v.key.Topic) && u.End() <= h.To {
				lost = append(lost, lostBy(u, v.key, at))
			}
		}
		return nil
	})
	if len(lost) == 0 && h.own != nil {
		lost = append(lost, *h.own)
	}
	return onePerPlace(lost), err
}

// onePerPlace sorts what queues name by its place. Of several that name the same one is the queue of the record, no light queue when
// there is another, and the others become its further queues: without that the next recovery would cut them.
func onePerPlace(lost []Filler) []Filler {
	slices.SortFunc(lost, func(a, b Filler) int {
		return cmp.Or(cmp.Compare(a.From, b.From), compareLight(a.Queue, b.Queue), cmp.Compare(a.Queue.Topic, b.Queue.Topic),
			cmp.Compare(a.Queue.QueueID, b.Queue.QueueID))
	})
	var all []Filler
	for _, l := range lost {
		if n := len(all); n > 0 && all[n-1].From == l.From {
			all[n-1].share(l)
			continue
		}
		all = append(all, l)
	}
	return all
}

func compareLight(a, b messages.QueueKey) int {
	light := func(k messages.QueueKey) int {
		if strings.HasPrefix(k.Topic, messages.LMQTopicPrefix) {
			return 1
		}
		return 0
	}
	return light(a) - light(b)
}

// share gives the record a further queue, if it may be one and there is room for its name.
func (f *Filler) share(other Filler) {
	if other.Span != f.Span || record.FurtherQueue(other.Queue.Topic, f.Queue.QueueID) != other.Queue {
		return
	}
	further, at := record.Further{Names: other.Queue.Topic, Offsets: strconv.FormatInt(int64(other.Offset), 10)}, f.Further
	if at.Names != "" {
		further = record.Further{Names: at.Names + "," + further.Names, Offsets: at.Offsets + "," + further.Offsets}
	}
	if record.LostBytes(f.Queue.Topic)+further.Bytes() <= int(f.To-f.From) {
		f.Further = further
	}
}

func lostBy(u consumequeue.Unit, key messages.QueueKey, at messages.QueueOffset) Filler {
	return Filler{Span: Span{From: u.PhysicalOffset, To: u.End()}, Queue: key, Offset: at}
}

// ownFiller describes a damaged record by itself, nil when it is not to be trusted.
func ownFiller(it *Item) *Filler {
	r := &it.Record
	if !errors.Is(it.Err, record.ErrBadCRC) || r.PhysicalOffset != it.From || !messages.TakesQueueOffset(r.SysFlag) ||
		r.QueueOffset < 0 || int(r.Size) < record.LostBytes(string(r.Topic)) {
		return nil
	}
	to := it.From + messages.PhysicalOffset(r.Size)
	return &Filler{
		Span: Span{From: it.From, To: to}, Queue: messages.QueueKey{Topic: string(r.Topic), QueueID: r.QueueID}, Offset: r.QueueOffset,
	}
}

// fillers cuts a part of a hole, which lies in one segment, into the lost records and what is between them.
func fillers(part Span, toSegmentEnd bool, lost []Filler) ([]Filler, error) {
	var all []Filler
	at := part.From
	between := func(to messages.PhysicalOffset, last bool) error {
		gap := Filler{Span: Span{From: at, To: to}, Blank: last && toSegmentEnd, Queue: messages.QueueKey{Topic: record.LostTopic}}
		least := record.LostBytes(record.LostTopic)
		if gap.Blank {
			least = record.BlankBytes
		}
		switch {
		case to == at && !gap.Blank:
			return nil
		case int(to-at) < least:
			return fmt.Errorf("%w: %d bytes at %d", errNoFit, to-at, at)
		}
		all = append(all, gap)
		return nil
	}
	for _, l := range lost {
		if l.From < at || l.To > part.To { // of two that overlap the first counts
			continue
		}
		if err := between(l.From, false); err != nil {
			return nil, err
		}
		all = append(all, l)
		at = l.To
	}
	return all, between(part.To, true)
}

// closeHoles copies what is damaged inside the log aside, and writes the fillers over it. What could not be copied stays as
// it is. syncLog makes it durable; if that is not reached, the next recovery finds a hole again.
func (s *Store) closeHoles(q *quarantine, p *Plan) error {
	for i := range p.Holes {
		h := &p.Holes[i]
		s.tell(Event{What: FoundHole, From: int64(h.From), To: int64(h.To), Err: errors.Join(h.Err, h.Unfit)})
		if len(h.Fill) == 0 || !s.keepHole(q, h) {
			continue
		}
		if err := s.changing(ClosedHole, h.Span); err != nil {
			return err
		}
		for _, f := range h.Fill {
			if err := s.fill(f, h.StoreMs); err != nil {
				return fmt.Errorf("close the hole at %d: %w", h.From, err)
			}
			if f.Blank {
				s.blanks = append(s.blanks, unknown{Span: f.Span, blank: true, storeMs: h.StoreMs})
			}
		}
		s.tell(Event{What: ClosedHole, Path: q.run, From: int64(h.From), To: int64(h.To)})
	}
	return nil
}

// keepHole copies the parts of a hole.
func (s *Store) keepHole(q *quarantine, h *Hole) bool {
	view := s.Log.View()
	kept := true
	for i := range view.Len() {
		seg := view.At(i)
		part := Span{
			From: max(h.From, messages.PhysicalOffset(seg.Start())), To: min(h.To, messages.PhysicalOffset(seg.Start()+seg.Size())),
		}
		kept = kept && s.keep(q, seg, part)
	}
	return kept
}

// record is what a filler writes.
func (f *Filler) record(storeMs int64) ([]byte, error) {
	size := int(f.To - f.From)
	if f.Blank {
		b := record.AppendBlank(nil, int32(size))
		return append(b, make([]byte, size-record.BlankBytes)...), nil // nothing of what was there may be taken for a record again
	}
	b, err := record.AppendLost(nil, f.Queue, f.Further, size, storeMs)
	if err == nil {
		record.SetPlace(b, f.Offset, f.From, storeMs)
	}
	return b, err
}

// fill writes one filler.
func (s *Store) fill(f Filler, storeMs int64) error {
	b, err := f.record(storeMs)
	if err != nil {
		return err
	}
	seg := s.Log.View().Find(int64(f.From))
	if seg == nil {
		return segments.ErrGone
	}
	return vfs.Guard(seg.Path(), func() error {
		copy(seg.Data()[int64(f.From)-seg.Start():], b)
		return nil
	})
}
