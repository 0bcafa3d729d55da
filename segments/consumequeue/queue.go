package consumequeue

import (
	"fmt"
	"path"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/consumequeue/ext"
)

// Queue is one consume queue. See the package for who may call what.
type Queue struct {
	table *Table
	key   messages.QueueKey
	tail  atomic.Pointer[tail]
	ext   *ext.Queue // nil: there is none
	cur   *chunk     // the builder's: where the next unit goes; nil: a new chunk is needed

	written  atomic.Int64 // units below it are in the files
	unsynced atomic.Bool  // something in the files is not durable yet
	told     atomic.Bool  // of damage
	lackNext atomic.Int64 // see Lack; 0: it lacks nothing
	lackEnd  atomic.Int64 // stored before lackNext

	io      sync.Mutex  // orders what touches files and the fields below
	begin   int64       // queue offset of the first unit that the files and the memory hold
	first   int64       // queue offset at which the first file starts, -1: there is no file
	last    int64       // the same of the last file
	dirty   []int64     // starts of files written since the last Sync
	names   bool        // names in the folder have changed since the last Sync
	folders bool        // and the folder's own name, or its topic's
	loaded  bool        // nothing is known of what an earlier process had synced; until the first Sync
	failed  error       // a failed sync: what was lost is unknown, so it stays
	doubt   int64       // physical offset of the first unit written since the last good sync, -1: none was
	damaged error       // what recovery found
	tidy    bool        // recovery has found only zeros behind the last unit
	sound   bool        // recovery has looked at every unit
	peeked  *unitReader // recovery's: the last file, already open
}

func newQueue(t *Table, key messages.QueueKey) *Queue {
	q := &Queue{table: t, key: key, first: -1, last: -1, doubt: -1}
	if t.opt.ExtDir != "" {
		dir := path.Join(t.opt.ExtDir, key.Topic, strconv.Itoa(int(key.QueueID)))
		q.ext = ext.New(t.disk, dir, t.opt.ExtFileBytes, t.opt.ExtClean)
	}
	q.tail.Store(newTail(0, 0, -1))
	return q
}

// Key names the queue.
func (q *Queue) Key() messages.QueueKey { return q.key }

// Min is the first readable queue offset; equal to Max when nothing is readable.
func (q *Queue) Min() messages.QueueOffset { return messages.QueueOffset(q.tail.Load().min.Load()) }

// Max is the queue offset behind the last unit: the next message's.
func (q *Queue) Max() messages.QueueOffset { return messages.QueueOffset(q.tail.Load().max.Load()) }

// Range returns Min and Max of one moment: min ≤ max.
func (q *Queue) Range() (min, max messages.QueueOffset) {
	t := q.tail.Load()
	min = messages.QueueOffset(t.min.Load())
	return min, messages.QueueOffset(t.max.Load())
}

// PhysicalEnd is the physical offset behind the last indexed record, -1 when there is none.
func (q *Queue) PhysicalEnd() messages.PhysicalOffset {
	return messages.PhysicalOffset(q.tail.Load().end.Load())
}

// Pending is the number of units that are only in memory.
func (q *Queue) Pending() int64 { return max(0, q.tail.Load().max.Load()-q.written.Load()) }

// Durable tells whether all units, and the names of their files, survive a power cut.
func (q *Queue) Durable() bool { return q.Pending() == 0 && !q.unsynced.Load() }

// Damaged says what OpenTable found wrong, nil when nothing. Then Min to Max is the sound part in front of the damage, and
// what lies behind is not to be trusted: Truncate(Max()) clears it, Destroy clears all.
func (q *Queue) Damaged() error {
	q.io.Lock()
	defer q.io.Unlock()
	return q.damaged
}

// Tidy tells whether OpenTable has found nothing but zeros behind the last unit: then Truncate(Max()) has nothing to clear.
func (q *Queue) Tidy() bool {
	q.io.Lock()
	defer q.io.Unlock()
	return q.tidy
}

// Append puts the unit of the record with queue offset at into the queue. It is done at once and readable; it is in no
// file before Write. It reports false without an error for a record that the queue already has (it is safe to dispatch
// again). A queue without a file and a unit begins at the first offset that it is given. Otherwise a unit behind the end
// is refused with ErrGap, and a new record for a taken offset, or one from further back in the log, with ErrOrder (both
// in a *PlaceError): the queue is never misaligned. Builder only; it allocates only when a chunk is full.
func (q *Queue) Append(u Unit, at messages.QueueOffset) (bool, error) {
	t := q.tail.Load()
	if int64(at) != t.max.Load() {
		return q.appendElsewhere(t, u, at)
	}
	if int64(u.PhysicalOffset) < t.end.Load() {
		return false, q.misplaced(t, u, at, ErrOrder)
	}
	if t.gone || !u.Valid() {
		return false, q.refuse(t, u)
	}
	c := q.cur
	if c == nil || c.end() <= int64(at) {
		c = q.grow(t, int64(at))
	}
	putUnit(c.buf[(int64(at)-c.first)*UnitBytes:], u)
	t.end.Store(int64(u.End()))
	t.max.Store(int64(at) + 1)
	return true, nil
}

// Fetch has the processor fetch what the next Append is going to touch (segments.Fetch). Builder only.
func (q *Queue) Fetch() {
	if at, c := q.tail.Load().max.Load(), q.cur; c != nil && at >= c.first && at < c.end() {
		segments.Fetch(c.at(at, at+1))
	}
}

func (q *Queue) grow(t *tail, at int64) *chunk {
	q.cur = newChunk(at, at-q.written.Load())
	t.add(q.cur)
	return q.cur
}

// appendElsewhere handles a unit that is not the next one.
func (q *Queue) appendElsewhere(t *tail, u Unit, at messages.QueueOffset) (bool, error) {
	switch {
	case t.gone || !u.Valid() || at < 0:
		return false, q.refuse(t, u)
	case int64(at) < t.max.Load():
		if int64(u.End()) <= t.end.Load() {
			return false, nil
		}
		return false, q.misplaced(t, u, at, ErrOrder)
	case t.max.Load() == 0 && t.end.Load() < 0:
		if err := q.Begin(at); err != nil {
			return false, err
		}
		return q.Append(u, at)
	}
	return false, q.misplaced(t, u, at, ErrGap)
}

func (q *Queue) misplaced(t *tail, u Unit, at messages.QueueOffset, err error) error {
	return &PlaceError{
		Queue: q.key, At: at, Max: messages.QueueOffset(t.max.Load()), Physical: u.PhysicalOffset,
		PhysicalEnd: messages.PhysicalOffset(t.end.Load()), Err: err,
	}
}

func (q *Queue) refuse(t *tail, u Unit) error {
	if t.gone {
		return q.fail("append", ErrDestroyed)
	}
	return q.fail(fmt.Sprintf("append {%d %d %d}", u.PhysicalOffset, u.Size, u.TagsCode), ErrUnit)
}

// Begin makes an empty queue start at a queue offset: Min and Max become at. It is refused once the queue has had a unit.
// Builder only.
func (q *Queue) Begin(at messages.QueueOffset) error {
	q.io.Lock()
	defer q.io.Unlock()
	t := q.tail.Load()
	if t.gone {
		return q.fail("begin", ErrDestroyed)
	}
	if t.max.Load() != 0 || t.end.Load() >= 0 || q.first >= 0 || at < 0 {
		return q.misplaced(t, Unit{}, at, ErrOrder)
	}
	q.begin = int64(at)
	q.written.Store(int64(at))
	q.tail.Store(newTail(int64(at), int64(at), -1))
	return nil
}

// Cool gives the memory of the tail back when all of it is in the files. For queues that have been idle for a while;
// readers then use the file. Builder only.
func (q *Queue) Cool() {
	t := q.tail.Load()
	if q.written.Load() == t.max.Load() {
		t.chunks.Store(nil)
		q.cur = nil
	}
}

// path is the folder of the queue.
func (q *Queue) path() string {
	return path.Join(q.table.dir, q.key.Topic, strconv.Itoa(int(q.key.QueueID)))
}

// freshPath is where a file is made before it moves into the folder; RocketMQ skips the name.
func (q *Queue) freshPath() string { return q.path() + freshSuffix }

// startOf is the queue offset at which the file that holds a queue offset starts.
func (q *Queue) startOf(at int64) int64 { return at - at%q.table.units }
