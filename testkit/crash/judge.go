package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/store"
)

// judge opens what a crash has left, twice, compares it with the model and with itself, and leaves it recovered.
func (r *run) judge() error {
	first, list, err := r.recovered()
	if err != nil {
		return err
	}
	again, _, err := r.recovered()
	if err != nil {
		return fmt.Errorf("a second time: %w", err)
	}
	if err := first.same(again); err != nil {
		return fmt.Errorf("recovering twice: %w", err)
	}
	lost, err := r.model.after(list)
	r.Lost += lost
	r.Trace.add("recovered: %d records, %d lost", len(list), lost)
	if err != nil {
		return err
	}
	return r.throughTheStore()
}

// content is what a directory holds after recovery.
type content struct {
	min, end messages.PhysicalOffset
	log      []byte
	report   store.Report
	lost     map[messages.PhysicalOffset]bool // records that stand for lost ones
	queues   map[messages.QueueKey]queueContent
	keys     map[string][]messages.PhysicalOffset
	keysFrom messages.PhysicalOffset // the index is asked for records from here on
}

func newContent(s *store.Store) *content {
	return &content{
		min: s.Log.Min(), end: s.Log.End(), report: s.Report, lost: map[messages.PhysicalOffset]bool{},
		queues: map[messages.QueueKey]queueContent{}, keys: map[string][]messages.PhysicalOffset{},
	}
}

type queueContent struct {
	min, max messages.QueueOffset
	units    []consumequeue.Unit
}

func (c *content) same(d *content) error {
	switch {
	case c.min != d.min || c.end != d.end || !bytes.Equal(c.log, d.log):
		i := 0
		for i < min(len(c.log), len(d.log)) && c.log[i] == d.log[i] {
			i++
		}
		return fmt.Errorf("the log was %d..%d, is %d..%d, and differs from %d on; first %+v, then %+v", c.min, c.end, d.min, d.end,
			int(max(c.min, 0))+i, c.report, d.report)
	case !maps.EqualFunc(c.queues, d.queues, func(a, b queueContent) bool {
		return a.min == b.min && a.max == b.max && slices.Equal(a.units, b.units)
	}):
		return fmt.Errorf("the queues were %v and are %v; first %+v, then %+v", c.queues, d.queues, c.report, d.report)
	case !maps.EqualFunc(c.keys, d.keys, slices.Equal[[]messages.PhysicalOffset]):
		return errors.New("the index has changed")
	}
	return nil
}

// recovered opens the files without actors, as after a crash, and reads everything.
func (r *run) recovered() (*content, []found, error) {
	s, err := store.Open(r.disk, r.params(), store.Options{Now: func() time.Time { return time.UnixMilli(1_700_000_000_000) }})
	if err != nil {
		return nil, nil, fmt.Errorf("recovery: %w", err)
	}
	c := newContent(s)
	list, err := c.readLog(s)
	if err == nil {
		err = c.readQueues(s)
	}
	if err == nil {
		err = c.agree(s, list)
	}
	return c, list, errors.Join(err, s.Close())
}

func (r *run) params() store.Params {
	return store.Params{
		Dir: r.opt.Dir, SegmentBytes: r.opt.SegmentBytes, ConsumeQueueFileBytes: r.opt.ConsumeQueueFileBytes,
		IndexSlots: r.opt.IndexSlots, IndexEntries: r.opt.IndexEntries, CheckCRC: true, MessageIndex: true,
		MultiDispatch: r.opt.MultiDispatch, ExtFileBytes: r.extBytes(),
	}
}

func (r *run) extBytes() int64 {
	if r.opt.ConsumeQueueExt {
		return r.opt.ConsumeQueueExtBytes
	}
	return 0
}

func (c *content) readLog(s *store.Store) ([]found, error) {
	var list []found
	w := store.Walk{Log: s.Log, Queues: s.Queues, CheckCRC: true}
	end, stop, err := w.Run(max(c.min, 0), func(it *store.Item) error {
		if it.Kind != store.ItemRecord {
			return nil
		}
		rec := &it.Record
		if rec.Lost() {
			c.lost[it.From] = true
			return nil
		}
		p := messages.ViewProperties(rec.Properties)
		keys, _ := p.Get(messages.PropertyKeys)
		unique, _ := p.Get(messages.PropertyUniqKey)
		list = append(list, found{
			queue: messages.QueueKey{Topic: string(rec.Topic), QueueID: rec.QueueID}, at: rec.QueueOffset, from: it.From, to: it.To,
			storeMs: rec.StoreTimestampMs, body: slices.Clone(rec.Body), keys: string([]byte(keys)), unique: string([]byte(unique)),
			further: maps.Collect(record.MultiQueues(rec)),
		})
		return nil
	})
	if err == nil && (stop != nil || end != c.end) {
		err = fmt.Errorf("the log ends at %d, and not at %d: %w", end, c.end, stop)
	}
	for i := range s.Log.View().Len() {
		seg := s.Log.View().At(i)
		c.log = append(c.log, seg.Data()[:seg.Wrote()]...)
	}
	return list, err
}

// indexed are the keys by which the record can be found; one that many messages share only among the newest of them.
func (f *found) indexed() []string {
	keys := []string{f.unique}
	for _, key := range strings.Fields(f.keys) {
		if !strings.HasPrefix(key, sharedKey) {
			keys = append(keys, key)
		}
	}
	return slices.DeleteFunc(keys, func(key string) bool { return key == "" })
}

func (c *content) readQueues(s *store.Store) error {
	var err error
	s.Queues.Each(func(key messages.QueueKey, q *consumequeue.Queue) {
		lo, hi := q.Range()
		units := make([]consumequeue.Unit, hi-lo)
		for n := 0; n < len(units); {
			k, e := q.Read(lo+messages.QueueOffset(n), units[n:])
			if e != nil || k == 0 {
				err = errors.Join(err, fmt.Errorf("read %v from %d: %d units: %w", key, lo+messages.QueueOffset(n), k, e))
				return
			}
			n += k
		}
		for i := range units { // an address may be another one the next time, what it stands for may not
			code, ok := q.TagsCode(units[i])
			if units[i].TagsCode = code; !ok {
				units[i].TagsCode = -1
			}
		}
		c.queues[key] = queueContent{min: lo, max: hi, units: units}
	})
	return err
}

// agree checks log, queues and index against each other.
func (c *content) agree(s *store.Store, list []found) error {
	var errs []error
	named := maps.Clone(c.lost)
	for i := range list {
		f := &list[i]
		named[f.from] = true
		if q := c.queues[f.queue]; f.at >= q.min && f.at < q.max {
			u := q.units[f.at-q.min]
			f.queued = u.PhysicalOffset == f.from && u.End() == f.to
		}
		errs = append(errs, c.spreads(f))
		if f.from < c.keysFrom {
			continue
		}
		for _, key := range f.indexed() {
			at, err := s.Index.Query(f.queue.Topic, key, 64, 0, 1<<61)
			c.keys[key] = at
			if n := len(slices.DeleteFunc(slices.Clone(at), func(o messages.PhysicalOffset) bool { return o != f.from })); err != nil || n != 1 {
				errs = append(errs, fmt.Errorf("record at %d: the index has %d entries of %q for it: %w", f.from, n, key, err))
			}
		}
	}
	for key, q := range c.queues {
		for i, u := range q.units {
			at := q.min + messages.QueueOffset(i)
			// A unit may name damage, a short one nothing at all: its message is lost. It must not name another message.
			if !named[u.PhysicalOffset] && u.Size >= record.MinBytes && errors.Is(store.Names(s.Log, u, key, at), store.ErrOtherRecord) {
				errs = append(errs, fmt.Errorf("%v %d names %d, where another record is", key, at, u.PhysicalOffset))
			}
		}
	}
	return errors.Join(errs...)
}

// spreads tells in which further queue a record is not; one that is in its own queue no more has left them with its topic, or not.
func (c *content) spreads(f *found) error {
	if !f.queued {
		return nil
	}
	for key, at := range f.further {
		q := c.queues[key]
		if at < q.min {
			continue
		}
		if at >= q.max || q.units[at-q.min].PhysicalOffset != f.from {
			return fmt.Errorf("record at %d: %v %d does not name it", f.from, key, at)
		}
	}
	return nil
}

// throughTheStore looks at everything through the store's own methods.
func (r *run) throughTheStore() error {
	r.setTrip(1 << 60)
	r.opt.NoIndex = false
	if err := r.open(); err != nil {
		return err
	}
	defer r.shut()
	byQueue := map[messages.QueueKey][]*message{}
	for _, n := range r.model.all {
		if n.state != durable {
			continue
		}
		byQueue[n.queue] = append(byQueue[n.queue], n)
		if err := r.findKeys(n); err != nil {
			return err
		}
		if m, err := r.store.MessageAt(n.from); err != nil || string(m.Body) != string(n.body) {
			return fmt.Errorf("message %d at %d: %w", n.id, n.from, err)
		}
	}
	for key := range byQueue {
		if err := r.readAll(key); err != nil {
			return err
		}
	}
	for _, topic := range lightTopics {
		if err := r.readLight(topic); err != nil {
			return err
		}
	}
	return r.delivered()
}

// delivered waits until every delay has passed and requires each delayed message in its own topic.
func (r *run) delivered() error {
	r.Pause(pauses[3])
	r.Settle()
	copies := map[int]bool{}
	for id := range int32(laterQueues) {
		key := messages.QueueKey{Topic: laterTopic, QueueID: id}
		if err := r.read(key, func(rec *record.Record) error {
			id, err := idOf(rec.Body)
			copies[id] = true
			return err
		}); err != nil {
			return err
		}
	}
	if n := r.model.undelivered(copies); n != nil {
		return fmt.Errorf("LOST: message %d, delayed, %v %d at %d, was never delivered", n.id, n.queue, n.at, n.from)
	}
	return nil
}

// readAll reads a queue from its beginning and compares.
func (r *run) readAll(key messages.QueueKey) error {
	want := r.model.queue(key)
	err := r.read(key, func(rec *record.Record) error {
		if len(want) == 0 || rec.QueueOffset != want[0].at || string(rec.Body) != string(want[0].body) {
			return fmt.Errorf("queue offset %d of %v is not what was put", rec.QueueOffset, key)
		}
		want = want[1:]
		return nil
	})
	if err == nil && len(want) > 0 {
		err = fmt.Errorf("%v: message %d at %d was not there", key, want[0].id, want[0].at)
	}
	return err
}

// readLight reads the queue of a light topic and requires every message that is in its own queue.
func (r *run) readLight(topic string) error {
	seen := map[int]int{}
	err := r.read(messages.QueueKey{Topic: topic}, func(rec *record.Record) error {
		id, err := idOf(rec.Body)
		seen[id]++
		return err
	})
	for _, n := range r.model.all {
		if want := n.state == durable && slices.Contains(n.further, topic); want && seen[n.id] != 1 {
			err = errors.Join(err, fmt.Errorf("LOST: message %d is %d times in %s", n.id, seen[n.id], topic))
		}
	}
	return err
}

// read calls fn for each message of a queue.
func (r *run) read(key messages.QueueKey, fn func(*record.Record) error) error {
	for at, end := r.store.MinOffset(key), r.store.MaxOffset(key); at < end; {
		result, err := r.store.Get(context.Background(), messages.GetMessage{Queue: key, Offset: at, MaxMessages: 32})
		if err != nil {
			return err
		}
		for _, raw := range result.Records {
			rec, _, err := record.Parse(raw, true)
			if err == nil {
				err = fn(&rec)
			}
			if err != nil {
				result.Release()
				return fmt.Errorf("get %v from %d: %w", key, at, err)
			}
		}
		next := result.NextOffset
		result.Release()
		if next <= at {
			return fmt.Errorf("get %v from %d goes on at %d", key, at, next)
		}
		at = next
	}
	return nil
}
