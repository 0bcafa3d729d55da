package crash

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/actormq/actormq/messages"
)

// state is how far a message has come.
type state int

const (
	sent     state = iota // no answer yet, or none that promises anything
	refused               // an answer that says that nothing was stored
	acked                 // PUT_OK
	durable               // a recovery or a clean stop has found it
	gone                  // a recovery has not found it, and was allowed not to
	deleting              // its topic is being deleted: it may be in its queue or not
	deleted               // not in its queue any more; perhaps in the log
)

// message is one message of the model.
type message struct {
	id    int
	queue messages.QueueKey
	body  []byte
	keys  []string // the first is UNIQ_KEY
	state state
	must  bool // must survive the crash that has just happened

	at       messages.QueueOffset // as acknowledged, or as found
	from, to messages.PhysicalOffset
	storeMs  int64
	ackedAt  time.Time
	sync     bool // acknowledged in SYNC_FLUSH mode
	answers  int
	further  []string // light topics beside its own
	delayed  bool     // it was put with a delay; queue and at are those of the delay level
	copies   int      // of a delayed message, delivered
}

// Model is what a store has to answer for. Safe for concurrent use.
type Model struct {
	mu  sync.Mutex
	all []*message // by id
	// over: a crash has happened, and its picture is taken: what is answered now comes too late to promise anything.
	over bool
}

// add makes the next message.
func (m *Model) add(queue messages.QueueKey, size int, shared string) *message {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := len(m.all)
	n := &message{id: id, queue: queue, body: body(id, size), keys: []string{fmt.Sprint("u", id), fmt.Sprint("k", id), shared}}
	m.all = append(m.all, n)
	return n
}

// body is the content of a message: its number, and bytes that depend on it.
func body(id, size int) []byte {
	b := fmt.Appendf(nil, "%08d", id)
	for i := range size {
		b = append(b, byte('a'+(id*7+i/3)%26))
	}
	return b
}

// idOf is the number in a body.
func idOf(b []byte) (id int, err error) {
	if len(b) < 8 {
		return 0, fmt.Errorf("a body of %d bytes, none was put", len(b))
	}
	_, err = fmt.Sscanf(string(b[:8]), "%08d", &id)
	return id, err
}

// nothing are the statuses that say that nothing was stored.
var nothing = []messages.PutStatus{
	messages.ServiceNotAvailable, messages.MessageIllegal, messages.PropertiesSizeExceeded, messages.OSPageCacheBusy,
	messages.CreateMapedFileFailed,
}

// answer notes what became of messages that were put together.
func (m *Model) answer(list []*message, r messages.PutResult, err error, durableMode bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, n := range list {
		n.answers++
		if slices.Contains(nothing, r.Status) {
			n.state = refused
		}
		if r.Status != messages.PutOK || err != nil || m.over {
			continue
		}
		n.state, n.ackedAt, n.sync = acked, time.Now(), durableMode
		n.at, n.storeMs = r.QueueOffset+messages.QueueOffset(i), r.StoreTimestampMs
		if len(list) == 1 {
			n.from, n.to = r.PhysicalOffset, r.End()
		} else { // a batch has one answer: at least the whole of it must be durable
			n.from, n.to = -1, r.End()
		}
	}
}

// settled makes everything acknowledged durable: after a stop without an error.
func (m *Model) settled() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.all {
		if n.state == acked {
			n.state = durable
		}
	}
}

// window says how much an asynchronous flush may lose.
type window struct {
	flushed   messages.PhysicalOffset
	committed messages.PhysicalOffset // what lies behind it is in memory of the process: in write buffers of the transient store pool
	late      time.Duration           // what was acknowledged longer ago must be flushed
}

var errLate = errors.New("acknowledged long ago and still not flushed")

// before decides what must survive a crash that happens now.
func (m *Model) before(kill bool, w window) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over = true
	var errs []error
	for _, n := range m.all {
		switch n.state {
		case durable:
			n.must = true
		case acked:
			n.must = n.sync || n.to <= w.flushed || kill && n.to <= w.committed
			if age := time.Since(n.ackedAt); !n.must && age > w.late {
				errs = append(errs, fmt.Errorf("message %d, %v ago, ends at %d, flushed to %d: %w", n.id, age, n.to, w.flushed, errLate))
			}
		default:
			n.must = false
		}
	}
	return errors.Join(errs...)
}

// delete marks the messages of a topic: from one of some states to another.
func (m *Model) delete(topic string, from []state, to state) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.all {
		if n.queue.Topic == topic && slices.Contains(from, n.state) {
			n.state = to
		}
	}
}

// expire marks the messages of a topic, or of all, that were stored before a time as being deleted, and returns them with what they were.
func (m *Model) expire(topic string, beforeMs int64) map[*message]state {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := map[*message]state{}
	for _, n := range m.all {
		if (n.state == acked || n.state == durable) && n.storeMs < beforeMs && (topic == "" || n.queue.Topic == topic) {
			old[n], n.state = n.state, deleting
		}
	}
	return old
}

// keep ends a deletion: some are there still. It returns how many are gone.
func (m *Model) keep(old map[*message]state, there func(*message) bool) (gone int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n, before := range old {
		if there(n) {
			n.state = before
			continue
		}
		n.state = deleted
		gone++
	}
	return gone
}

// drop notes that a message must never be seen.
func (m *Model) drop(n *message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n.state = refused
}

// undelivered returns a message that was put with a delay, is there, and has no copy in its own topic.
func (m *Model) undelivered(copies map[int]bool) *message {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.all {
		if n.delayed && n.state == durable && !copies[n.id] {
			return n
		}
	}
	return nil
}

// found is a record that a recovery has kept.
type found struct {
	queue    messages.QueueKey
	at       messages.QueueOffset
	from, to messages.PhysicalOffset
	storeMs  int64
	body     []byte
	keys     string
	unique   string
	queued   bool // its queue names it
	further  map[messages.QueueKey]messages.QueueOffset
}

// after judges what a recovery has found, and takes it as the truth from now on. It returns how many were lost, all of them
// rightly.
func (m *Model) after(list []found) (lost int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over = false
	var errs []error
	seen := map[int]bool{}
	for i := range list {
		if err := m.accept(&list[i], seen); err != nil {
			errs = append(errs, fmt.Errorf("record at %d, %v %d: %w", list[i].from, list[i].queue, list[i].at, err))
		}
	}
	for _, n := range m.all {
		if n.state == gone || n.state == refused || n.state == deleted || seen[n.id] {
			continue
		}
		if n.state == deleting {
			n.state = deleted
			continue
		}
		if n.must {
			errs = append(errs, fmt.Errorf("LOST: message %d of %v, queue offset %d, log %d..%d (sync %v)", n.id, n.queue, n.at, n.from, n.to, n.sync))
		}
		if n.state != sent {
			lost++
		}
		n.state = gone
	}
	return lost, errors.Join(errs...)
}

// unseen are the topics of transactions.
var unseen = []string{messages.TopicTransactionHalf, messages.TopicTransactionOp, messages.TopicTransCheckMaxTime}

func (m *Model) accept(f *found, seen map[int]bool) error {
	if slices.Contains(unseen, f.queue.Topic) {
		return nil // what nobody sees
	}
	id, err := idOf(f.body)
	if err != nil || id < 0 || id >= len(m.all) {
		return fmt.Errorf("message %d was never put: %w", id, err)
	}
	n := m.all[id]
	switch {
	case !bytes.Equal(n.body, f.body), n.keys[0] != f.unique, n.keys[1]+" "+n.keys[2] != f.keys:
		return fmt.Errorf("message %d has changed", id)
	case n.delayed && f.queue.Topic == laterTopic:
		n.copies++ // at least once, after a crash
		return nil
	case n.state == deleted && f.queued:
		return fmt.Errorf("message %d was deleted with its topic and is back", id)
	case n.state == deleted, n.state == deleting && !f.queued:
		return nil
	case !f.queued:
		return fmt.Errorf("message %d is not in its queue", id)
	case seen[id]:
		return fmt.Errorf("message %d is there twice", id)
	case n.state == refused:
		return fmt.Errorf("message %d was refused, or rolled back", id)
	case n.state == gone:
		return fmt.Errorf("message %d was gone and is back", id)
	case n.queue != f.queue:
		return fmt.Errorf("message %d was put into %v", id, n.queue)
	case n.state >= acked && n.state != deleting && (n.at != f.at || n.from >= 0 && n.from != f.from):
		return fmt.Errorf("message %d was acknowledged as queue offset %d at %d", id, n.at, n.from)
	}
	seen[id] = true
	n.state, n.at, n.from, n.to, n.storeMs = durable, f.at, f.from, f.to, f.storeMs
	return nil
}

// queue returns the messages that are in a queue, by queue offset; those without an answer are left out.
func (m *Model) queue(key messages.QueueKey) []*message {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []*message
	for _, n := range m.all {
		if n.queue == key && (n.state == acked || n.state == durable) {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, func(a, b *message) int { return int(a.at - b.at) })
	return list
}

// alive returns a message that has an answer and is there, nil when there is none; pick chooses.
func (m *Model) alive(pick int) *message {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.all {
		if n := m.all[(pick+i)%len(m.all)]; n.state == acked || n.state == durable {
			return n
		}
	}
	return nil
}

// once tells whether every message has had exactly one answer.
func (m *Model) once() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.all {
		if n.answers != 1 {
			return fmt.Errorf("message %d has had %d answers", n.id, n.answers)
		}
	}
	return nil
}
