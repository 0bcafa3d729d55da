package system

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
)

// How many consume-queue units a get looks at (spec/store.md §7.2): it examines at least minExamined, read a part at a
// time.
const (
	minExamined = 800
	unitsAPart  = 128
)

// getPool recycles results.
var getPool = sync.Pool{New: func() any { return new(messages.GetResult) }}

// Get reads messages of a queue from an offset on, as many as the request and the store's limits allow (spec/store.md
// §7.2–7.3). It takes no lock and sends no message; it never waits for the writer. The caller releases the result, when
// the error is nil, once. A status tells where the offset lies; an error means that the store could not look.
func (s *Store) Get(ctx context.Context, m messages.GetMessage) (*messages.GetResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := s.readable(); err != nil {
		return nil, err
	}
	if !s.read.Load() {
		s.read.Store(true)
	}
	r := getPool.Get().(*messages.GetResult)
	r.OnRelease = recycleResult
	units, kept := s.units.Get().(*consumequeue.Reader)
	if !kept {
		units = new(consumequeue.Reader)
	}
	defer s.units.Put(units)
	q := units.Lookup(s.queues, m.Queue)
	if q == nil {
		r.Status = messages.NoMessageInQueue // NO_MATCHED_LOGIC_QUEUE, which the original never says either, means the same
		r.NextOffset = (&get{store: s, m: m}).correct(0)
		return r, nil
	}
	g := get{store: s, q: q, units: units, m: m, r: r, end: s.log.End()}
	g.limit()
	if g.locate() {
		if err := g.scan(); err != nil {
			r.Release()
			return nil, fmt.Errorf("get %s/%d from %d: %w", m.Queue.Topic, m.Queue.QueueID, m.Offset, err)
		}
	}
	return r, nil
}

func recycleResult(r *messages.GetResult) { getPool.Put(r) }

// get is one read in progress.
type get struct {
	store *Store
	q     *consumequeue.Queue
	units *consumequeue.Reader
	m     messages.GetMessage
	r     *messages.GetResult
	end   messages.PhysicalOffset // of the log

	near, far limits // of what is likely in memory, and of what is not

	skipTo messages.PhysicalOffset // behind a segment that is gone

	held   commitlog.Slice         // of the segment that the result holds last
	heldAt messages.PhysicalOffset // of its first byte

	touched byte // what warm has read: nobody looks at it
}

// locate compares the offset with the queue's range; false when there is nothing to scan.
func (g *get) locate() bool {
	lo, hi := g.q.Range()
	g.r.MinOffset, g.r.MaxOffset = lo, hi
	at := g.m.Offset
	status, next, found := messages.NoMatchedMessage, at, false
	switch {
	case hi == 0:
		status, next = messages.NoMessageInQueue, 0
	case at < lo:
		status, next = messages.OffsetTooSmall, lo
	case at == hi:
		status = messages.OffsetOverflowOne
	case at > hi:
		status, next = messages.OffsetOverflowBadly, hi
	default:
		found = true
	}
	if !found {
		next = g.correct(next)
	}
	g.r.Status, g.r.NextOffset = status, next
	return found
}

// correct is where a reader is sent whose offset has no message. A slave may lag behind its master, so it lets the reader be
// (offsetCheckInSlave).
func (g *get) correct(next messages.QueueOffset) messages.QueueOffset {
	if g.store.opt.Role == messages.Slave && !g.store.opt.CheckOffsetsInSlave {
		return g.m.Offset
	}
	return next
}

// scan looks at units until the result is full, the limit is reached or the queue ends. A fault in the map is its error.
func (g *get) scan() (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if r := recover(); r != nil {
			err = vfs.FaultError("read the commit log", r)
		}
	}()
	limit := max(minExamined, g.m.MaxMessages)
	for examined := 0; examined < limit; {
		units, err := g.units.Read(g.q, g.r.NextOffset, min(g.part(), limit-examined))
		if errors.Is(err, consumequeue.ErrBelowMin) || errors.Is(err, consumequeue.ErrChanged) {
			if examined == 0 { // cleaned or cut between locate and here
				g.r.Status, g.r.NextOffset = messages.OffsetFoundNull, g.correct(max(g.m.Offset, g.q.Min()))
			}
			return nil // what was found so far is the answer
		}
		if err != nil || len(units) == 0 {
			return err
		}
		if !g.lookAt(units) {
			return nil
		}
		examined += len(units)
	}
	return nil
}

// lookAt examines units that follow one another; false when the result is full.
func (g *get) lookAt(units []consumequeue.Unit) bool {
	if first := units[0]; first.PhysicalOffset >= g.skipTo && g.m.Tags == nil && g.record(first) != nil {
		g.ahead(units)
	}
	for done := 0; done < len(units); {
		if n := g.take(units[done:]); n > 0 {
			done += n
			continue
		}
		if !g.look(units[done]) {
			return false
		}
		if g.m.Tags != nil && done == 0 {
			g.ahead(units[1:])
		}
		g.r.NextOffset++
		done++
	}
	return true
}

// part is how many units are read next: without a filter no more than will be used, and the one that shows that the result is full.
func (g *get) part() int {
	if g.m.Tags != nil {
		return unitsAPart
	}
	more := min(g.m.MaxMessages, g.store.opt.MaxTransferMessages) - len(g.r.Records) + 1
	return min(max(more, 1), unitsAPart)
}

// take adds the records of these units to the result as long as there is nothing to decide: no filter, the segment is held, the record is whole,
// in its place and none that stands for a lost one, there is room, and all is near. It returns how many; look decides on the next one.
func (g *get) take(units []consumequeue.Unit) (n int) {
	if g.m.Tags != nil || g.skipTo != 0 {
		return 0
	}
	r, log, at := g.r, g.held.Bytes, g.heldAt
	near := max(at, g.end-messages.PhysicalOffset(g.store.memoryBytes))
	have, bytes := len(r.Records), r.Bytes
	units = units[:min(len(units), max(g.near.messages-have, 1-min(have, 1)))] // the first one is always taken
	r.Records = slices.Grow(r.Records, len(units))
	for into := r.Records[have : have+len(units)]; n < len(units) && n < len(into); n++ {
		u := &units[n]
		from, size := u.PhysicalOffset-at, int(u.Size)
		to := from + messages.PhysicalOffset(size)
		if u.PhysicalOffset < near || to > messages.PhysicalOffset(len(log)) || bytes+size > g.near.bytes && have+n > 0 {
			break
		}
		raw := log[from:to:to]
		if !record.IsPlainAt(raw, u.PhysicalOffset) {
			break
		}
		into[n] = raw
		bytes += size
	}
	if n == 0 {
		return 0
	}
	if len(r.Records) == 0 {
		r.Oldest = int64(g.end - units[0].PhysicalOffset)
	}
	r.Behind = int64(g.end - units[n-1].PhysicalOffset)
	r.Records, r.Bytes, r.Status = r.Records[:have+n], bytes, messages.Found
	r.NextOffset += messages.QueueOffset(n)
	return n
}

// look examines one unit; false when the result is full before it.
func (g *get) look(u consumequeue.Unit) bool {
	if u.PhysicalOffset < g.skipTo {
		return true
	}
	g.r.Behind = int64(g.end - u.PhysicalOffset)
	if g.full(u) {
		return false
	}
	if g.m.Tags != nil { // what is not known may match
		if code, known := g.q.TagsCode(u); known && !g.m.Tags(code) {
			return true
		}
	}
	raw := g.record(u)
	if raw == nil {
		g.missing(u.PhysicalOffset)
		return true
	}
	if !record.StandsAt(raw, u.PhysicalOffset) || record.IsLost(raw) {
		g.removed() // a place whose message is lost: recovery has reported it
		return true
	}
	if len(g.r.Records) == 0 {
		g.r.Oldest = g.r.Behind
	}
	g.r.Records = append(g.r.Records, raw)
	g.r.Bytes += int(u.Size)
	g.r.Status = messages.Found
	g.skipTo = 0
	return true
}

// record returns the bytes that a unit names, nil when they are not in the log.
func (g *get) record(u consumequeue.Unit) []byte {
	from := u.PhysicalOffset - g.heldAt
	if from < 0 || from+messages.PhysicalOffset(u.Size) > messages.PhysicalOffset(len(g.held.Bytes)) {
		if !g.hold(u.PhysicalOffset) || len(g.held.Bytes) < int(u.Size) {
			return nil
		}
		from = 0
	}
	to := from + messages.PhysicalOffset(u.Size)
	return g.held.Bytes[from:to:to]
}

// hold goes on at a place in the log; false when it is not there. The result holds each segment once, for all its records that
// come one after the other.
func (g *get) hold(off messages.PhysicalOffset) bool {
	s, err := g.store.log.ReadFrom(off)
	if err != nil {
		return false
	}
	if g.held.Bytes != nil && s.Holder() == g.held.Holder() {
		s.Release()
	} else {
		g.r.Hold(s.Holder())
	}
	g.held, g.heldAt = s, off
	return true
}

// missing notes that a record's segment is gone, and skips the rest of that segment.
func (g *get) missing(off messages.PhysicalOffset) {
	g.removed()
	g.skipTo = g.store.log.SegmentStart(off) + messages.PhysicalOffset(g.store.opt.SegmentBytes)
}

// removed notes that a unit's message is not there.
func (g *get) removed() {
	if len(g.r.Records) == 0 {
		g.r.Status = messages.MessageWasRemoving
	}
}

// limits are how much one get returns.
type limits struct{ bytes, messages int }

// limit combines the store's limits with the request's.
func (g *get) limit() {
	o := &g.store.opt
	g.near = limits{bytes: o.MaxTransferBytes, messages: min(g.m.MaxMessages, o.MaxTransferMessages)}
	g.far = limits{bytes: o.DiskTransferBytes, messages: min(g.m.MaxMessages, o.DiskTransferMessages)}
	if g.m.MaxBytes > 0 {
		g.near.bytes, g.far.bytes = min(g.near.bytes, g.m.MaxBytes), min(g.far.bytes, g.m.MaxBytes)
	}
}

// full is the rule of spec/store.md §7.3: never while nothing is collected.
func (g *get) full(u consumequeue.Unit) bool {
	n := len(g.r.Records)
	if n == 0 {
		return false
	}
	most := &g.near
	if g.r.Behind > g.store.memoryBytes {
		most = &g.far
	}
	return n >= most.messages || g.r.Bytes+int(u.Size) > most.bytes
}

// MinOffset is the first readable offset of a queue, 0 for one that is not there.
func (s *Store) MinOffset(key messages.QueueKey) messages.QueueOffset {
	if q := s.queues.Lookup(key); q != nil {
		return q.Min()
	}
	return 0
}

// MaxOffset is the offset behind the last readable message of a queue, 0 for one that is not there.
func (s *Store) MaxOffset(key messages.QueueKey) messages.QueueOffset {
	if q := s.queues.Lookup(key); q != nil {
		return q.Max()
	}
	return 0
}

// LogRange is the commit log's first and last physical offset; the first is -1 when there is no segment.
func (s *Store) LogRange() (first, end messages.PhysicalOffset) { return s.log.Min(), s.log.End() }

// HoldsInMemory tells whether a message is near enough to the log's end to be in memory, by the estimate of spec/store.md
// §7.2: MemoryRatioPercent of the machine's memory.
func (s *Store) HoldsInMemory(key messages.QueueKey, at messages.QueueOffset) bool {
	u, ok := s.unit(key, at)
	return ok && int64(s.log.End()-u.PhysicalOffset) <= s.memoryBytes
}

// unit returns one consume-queue unit.
func (s *Store) unit(key messages.QueueKey, at messages.QueueOffset) (consumequeue.Unit, bool) {
	q := s.queues.Lookup(key)
	if q == nil {
		return consumequeue.Unit{}, false
	}
	var one [1]consumequeue.Unit
	n, err := q.Read(at, one[:])
	return one[0], err == nil && n == 1
}
