package store

import (
	"errors"
	"fmt"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/checkpoint"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/index"
	"github.com/actormq/actormq/segments/record"
)

// ErrNewerLog: the log holds records of a version that this program does not know. Nothing is cut then.
var ErrNewerLog = errors.New("commit log of a newer version")

const (
	// cleanSegments is how many segments from the end are scanned after a clean stop (spec/store.md §8.4).
	cleanSegments = 3
	// queueMarginMs is how far recovery looks back behind the checkpoint for queues. RocketMQ saves it when units are in
	// memory, and syncs them within 60 s (spec/store.md §16, W18).
	queueMarginMs = 63_000
	// indexMarginMs is the same for the index, whose time is saved after the sync.
	indexMarginMs = 3000
)

// Plan is what recovery has decided. It is made from reads only. Offsets are physical unless said otherwise.
type Plan struct {
	Clean    bool                    // how the store was left
	ScanFrom messages.PhysicalOffset // the log was read from here on
	NextScan messages.PhysicalOffset // what is in front of it the next start need not read, when this one is interrupted
	Min, End messages.PhysicalOffset // the log's range; Min is -1 when there is no segment
	Records  int64                   // sound ones from ScanFrom on
	// LastStoreMs is the store timestamp of the last record, 0 without any.
	LastStoreMs int64
	Stop        error // what stands at End; nil when the last segment is full
	Holes       []Hole
	Tail        Span      // what is not zero behind End in its segment
	Remove      []Removal // segments behind End, in order
	Queues      []QueueStep
	QueuesFrom  messages.PhysicalOffset // records from here on go to the queues; End: none has to
	Index       IndexStep
}

// Span is a range of physical offsets.
type Span struct{ From, To messages.PhysicalOffset }

// Empty tells whether there is nothing in it.
func (s Span) Empty() bool { return s.From >= s.To }

// Hole is damage inside the log.
type Hole struct {
	Span
	Err     error
	Fill    []Filler // what it is closed with, in order; none: it stays
	Unfit   error    // why it stays, if no record fits
	StoreMs int64    // store timestamp of the record in front of it, 0 without one

	own *Filler // the damaged record, as it describes itself
}

// Removal is a segment behind the end.
type Removal struct {
	Path  string
	Start messages.PhysicalOffset
	Used  Span // what is not zero in it
}

// QueueStep is what has to be done to one queue before records are dispatched again.
type QueueStep struct {
	Queue messages.QueueKey
	Drop  bool                 // delete all of it
	Next  messages.QueueOffset // then, if the log has no record of it, it goes on here
	Cut   messages.QueueOffset // otherwise cut it here
	Why   error                // nil: only what is behind the last unit is cleared
}

// IndexStep is what has to be done to the index.
type IndexStep struct {
	DropDamaged bool
	Anew        bool                    // entries from Cut on are not believed, which nothing but a marker tells
	Doubt       messages.PhysicalOffset // what is built from here on is noted before, until it is durable; proven: nothing has to be
	Cut         messages.PhysicalOffset // entries of records from here on go; -1: none
	From        messages.PhysicalOffset // records from here on are indexed; -1: from the last one that is left in the index
}

// loaded is what the plan is made from.
type loaded struct {
	log        *commitlog.Log
	queues     *consumequeue.Table
	floors     *floors
	index      *index.Set // nil: there is none
	checkpoint checkpoint.Values
	clean      bool
	all        bool                    // read the log from its beginning
	indexDoubt messages.PhysicalOffset // from here on the index is built again, whatever it is; proven: it is believed
	indexed    messages.PhysicalOffset // every record in front of it is in the index; -1: not known
	unproven   messages.PhysicalOffset // from here on no queue is believed
}

// planner makes a plan.
type planner struct {
	loaded
	Plan
	params   Params
	delays   messages.DelayLevels
	progress func(Progress)
	limits   aheadLimits
	unbuilt  bool // nothing is put into the index
	judge    *judge
	kept     *keptKeys
	used     usedPart
}

// makePlan reads the log and compares it with queues and index. With the plan come keys that the index is going to lack.
func makePlan(l loaded, params Params, o *Options) (Plan, *keptKeys, error) {
	p := &planner{loaded: l, params: params, progress: o.Progress, limits: o.ahead.withDefaults(), unbuilt: o.IndexUnbuilt}
	p.delays, _ = messages.ParseDelayLevels(params.DelayLevels) // Open has looked at them
	p.Clean, p.Min = l.clean, l.log.Min()
	from := p.scanStart()
	for {
		if err := p.scan(from); err != nil {
			return Plan{}, nil, fmt.Errorf("recovery plan: %w", err)
		}
		if p.Records > 0 || from <= p.Min {
			break
		}
		from = p.Min // nothing sound in the last segments: look at all of it
	}
	if err := p.finish(); err != nil {
		return Plan{}, nil, fmt.Errorf("recovery plan: %w", err)
	}
	return p.Plan, p.kept, nil
}

// scanStart chooses the segment from which the log is read.
func (p *planner) scanStart() messages.PhysicalOffset {
	if p.queues.Len() == 0 || p.all {
		return p.Min
	}
	view := p.log.View()
	i := p.endScan(p.lastBegun())
	for at := p.params.CutAt; i > 0 && at > 0 && view.At(i).Start() >= int64(at); {
		i--
	}
	if view.Len() == 0 {
		return p.Min
	}
	return messages.PhysicalOffset(view.At(i).Start())
}

// endScan is the number of the segment from which a log is read that ends in another one, when not all of it is.
func (p *planner) endScan(last int) int {
	i := max(0, last-cleanSegments+1)
	if !p.Clean {
		i = min(i, p.trusted(min(p.checkpoint.PhysicMs, p.checkpoint.LogicsMs)-queueMarginMs))
	}
	return i
}

// nextScan is where a start reads the log from that finds it as this one leaves it, and some queues.
func (p *planner) nextScan() messages.PhysicalOffset {
	view := p.log.View()
	last := view.Len() - 1
	for last >= 0 && view.At(last).Start() >= int64(p.End) {
		last--
	}
	if last < 0 {
		return p.Min
	}
	return messages.PhysicalOffset(view.At(p.endScan(last)).Start())
}

// lastBegun is the number of the last segment that does not begin with zeros, -1 when there is none.
func (p *planner) lastBegun() int {
	view := p.log.View()
	for i := view.Len() - 1; i >= 0; i-- {
		err := look(p.log, messages.PhysicalOffset(view.At(i).Start()), func(*record.Record, record.Kind) error { return nil })
		if !errors.Is(err, record.ErrUnallocated) {
			return i
		}
	}
	return -1
}

// trusted is the number of the last segment whose first record was stored at or before a time, 0 when there is none
// (spec/store.md §8.5).
func (p *planner) trusted(ms int64) int {
	if ms <= 0 {
		return 0
	}
	view := p.log.View()
	for i := p.lastBegun(); i > 0; i-- {
		start := messages.PhysicalOffset(view.At(i).Start())
		stored := int64(0)
		err := look(p.log, start, func(r *record.Record, kind record.Kind) error {
			// What stands for a lost record has another one's time; and the start after one that has closed a hole must not trust more than that did.
			if kind == record.KindMessage && r.PhysicalOffset == start && !r.Lost() {
				stored = r.StoreTimestampMs
			}
			return nil
		})
		if err == nil && stored > 0 && stored <= ms {
			return i
		}
	}
	return 0
}

// scan reads the log from a place to its end.
func (p *planner) scan(from messages.PhysicalOffset) error {
	p.ScanFrom, p.Records, p.LastStoreMs, p.Holes = from, 0, 0, nil
	p.judge = newJudge(p)
	if err := p.judge.queuesAlone(); err != nil {
		return err
	}
	p.kept = p.newKeptKeys(from)
	end, stop, err := p.walk(from)
	if err != nil {
		return err
	}
	if p.Min < 0 {
		end = 0
	}
	p.End, p.Stop = end, stop
	return p.newer(stop)
}

// errArrived ends a part of the walk where a stretch begins that was looked at already.
var errArrived = errors.New("a stretch begins")

// walk is the walk of a scan, over the stretches that were looked at ahead of it as a whole.
func (p *planner) walk(from messages.PhysicalOffset) (end messages.PhysicalOffset, stop, err error) {
	w := Walk{Log: p.log, Queues: p.queues, CheckCRC: p.params.CheckCRC, Strict: p.params.Follower, Until: p.params.CutAt,
		Progress: progressOf(p.progress, "scan", from, p.log)}
	ahead := p.readAhead(from)
	defer ahead.stop()
	for end = from; ; {
		for ahead.begins(end) {
			s := ahead.next()
			if err := p.take(s); err != nil {
				return end, nil, err
			}
			end = s.to
			if w.Progress != nil {
				w.Progress(end)
			}
		}
		begin := end
		end, stop, err = w.Run(begin, func(it *Item) error {
			if err := p.item(it); err != nil || !ahead.begins(it.To) {
				return err
			}
			return errArrived
		})
		if p.used = w.used; !errors.Is(err, errArrived) {
			return end, stop, err
		}
	}
}

// newer refuses a log that goes on with a record of an unknown version.
func (p *planner) newer(stop error) error {
	if !errors.Is(stop, record.ErrNewerVersion) {
		return nil
	}
	return fmt.Errorf("%w: offset %d: %w", ErrNewerLog, p.End, stop)
}

func (p *planner) item(it *Item) error {
	p.kept.walked(it)
	switch it.Kind {
	case ItemHole:
		p.Holes = append(p.Holes, Hole{Span: Span{From: it.From, To: it.To}, Err: it.Err, StoreMs: p.LastStoreMs, own: ownFiller(it)})
	case ItemRecord:
		p.Records++
		p.LastStoreMs = it.Record.StoreTimestampMs
		return p.judge.record(&it.Record)
	}
	return nil
}

// finish decides about everything that depends on where the log ends.
func (p *planner) finish() error {
	if err := p.findTail(); err != nil {
		return err
	}
	if err := p.judge.finish(); err != nil {
		return err
	}
	p.NextScan = p.nextScan()
	p.planIndex()
	return p.planFillers()
}

// findTail finds what has to be cut off behind the end.
func (p *planner) findTail() error {
	p.Tail, p.Remove = Span{From: p.End, To: p.End}, nil
	view := p.log.View()
	for i := range view.Len() {
		seg := view.At(i)
		if seg.Start()+seg.Size() <= int64(p.End) {
			continue
		}
		used, err := p.used.of(seg, max(0, int64(p.End)-seg.Start()))
		if err != nil {
			return err
		}
		if seg.Start() < int64(p.End) {
			p.Tail = used
		} else {
			p.Remove = append(p.Remove, Removal{Path: seg.Path(), Start: messages.PhysicalOffset(seg.Start()), Used: used})
		}
	}
	return nil
}

// usedPart remembers what usedBytes has last returned: where the log ends it is asked twice.
type usedPart struct {
	seg  *segments.Segment
	from int64
	span Span
}

func (u *usedPart) of(seg *segments.Segment, from int64) (Span, error) {
	if u.seg == seg && u.from == from {
		return u.span, nil
	}
	span, err := usedBytes(seg, from)
	if err == nil {
		*u = usedPart{seg: seg, from: from, span: span}
	}
	return span, err
}

// usedBytes returns the part of a segment, from a place in it on, that begins and ends with bytes that are not zero. It reads
// the file, since most of it may never have been touched.
func usedBytes(seg *segments.Segment, from int64) (Span, error) {
	at := messages.PhysicalOffset(seg.Start())
	s := Span{From: at, To: at}
	chunks, err := touched(seg, from)
	if err != nil {
		return Span{}, err
	}
	buf := make([]byte, chunkBytes)
	found := false
	for _, off := range chunks {
		b := buf[:min(chunkBytes, seg.Size()-off)]
		if n, err := seg.ReadAt(b, off); n < len(b) {
			return Span{}, fmt.Errorf("look behind the end: %w", err)
		}
		first := zeros(b)
		if first == len(b) {
			continue
		}
		last := len(b)
		for b[last-1] == 0 {
			last--
		}
		if !found {
			found, s.From = true, at+messages.PhysicalOffset(off+int64(first))
		}
		s.To = at + messages.PhysicalOffset(off+int64(last))
	}
	return s, nil
}

const chunkBytes = 1 << 20

// touched lists the chunks of a segment, from a place in it on, that may hold something. All are asked for before the first is
// read: what the kernel reads ahead counts as touched afterwards, and one chunk would lead to the next up to the segment's end.
func touched(seg *segments.Segment, from int64) ([]int64, error) {
	var chunks []int64
	for off := from; ; off += chunkBytes {
		var err error
		if off, err = seg.DataFrom(off); err != nil {
			return nil, fmt.Errorf("look behind the end: %w", err)
		}
		if off >= seg.Size() {
			return chunks, nil
		}
		chunks = append(chunks, off)
	}
}

// zeros counts the zero bytes at the start of b.
func zeros(b []byte) int {
	const step = 4096
	var none [step]byte
	n := 0
	for n+step <= len(b) && [step]byte(b[n:n+step]) == none {
		n += step
	}
	for n < len(b) && b[n] == 0 {
		n++
	}
	return n
}

// planIndex decides where the index is cut and goes on.
func (p *planner) planIndex() {
	p.Index = IndexStep{Cut: -1, From: p.End, Doubt: proven}
	if p.index == nil {
		p.Index.Doubt = p.unusedIndex()
		return
	}
	p.Index.DropDamaged = len(p.index.Damaged()) > 0
	cut := p.indexCut()
	switch {
	case cut != proven:
		p.Index.Cut, p.Index.From = max(min(cut, p.End), p.Min, 0), -1
	case p.Index.DropDamaged, p.indexed < 0, p.indexed > p.End:
		p.Index.From = -1
	default:
		p.Index.From = p.indexed
	}
	if p.index.EndPhysical() >= p.End && p.Index.Cut < 0 {
		p.Index.Cut = p.End
	}
	p.doubtIndex()
}

// doubtIndex decides what the next start must be told of the index. One that ends in front of what the checkpoint vouches for lacks what was durable:
// without a note a start after a power cut would take what is built in its place for that.
func (p *planner) doubtIndex() {
	end, ms := p.index.Sound()
	switch p.Index.Anew = p.indexDoubt != proven; {
	case p.Index.Anew:
		p.Index.Doubt = p.indexDoubt
	case p.Index.DropDamaged, ms < p.checkpoint.IndexMs:
		p.Index.Doubt = max(end, 0)
	}
}

// unusedIndex is the place from which on an index is not to be believed that is left alone: after an unclean stop, and behind the end of a log
// that is cut, which goes on with other records. proven: nothing is to be noted beside what is.
func (p *planner) unusedIndex() messages.PhysicalOffset {
	cut := p.End
	switch marked := p.indexDoubt != proven; {
	case !marked && !p.Clean:
		cut = min(cut, p.indexCut())
	case !marked && p.params.CutAt <= 0:
		return proven
	}
	if cut >= p.indexDoubt {
		return proven
	}
	return cut
}

// indexCut is the place in front of which every record has its entries on the disk, by marker and checkpoint; proven: all have.
func (p *planner) indexCut() messages.PhysicalOffset {
	switch {
	case p.Clean:
		return p.indexDoubt
	case p.log.View().Len() == 0:
		return 0
	}
	return min(p.indexDoubt, p.indexLacks())
}

// indexLacks is the start of the segment from which on records may lack entries, by the checkpoint, wherever the log ends.
func (p *planner) indexLacks() messages.PhysicalOffset {
	return messages.PhysicalOffset(p.log.View().At(p.trusted(p.checkpoint.IndexMs - indexMarginMs)).Start())
}

// progressOf makes a walk report through a function that may be nil.
func progressOf(fn func(Progress), step string, from messages.PhysicalOffset, log *commitlog.Log) func(messages.PhysicalOffset) {
	if fn == nil {
		return nil
	}
	total := int64(log.End() - from)
	return func(at messages.PhysicalOffset) { fn(Progress{Step: step, Done: int64(at - from), Total: total}) }
}
