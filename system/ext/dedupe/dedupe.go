package dedupe

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system"
)

// ErrDuplicate: the message is stored already.
var ErrDuplicate = errors.New(messages.RemarkDuplicate)

// Config is what the window is made of. The zero value of a field is its default.
type Config struct {
	Window    time.Duration // default 10 min
	MaxKeys   int           // beyond it the oldest are forgotten early; default 1,000,000 (some 60 MB)
	CountOnly bool          // duplicates are counted and stored
	Topics    []string      // empty: all
}

// Window is the extension. Plug it into the options of one store.
type Window struct {
	cfg    Config
	topics map[string]bool
	seed   maphash.Seed

	passed, duplicates, forgotten atomic.Int64

	mu    sync.RWMutex
	keys  map[uint64]int64 // hash of topic and key → store timestamp, ms
	order []noted          // the oldest first

	marks []mark // places in the log, one a part of the window; the dispatcher's
}

type noted struct {
	hash uint64
	ms   int64
}

// mark is a place in the log behind which all messages are stored after a time.
type mark struct {
	Position system.Position `json:"position"`
	Ms       int64           `json:"ms"`
}

// Counters tell what the window has seen since the start.
type Counters struct {
	Passed     int64 // puts with a key that was not known
	Duplicates int64
	Forgotten  int64 // keys that went early, for want of room
	Keys       int
}

// parts is how many marks a window has: so much more than the window is read at a start.
const parts = 10

// New returns a window.
func New(cfg Config) *Window {
	if cfg.Window <= 0 {
		cfg.Window = 10 * time.Minute
	}
	if cfg.MaxKeys <= 0 {
		cfg.MaxKeys = 1_000_000
	}
	w := &Window{cfg: cfg, seed: maphash.MakeSeed(), topics: map[string]bool{}}
	for _, topic := range cfg.Topics {
		w.topics[topic] = true
	}
	return w
}

// Plug adds the window to a store's options: a hook and a dispatcher.
func (w *Window) Plug(opt *system.Options) {
	opt.PutHooks = append(opt.PutHooks, system.PutHook{Name: "dedupe-hook", Inline: true, Func: w.hook})
	opt.Dispatchers = append(opt.Dispatchers, system.Dispatcher{Name: "dedupe", Load: w.load, Handle: w.handle})
}

// Counters tell what the window has seen.
func (w *Window) Counters() Counters {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return Counters{Passed: w.passed.Load(), Duplicates: w.duplicates.Load(), Forgotten: w.forgotten.Load(), Keys: len(w.keys)}
}

func (w *Window) wants(topic string) bool { return len(w.topics) == 0 || w.topics[topic] }

func (w *Window) hash(topic, key string) uint64 {
	return maphash.Comparable(w.seed, [2]string{topic, key})
}

// topicOf is the topic that a message is sent to.
func topicOf(m *messages.Message) string {
	if messages.IsWaitingTopic(m.Topic) {
		if topic, ok := m.Properties.Get(messages.PropertyRealTopic); ok {
			return topic
		}
	}
	return m.Topic
}

func (w *Window) hook(m *messages.Message) error {
	key, ok := m.Properties.Get(messages.PropertyUniqKey)
	topic := topicOf(m)
	if !ok || !w.wants(topic) || messages.IsGroupTopic(topic) {
		return nil
	}
	if _, again := m.Properties.Get(messages.PropertyOriginMessageID); again {
		return nil
	}
	w.mu.RLock()
	ms, known := w.keys[w.hash(topic, key)]
	w.mu.RUnlock()
	if !known || ms < time.Now().Add(-w.cfg.Window).UnixMilli() {
		w.passed.Add(1)
		return nil
	}
	w.duplicates.Add(1)
	if w.cfg.CountOnly {
		return nil
	}
	return fmt.Errorf("%w: topic %s, key %s", ErrDuplicate, topic, key)
}

func (w *Window) handle(_ context.Context, b *system.Batch) error {
	var found []noted
	for i := range b.Requests {
		r := &b.Requests[i]
		topic := r.Queue.Topic
		if len(r.UniqKey) == 0 || r.Further || messages.IsGroupTopic(topic) {
			continue
		}
		if messages.IsWaitingTopic(topic) {
			m, err := b.Message(r)
			if errors.Is(err, system.ErrNoMessage) {
				continue
			}
			if err != nil {
				return err
			}
			topic = topicOf(&m.Message)
		}
		if w.wants(topic) {
			found = append(found, noted{w.hash(topic, string(r.UniqKey)), r.StoreTimestampMs})
		}
	}
	w.note(found)
	return w.mark(b)
}

func (w *Window) note(found []noted) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range found {
		w.keys[n.hash] = max(w.keys[n.hash], n.ms)
	}
	w.order = append(w.order, found...)
	w.forget()
}

// forget takes out what has left the window, and what there is no room for.
func (w *Window) forget() {
	oldest := time.Now().Add(-w.cfg.Window).UnixMilli()
	n := 0
	for ; n < len(w.order); n++ {
		early := w.order[n].ms >= oldest
		if early && len(w.order)-n <= w.cfg.MaxKeys {
			break
		}
		if w.keys[w.order[n].hash] == w.order[n].ms {
			delete(w.keys, w.order[n].hash)
			if early {
				w.forgotten.Add(1)
			}
		}
	}
	w.order = w.order[n:]
}

// mark notes the place behind a batch now and then, and saves the newest one that has the whole window behind it.
func (w *Window) mark(b *system.Batch) error {
	ms := time.Now().UnixMilli()
	if n := len(b.Requests); n > 0 {
		ms = b.Requests[n-1].StoreTimestampMs
	}
	part := w.cfg.Window.Milliseconds() / parts
	if n := len(w.marks); n > 0 && ms < w.marks[n-1].Ms+part {
		return nil
	}
	at, err := b.Position()
	if err != nil {
		return err
	}
	w.marks = append(w.marks, mark{at, ms})
	oldest := time.Now().Add(-w.cfg.Window).UnixMilli()
	n := 0
	for n+1 < len(w.marks) && w.marks[n+1].Ms < oldest {
		n++
	}
	w.marks = append(w.marks[:0:0], w.marks[n:]...)
	if w.marks[0].Ms >= oldest {
		return nil
	}
	return metadata.Save(b.Store().Options().Disk, file(b.Store()), w.marks[0])
}

func file(s *system.Store) string {
	return path.Join(s.Options().Dir, "extensions", "dedupe.window.json")
}

// load says from where on the log has to be read; without a file that fits, from its beginning.
func (w *Window) load(s *system.Store) (system.Position, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keys, w.order, w.marks = map[uint64]int64{}, nil, nil
	var m mark
	found, err := metadata.Load(s.Options().Disk, file(s), &m)
	if errors.Is(err, metadata.ErrDamaged) {
		return system.Position{}, false, nil
	}
	if err != nil || !found || errors.Is(s.CheckPosition(m.Position), system.ErrPosition) {
		return system.Position{}, false, err
	}
	w.marks = []mark{m}
	return m.Position, true, nil
}
