package crash

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system"
)

// step is one sort of thing that the workload does. Further kinds are further rows of steps.
type step struct {
	name   string
	weight int
	do     func(*run) error
}

// steps is the mix.
var steps = []step{
	{"put", 30, (*run).putOne},
	{"batch", 8, (*run).putBatch},
	{"burst", 8, (*run).putBurst},
	{"get", 10, (*run).get},
	{"query", 6, (*run).query},
	{"by time", 4, (*run).byTime},
	{"wake", 3, (*run).wake},
	{"pause", 10, (*run).pause},
	{"delayed", 5, (*run).putDelayed},
	{"transaction", 4, (*run).transaction},
	{"clean", 1, (*run).clean},
	{"expire topic", 1, (*run).expireTopic},
	{"delete topic", 1, (*run).deleteTopic},
	{"reopen", 1, (*run).reopen},
	{"full disk", 1, (*run).fillUp},
	{"stop while the disk stalls", 1, (*run).stopStalled},
}

// work does steps until the crash.
func (r *run) work() error {
	total := 0
	for _, s := range steps {
		total += s.weight
	}
	for range r.Steps {
		if r.done() {
			return nil
		}
		n := r.rnd.IntN(total)
		i := slices.IndexFunc(steps, func(s step) bool { n -= s.weight; return n < 0 })
		r.Trace.add("step %s", steps[i].name)
		err := steps[i].do(r)
		r.Settle()
		if err != nil && !r.trip.happened() {
			return fmt.Errorf("step %s: %w", steps[i].name, err)
		}
	}
	return nil
}

// next makes a message of the model and the one that is put.
func (r *run) next(queue messages.QueueKey, size int) (*message, messages.Message) {
	n := r.model.add(queue, size, fmt.Sprint(sharedKey, r.rnd.IntN(5)))
	return n, messages.Message{
		Topic: queue.Topic, QueueID: queue.QueueID, Body: n.body, BornTimestampMs: time.Now().UnixMilli(),
		Properties: messages.PropertiesOf(map[string]string{
			messages.PropertyUniqKey: n.keys[0], messages.PropertyKeys: n.keys[1] + " " + n.keys[2], messages.PropertyTags: "t",
		}),
	}
}

// sharedKey begins a key that many messages have.
const sharedKey = "s"

// size is mostly small, sometimes nearly as much as a small segment takes.
func (r *run) size() int {
	if r.rnd.IntN(12) == 0 {
		return 1000 + r.rnd.IntN(2000)
	}
	return r.rnd.IntN(300)
}

// lightTopics are topics that no message is sent to: they have further queues of messages.
var lightTopics = []string{messages.LMQTopicPrefix + "x", messages.LMQTopicPrefix + "y", messages.LMQTopicPrefix + "z"}

// spread gives a third of the messages further queues.
func (r *run) spread(n *message, m *messages.Message) {
	if !r.opt.MultiDispatch || strings.HasPrefix(m.Topic, messages.RetryTopicPrefix) || r.rnd.IntN(3) > 0 {
		return
	}
	first := r.rnd.IntN(len(lightTopics))
	n.further = slices.Clone(lightTopics[first : first+1+r.rnd.IntN(len(lightTopics)-first)])
	m.Properties = m.Properties.With(messages.PropertyMultiDispatch, strings.Join(n.further, ","))
	r.Further++
}

// answered takes the answer of a put.
func (r *run) answered(list []*message, result messages.PutResult, err error) error {
	r.model.answer(list, result, err, r.opt.FlushDiskType == system.SyncFlush)
	if err != nil || result.Status != messages.PutOK {
		return fmt.Errorf("put of message %d: %v: %w", list[0].id, result.Status, err)
	}
	return nil
}

func (r *run) putOne() error {
	n, m := r.next(r.topic(), r.size())
	r.spread(n, &m)
	result, err := r.store.Put(context.Background(), &m)
	return r.answered([]*message{n}, result, err)
}

func (r *run) putBatch() error {
	var list []*message
	var batch []messages.Message
	queue := r.topic()
	for range 2 + r.rnd.IntN(6) {
		n, m := r.next(queue, r.rnd.IntN(200))
		list, batch = append(list, n), append(batch, m)
	}
	result, err := r.store.PutMessages(context.Background(), batch)
	return r.answered(list, result, err)
}

// putBurst has several puts in flight at once.
func (r *run) putBurst() error {
	count := 2 + r.rnd.IntN(15)
	errs := make(chan error, count)
	for range count {
		n, m := r.next(r.topic(), r.rnd.IntN(200))
		r.spread(n, &m)
		r.store.PutAsync(&m, true, time.Time{}, func(result messages.PutResult, err error) {
			errs <- r.answered([]*message{n}, result, err)
		})
	}
	var all error
	for range count {
		all = errors.Join(all, <-errs)
	}
	return all
}

// get reads a queue from some offset on and compares it with the model.
func (r *run) get() error {
	key := r.topic()
	list := r.model.queue(key)
	if len(list) == 0 {
		return nil
	}
	want := list[r.rnd.IntN(len(list)):]
	r.readable()
	result, err := r.store.Get(context.Background(), messages.GetMessage{Queue: key, Offset: want[0].at, MaxMessages: 8})
	if err != nil {
		return err
	}
	defer result.Release()
	if len(result.Records) == 0 {
		return fmt.Errorf("get %v from %d: nothing, %v", key, want[0].at, result.Status)
	}
	for i, raw := range result.Records {
		rec, _, err := record.Parse(raw, true)
		if err != nil || rec.QueueOffset != want[i].at || string(rec.Body) != string(want[i].body) {
			return fmt.Errorf("get %v: offset %d instead of %d (message %d): %w", key, rec.QueueOffset, want[i].at, want[i].id, err)
		}
	}
	return r.endsBehind(key, list[len(list)-1].at)
}

// endsBehind says why a queue's end is wrong. Behind its last message there may be the places of messages that an asynchronous
// flush has lost, which are not given to others, and nothing else.
func (r *run) endsBehind(key messages.QueueKey, last messages.QueueOffset) error {
	end := r.store.MaxOffset(key)
	if end <= last {
		return fmt.Errorf("%v ends at %d, its last message is %d", key, end, last)
	}
	for at := last + 1; at < end; at++ {
		result, err := r.store.Get(context.Background(), messages.GetMessage{Queue: key, Offset: at, MaxMessages: 1})
		if err != nil {
			return err
		}
		status, n := result.Status, len(result.Records)
		result.Release()
		if n > 0 || status != messages.MessageWasRemoving {
			return fmt.Errorf("%v ends at %d, its last message is %d, and at %d there is %v", key, end, last, at, status)
		}
	}
	return nil
}

// query looks for a message by its own keys.
func (r *run) query() error {
	n := r.model.alive(r.rnd.IntN(1 << 20))
	if n == nil || r.opt.NoIndex || r.store.Status().Flags&messages.FlagIndexError != 0 {
		return nil
	}
	r.readable()
	return r.findKeys(n)
}

// findKeys finds one message by both its own keys.
func (r *run) findKeys(n *message) error {
	for _, key := range n.keys[:2] {
		list, err := r.store.Query(context.Background(), messages.QueryMessage{
			Topic: n.queue.Topic, Key: key, MaxMessages: 32, EndMs: 1 << 61,
		})
		if err != nil {
			return err
		}
		if len(list) != 1 || list[0].QueueOffset != n.at || string(list[0].Body) != string(n.body) {
			return fmt.Errorf("query of %s of message %d at %d: %d found", key, n.id, n.from, len(list))
		}
	}
	return nil
}

// byTime searches a queue by the store time of one of its messages.
func (r *run) byTime() error {
	key := r.topic()
	list := r.model.queue(key)
	if len(list) == 0 {
		return nil
	}
	r.readable()
	ms := list[r.rnd.IntN(len(list))].storeMs + int64(r.rnd.IntN(3)) - 1
	at, err := r.store.OffsetByTime(context.Background(), key, ms, messages.TimeLower)
	if err != nil {
		return err
	}
	for _, n := range list {
		if n.at < at && n.storeMs >= ms || n.at >= at && n.storeMs < ms {
			return fmt.Errorf("search of %v for %d: offset %d, but message %d at %d has %d", key, ms, at, n.id, n.at, n.storeMs)
		}
	}
	return nil
}

// wake parks a pull at the end of a queue, and puts a message that wakes it.
func (r *run) wake() error {
	key := r.topic()
	woken := make(chan messages.WakeReason, 2)
	r.store.Park(&messages.ParkPull{
		Queue: key, Offset: r.store.MaxOffset(key), Wake: func(why messages.WakeReason) { woken <- why },
	})
	r.Settle()
	n, m := r.next(key, r.size())
	result, err := r.store.Put(context.Background(), &m)
	if err := r.answered([]*message{n}, result, err); err != nil {
		return err
	}
	r.Settle()
	r.readable()
	if len(woken) != 1 {
		return fmt.Errorf("a pull of %v was woken %d times", key, len(woken))
	}
	return nil
}

// pauses let timers fire, never at the instant at which they end.
var pauses = []time.Duration{
	1100 * time.Microsecond, 301_300 * time.Microsecond, 2_001_700 * time.Microsecond, 12_003_100 * time.Microsecond,
	70_004_300 * time.Microsecond,
}

func (r *run) pause() error {
	r.Pause(pauses[r.rnd.IntN(len(pauses))])
	return nil
}

// laterTopic is the topic of the delayed messages; it is never deleted.
const (
	laterTopic  = "Later"
	laterQueues = 2
)

// putDelayed puts a message that is due in one or five seconds.
func (r *run) putDelayed() error {
	level := 1 + r.rnd.IntN(2)
	queue := messages.QueueKey{Topic: messages.TopicSchedule, QueueID: int32(level - 1)}
	n, m := r.next(queue, r.rnd.IntN(200))
	n.delayed = true
	m.Topic, m.QueueID = laterTopic, int32(r.rnd.IntN(laterQueues))
	m.Properties = m.Properties.With(messages.PropertyDelay, strconv.Itoa(level))
	result, err := r.store.Put(context.Background(), &m)
	return r.answered([]*message{n}, result, err)
}

// deleteTopic deletes the queues of a topic.
func (r *run) deleteTopic() error {
	topic := r.topic().Topic
	r.model.delete(topic, []state{sent, acked, durable}, deleting)
	if err := r.store.DeleteTopic(context.Background(), topic); err != nil {
		return err
	}
	r.model.delete(topic, []state{deleting}, deleted)
	return nil
}

// transaction prepares a message and commits it, drops it, or leaves it.
func (r *run) transaction() error {
	n, m := r.next(messages.QueueKey{Topic: "Tx", QueueID: int32(r.rnd.IntN(2))}, r.rnd.IntN(200))
	half, result, err := r.tx.Prepare(context.Background(), "producers", &m)
	if err != nil || result.Status != messages.PutOK {
		return fmt.Errorf("prepare message %d: %v: %w", n.id, result.Status, err)
	}
	r.pauseShortly()
	switch r.rnd.IntN(4) {
	case 0: // nobody ends it
		return nil
	case 1:
		if err := r.tx.Rollback(context.Background(), half); err != nil {
			return err
		}
		r.model.drop(n)
		return nil
	}
	result, err = r.tx.Commit(context.Background(), half)
	return r.answered([]*message{n}, result, err)
}

func (r *run) pauseShortly() {
	if r.rnd.IntN(2) == 0 {
		r.Pause(pauses[r.rnd.IntN(3)])
	}
}

// clean has what is older than some minutes deleted, by segments.
func (r *run) clean() error {
	old := r.model.expire("", time.Now().Add(-reserved+10*time.Second).UnixMilli()) // time goes on while it is done
	retention := r.store.Options().Retention
	retention.FileReservedTime = reserved
	if err := r.retain(retention); err != nil || r.done() {
		return err
	}
	first, _ := r.store.LogRange()
	r.Expired += r.model.keep(old, func(n *message) bool { return n.to > first })
	return nil
}

const reserved = 4 * time.Minute

// retain has the store cleaned by a retention, and gives it its own one back.
func (r *run) retain(retention messages.Retention) error {
	if err := r.store.SetRetention(retention); err != nil {
		return err
	}
	if err := r.store.DeleteExpiredFiles(); err != nil {
		return err
	}
	r.Pause(pauses[2]) // a tenth of a second a file
	r.Settle()
	if r.done() {
		return nil
	}
	return r.store.SetRetention(r.store.Options().Retention)
}

// expireTopic has what is older than some minutes expire from the queues of a topic; the log keeps it.
func (r *run) expireTopic() error {
	topic := r.topic().Topic
	old := r.model.expire(topic, time.Now().Add(-reserved+10*time.Second).UnixMilli())
	r.model.delete(topic, []state{sent}, deleting) // what was not answered may be as old
	retention := r.store.Options().Retention
	retention.Topics = map[string]time.Duration{topic: reserved}
	if err := r.retain(retention); err != nil || r.done() {
		return err
	}
	r.TopicExpired += r.model.keep(old, func(n *message) bool { return n.at >= r.store.MinOffset(n.queue) })
	return nil
}
