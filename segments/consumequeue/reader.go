package consumequeue

import "github.com/actormq/actormq/messages"

// readerUnits is how many units a reader that goes on has at once: for some gets, and little beside the first-level cache.
const readerUnits = 256

// readerLead is how many units behind those of a Read are fetched for.
const readerLead = 64

// Reader reads queues in order. One that goes on where its last Read has ended reads many units at once, and knows the next ones, so that
// what they name can be fetched before it is looked at. It may be kept for other queues; one goroutine at a time uses it. The zero Reader
// is ready.
type Reader struct {
	queue *Queue // of the last look-up

	tail  *tail // whose units these are; nil: nobody's
	first int64 // queue offset of units[0]
	have  int   // units that are there
	known int   // as far as the last Read has given them, and as many behind
	asked int   // as far as Fetch has been

	units [readerUnits]Unit
}

// Lookup is Table.Lookup, which is quicker for the same queue as the last time.
func (r *Reader) Lookup(t *Table, key messages.QueueKey) *Queue {
	q := r.queue
	if q == nil || q.table != t || q.key != key || q.tail.Load().gone {
		q = t.Lookup(key)
		r.queue = q
	}
	return q
}

// Read returns the units from queue offset at on, want at the most and readerUnits/2, none at Max. They are valid until the next Read. Errors
// are those of Queue.Read, and come only without units. What was read ahead counts as long as the queue has neither been cut nor deleted; what is below
// Min is never returned.
func (r *Reader) Read(q *Queue, at messages.QueueOffset, want int) ([]Unit, error) {
	want = min(want, readerUnits/2)
	t := q.tail.Load()
	pos := int64(at) - r.first
	if r.tail != t || pos < 0 || pos > int64(r.have) || int64(at) < t.min.Load() {
		r.tail, r.first, r.have, r.asked = nil, int64(at), 0, 0
		if err := r.fill(q, t, want); err != nil {
			return nil, err
		}
		return r.give(0, want), nil
	}
	if r.have-int(pos) < want+readerLead && r.first+int64(r.have) < t.max.Load() {
		r.drop(int(pos))
		pos = 0
		if err := r.fill(q, t, readerUnits); err != nil && r.have == 0 {
			return nil, err
		}
	}
	return r.give(int(pos), want), nil
}

// fill reads on until there are n units, if so many are there. An error leaves what was there.
func (r *Reader) fill(q *Queue, t *tail, n int) error {
	n, err := q.readFrom(t, messages.QueueOffset(r.first+int64(r.have)), r.units[r.have:n])
	if err == nil {
		r.tail = t
		r.have += n
	}
	return err
}

// drop forgets the first n units.
func (r *Reader) drop(n int) {
	r.have = copy(r.units[:], r.units[n:r.have])
	r.first += int64(n)
	r.asked = max(r.asked-n, 0)
}

func (r *Reader) give(pos, want int) []Unit {
	to := min(pos+want, r.have)
	r.known = min(to+readerLead, r.have)
	r.asked = max(r.asked, pos)
	return r.units[pos:to]
}

// Fetch has the processor fetch the first bytes, head of them, of the records that the last Read has named, and of as many behind them as are
// known, if they lie in log, which begins at the physical offset from. It waits for nothing. What it was asked for before is left out.
func (r *Reader) Fetch(log []byte, from messages.PhysicalOffset, head int) {
	if r.asked < r.known {
		fetchHeads(r.units[r.asked:r.known], log, from, head)
		r.asked = r.known
	}
}
