package store

import (
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/consumequeue/ext"
	"github.com/actormq/actormq/segments/index"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
)

// The scan is one walk over the log, in its order, by one goroutine. What most of a log consists of, sound records whose units are what
// they should be, others look at ahead of it, a stretch each, from the checksum to the unit, so that no record goes from one processor
// to another. They decide nothing: a stretch ends in front of the first thing that is no sound record, what is no plain match is left to
// the judge, and the stretch counts only when the walk arrives at the place where it begins. So it may begin anywhere, where a queue
// says that a record does, and what the scan finds is the same without it.

const (
	// stretchBytes is about how long a stretch is.
	stretchBytes = 32 << 20
	// maxOdd is how many records a stretch leaves to the judge before it ends.
	maxOdd = 1 << 16
	// maxReaders look at the log at a time: each keeps stretches that wait for the walk.
	maxReaders = 16
	// maxGlimpses is how many queues all readers together remember, about 1 KB each.
	maxGlimpses = 400_000
)

// aheadLimits say how much is read ahead. Zero values stand for what is sensible.
type aheadLimits struct {
	readers  int   // goroutines; default as many as processors, up to maxReaders
	bytes    int64 // of a stretch; default stretchBytes
	keys     int   // that are kept for the index; default maxKeys
	glimpses int   // queues that all readers remember; default maxGlimpses
}

func (l aheadLimits) withDefaults() aheadLimits {
	if l.readers == 0 {
		l.readers = min(runtime.GOMAXPROCS(0), maxReaders)
	}
	if l.bytes == 0 {
		l.bytes = stretchBytes
	}
	if l.keys == 0 {
		l.keys = maxKeys
	}
	if l.glimpses == 0 {
		l.glimpses = maxGlimpses
	}
	return l
}

// readersOf is how many goroutines look at a log of so many queues.
func (l aheadLimits) readersOf(queues int) int { return min(l.readers, l.glimpses/max(queues, 1)) }

// keysOfStretch is how many keys a stretch has before it ends: one record may have thousands.
func (l aheadLimits) keysOfStretch() int { return max(l.keys/8, 1<<10) }

// stretch is a part of the log that was looked at ahead of the walk.
type stretch struct {
	from, until messages.PhysicalOffset // it ends with the record that reaches over until
	done        chan struct{}           // closed when the rest is there

	to      messages.PhysicalOffset // where the walk goes on
	records int64
	storeMs int64 // of the last record
	seen    []seenQueue
	odd     []oddRecord
	keys    index.Packed
	indexed int64 // records that have keys
}

// seenQueue tells behind which queue offset of a queue a stretch has met nothing.
type seenQueue struct {
	key messages.QueueKey
	end messages.QueueOffset
}

// oddRecord is a sound record that the judge has to look at. What comes after another one of its queue counts only while
// nothing of the queue has to be built again.
type oddRecord struct {
	at    messages.PhysicalOffset
	queue *glimpse // nil: it may be in several
}

// ahead is the stretches of a scan.
type ahead struct {
	planner *planner
	rest    []*stretch // those that the walk has not reached, in order
	waiting []*stretch // those that no reader has been given
	work    chan *stretch
	readers sync.WaitGroup
	stopped atomic.Bool
}

// readAhead begins to look at the log from a place on. Who calls it calls stop.
func (p *planner) readAhead(from messages.PhysicalOffset) *ahead {
	a := &ahead{planner: p}
	n := p.limits.readersOf(p.queues.Len())
	if n < 2 {
		return a
	}
	starts := p.starts(from)
	if len(starts) < 2 {
		return a
	}
	for i, at := range starts {
		s := &stretch{from: at, until: math.MaxInt64, to: at, done: make(chan struct{})}
		if i+1 < len(starts) {
			s.until = starts[i+1]
		}
		a.rest = append(a.rest, s)
	}
	a.waiting, a.work = a.rest, make(chan *stretch, len(a.rest))
	for range 2 * n { // so what waits for the walk is bounded
		a.more()
	}
	for range n {
		a.readers.Go(func() { a.read(p.limits.glimpses / n) })
	}
	return a
}

// starts returns places, in order, at which records probably begin: the first ones of segments, and what the longest queue names.
func (p *planner) starts(from messages.PhysicalOffset) []messages.PhysicalOffset {
	starts := []messages.PhysicalOffset{max(from, p.Min)}
	guide, view := p.guide(from), p.log.View()
	for i := range view.Len() {
		begin := messages.PhysicalOffset(view.At(i).Start())
		end := begin + messages.PhysicalOffset(view.At(i).Size())
		for at := begin; at < end; at += messages.PhysicalOffset(p.limits.bytes) {
			place := at
			if at > begin {
				place = named(guide, at)
			}
			if place > starts[len(starts)-1] && place < end {
				starts = append(starts, place)
			}
		}
	}
	return starts
}

// guide is the queue with the most units of those that reach behind a place; nil: there is none.
func (p *planner) guide(from messages.PhysicalOffset) (guide *consumequeue.Queue) {
	most := messages.QueueOffset(0)
	p.queues.Each(func(_ messages.QueueKey, q *consumequeue.Queue) {
		if begin, end := q.Range(); end-begin > most && q.PhysicalEnd() > from {
			guide, most = q, end-begin
		}
	})
	return guide
}

// named is the first place at or behind another one that a queue names, -1 when it names none.
func named(q *consumequeue.Queue, at messages.PhysicalOffset) messages.PhysicalOffset {
	if q == nil || q.PhysicalEnd() <= at {
		return -1
	}
	first, err := q.Search(at)
	if err != nil {
		return -1
	}
	var u [1]consumequeue.Unit
	if n, err := q.Read(first, u[:]); err != nil || n == 0 {
		return -1
	}
	return u[0].PhysicalOffset
}

// more gives the readers one stretch more.
func (a *ahead) more() {
	if len(a.waiting) > 0 {
		a.work <- a.waiting[0]
		a.waiting = a.waiting[1:]
	}
}

// begins tells whether a stretch begins at a place that the walk has reached. Those that begin in front of it are given up.
func (a *ahead) begins(at messages.PhysicalOffset) bool {
	for len(a.rest) > 0 && a.rest[0].from < at {
		a.next()
	}
	return len(a.rest) > 0 && a.rest[0].from == at
}

// next returns the first stretch that the walk has not reached, and waits until it has been looked at.
func (a *ahead) next() *stretch {
	s := a.rest[0]
	a.rest[0], a.rest = nil, a.rest[1:] // what is done with it says how long it stays
	<-s.done
	a.more()
	return s
}

// stop waits for the readers.
func (a *ahead) stop() {
	if a.work != nil {
		a.stopped.Store(true)
		close(a.work)
		a.readers.Wait()
	}
}

// read looks at stretches, and remembers so many queues from one to the next.
func (a *ahead) read(glimpses int) {
	r := &aheadReader{planner: a.planner}
	fresh := func(key messages.QueueKey) *glimpse {
		return &glimpse{unitWindow: unitWindow{key: key, q: r.planner.queues.Lookup(key)}}
	}
	for s := range a.work {
		if r.queues == nil || len(r.queues.all) > glimpses {
			r.queues = newQueueStates(fresh)
		}
		if !a.stopped.Load() {
			r.look(s)
		}
		close(s.done)
	}
}

// aheadReader looks at stretches, one after the other. It changes nothing of the planner's.
type aheadReader struct {
	planner *planner
	queues  *queueStates[glimpse]
	touched []*glimpse // queues with records in the stretch
	keys    index.Keys // of the stretch, until all are there
	s       *stretch
}

// glimpse is what a reader knows about a queue.
type glimpse struct {
	unitWindow
	seen messages.QueueOffset // behind the last record in the stretch; 0: none is
}

// errLooked ends the walk over a stretch.
var errLooked = errors.New("end of the stretch")

func (r *aheadReader) look(s *stretch) {
	p := r.planner
	r.s = s
	w := Walk{Log: p.log, CheckCRC: p.params.CheckCRC, Strict: true, Until: p.params.CutAt}
	// What ends it early, an error of the disk included, the walk meets itself.
	_, _, _ = w.Run(s.from, r.item)
	s.keys = r.keys.Take()
	s.seen = make([]seenQueue, 0, len(r.touched))
	for _, q := range r.touched {
		s.seen = append(s.seen, seenQueue{key: q.key, end: q.seen})
		q.seen = 0
	}
	r.touched, r.s = r.touched[:0], nil
}

func (r *aheadReader) item(it *Item) error {
	s := r.s
	if it.Kind == ItemRecord {
		r.record(&it.Record)
		s.records++
		s.storeMs = it.Record.StoreTimestampMs
	}
	s.to = it.To
	if s.to >= s.until || len(s.odd) >= maxOdd || r.keys.Len() >= r.planner.limits.keysOfStretch() {
		return errLooked
	}
	return nil
}

// record does what planner.item does for a record that is as it should be, and notes it otherwise.
func (r *aheadReader) record(rec *record.Record) {
	p := r.planner
	keys, uniqKey, tags := messages.ViewProperties(rec.Properties).Dispatched()
	if p.kept.wants(rec) && r.keys.Add(rec.Topic, uniqKey, keys, rec.PhysicalOffset, rec.StoreTimestampMs) {
		r.s.indexed++
	}
	switch {
	case !messages.TakesQueueOffset(rec.SysFlag):
	case p.params.MultiDispatch && hasFurther(rec), rec.QueueOffset < 0:
		r.s.odd = append(r.s.odd, oddRecord{at: rec.PhysicalOffset})
	case !p.floors.isDeleted(rec.Topic, rec.PhysicalOffset):
		q := r.queues.of(rec.Topic, rec.QueueID)
		if q.seen == 0 {
			r.touched = append(r.touched, q)
		}
		q.seen = max(q.seen, rec.QueueOffset+1)
		if !q.matches(rec, tags) {
			r.s.odd = append(r.s.odd, oddRecord{at: rec.PhysicalOffset, queue: q})
		}
	}
}

// matches tells whether the unit at the record's queue offset is plainly the record's: judge.compare has nothing to say then.
func (q *glimpse) matches(r *record.Record, tags string) bool {
	if q.q == nil || r.QueueOffset < q.q.Min() || r.QueueOffset >= q.q.Max() {
		return false
	}
	u, err := q.unitAt(r.QueueOffset)
	return err == nil && u.PhysicalOffset == r.PhysicalOffset && u.Size == r.Size &&
		(u.TagsCode == int64(messages.JavaHash(tags)) || ext.IsAddress(u.TagsCode)) && string(r.Topic) != messages.TopicSchedule
}

// hasFurther tells whether a record belongs to further queues.
func hasFurther(r *record.Record) bool {
	for range record.MultiQueues(r) {
		return true
	}
	return false
}

// take makes what a stretch has found part of the scan, as if the walk had met its records.
func (p *planner) take(s *stretch) error {
	if s.records > 0 {
		p.Records += s.records
		p.LastStoreMs = s.storeMs
	}
	for _, q := range s.seen {
		v := p.judge.verdicts.of([]byte(q.key.Topic), q.key.QueueID)
		v.seen = max(v.seen, q.end)
	}
	for _, odd := range s.odd {
		if q := odd.queue; q != nil && p.judge.verdicts.of([]byte(q.key.Topic), q.key.QueueID).from >= 0 {
			continue
		}
		if err := p.judgeAt(odd.at); err != nil {
			return err
		}
	}
	p.kept.take(s)
	s.seen, s.odd = nil, nil // the keys may stay for long
	return nil
}

// judgeAt judges queues by the sound record at a place.
func (p *planner) judgeAt(at messages.PhysicalOffset) error {
	s, err := p.log.ReadFrom(at)
	if err != nil {
		return err
	}
	defer s.Release()
	return vfs.Guard(s.Path(), func() error {
		r, _, err := record.Parse(s.Bytes, false)
		if err != nil {
			return err
		}
		return p.judge.record(&r)
	})
}
