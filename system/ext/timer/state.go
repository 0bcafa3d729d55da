package timer

import (
	"container/heap"
	"errors"
	"math"
	"path"
	"strconv"
	"sync"
	"time"

	"github.com/actormq/actormq/actors/extension"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system"
)

// entry is a message that waits.
type entry struct {
	At  int64  `json:"at"`  // its physical offset in the timer's topic
	Due int64  `json:"due"` // ms
	ID  string `json:"id,omitempty"`

	delivered bool // but the log does not say so yet
}

// state is what the log says about timed messages up to a place. Dispatcher and service share it.
type state struct {
	mu      sync.Mutex
	applied int64 // physical offset: everything below is in it
	waiting map[int64]*entry
	byID    map[string]*entry
	byTime  entries // with some that have gone already
	woken   chan struct{}
}

func newState() *state {
	return &state{waiting: map[int64]*entry{}, byID: map[string]*entry{}, woken: make(chan struct{}, 1)}
}

// apply notes one message of the timer's topic; one that it has noted before changes nothing.
func (s *state) apply(m messages.StoredMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if int64(m.PhysicalOffset) < s.applied {
		return
	}
	s.applied = int64(m.PhysicalOffset) + int64(m.StoreSize)
	if id, ok := m.Properties.Get(cancelID); ok {
		if e := s.byID[id]; e != nil {
			s.drop(e)
		}
		return
	}
	if text, ok := m.Properties.Get(doneAt); ok {
		if at, err := strconv.ParseInt(text, 10, 64); err == nil && s.waiting[at] != nil {
			s.drop(s.waiting[at])
		}
		return
	}
	if due, err := strconv.ParseInt(get(m.Properties, DeliverMs), 10, 64); err == nil {
		s.add(&entry{At: int64(m.PhysicalOffset), Due: due, ID: get(m.Properties, ID)})
	}
}

func (s *state) add(e *entry) {
	s.waiting[e.At] = e
	if e.ID != "" {
		s.byID[e.ID] = e
	}
	heap.Push(&s.byTime, e)
}

func (s *state) drop(e *entry) {
	delete(s.waiting, e.At)
	if e.ID != "" && s.byID[e.ID] == e {
		delete(s.byID, e.ID)
	}
}

// gone notes that the message is no longer there.
func (s *state) gone(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(e)
}

// delivered notes that a message has been put to its topic. It stays in the state, and so in a snapshot, until the log
// says so too: a power cut may still take the delivery.
func (s *state) delivered(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.delivered = true
}

// reset forgets everything.
func (s *state) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied, s.waiting, s.byID, s.byTime = 0, map[int64]*entry{}, map[string]*entry{}, nil
}

func (s *state) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

// next is the message that is due, or how long to wait for one. It stays until it is delivered or gone.
func (s *state) next(now time.Time) (*entry, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.byTime) > 0 {
		e := s.byTime[0]
		if s.waiting[e.At] != e || e.delivered {
			heap.Pop(&s.byTime)
			continue
		}
		if wait := time.UnixMilli(e.Due).Sub(now); wait > 0 {
			return nil, wait
		}
		return e, 0
	}
	return nil, math.MaxInt64
}

func (s *state) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// entries are a heap, the first due on top.
type entries []*entry

// Len implements heap.Interface.
func (e entries) Len() int { return len(e) }

// Less implements heap.Interface.
func (e entries) Less(i, j int) bool {
	return e[i].Due < e[j].Due || e[i].Due == e[j].Due && e[i].At < e[j].At
}

// Swap implements heap.Interface.
func (e entries) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *entries) Push(x any) { *e = append(*e, x.(*entry)) }

// Pop implements heap.Interface.
func (e *entries) Pop() any {
	old := *e
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*e = old[:len(old)-1]
	return last
}

// snapshot keeps the state with its place in the log, in the file extensions/timer.state.json of the store.
type snapshot struct {
	saved time.Time
}

type snapshotFile struct {
	Position system.Position `json:"position"`
	Waiting  []*entry        `json:"waiting"`
}

func (*snapshot) path(s *system.Store) string {
	return path.Join(s.Options().Dir, "extensions", "timer.state.json")
}

// load reads the snapshot. One that does not fit the log is of no use: the log is read from its beginning.
func (k *snapshot) load(store *system.Store, s *state) (system.Position, bool, error) {
	s.reset()
	var f snapshotFile
	found, err := metadata.Load(store.Options().Disk, k.path(store), &f)
	if errors.Is(err, metadata.ErrDamaged) {
		return system.Position{}, false, nil
	}
	if err != nil || !found || errors.Is(store.CheckPosition(f.Position), extension.ErrPosition) {
		return system.Position{}, false, err
	}
	for _, e := range f.Waiting {
		s.add(e)
	}
	s.applied = f.Position.Offset
	return f.Position, true, nil
}

// save writes the snapshot; only the dispatcher calls it, so the state is that at the position.
func (k *snapshot) save(store *system.Store, s *state, at system.Position) error {
	f := snapshotFile{Position: at}
	s.mu.Lock()
	for _, e := range s.waiting {
		f.Waiting = append(f.Waiting, e)
	}
	s.mu.Unlock()
	if err := metadata.Save(store.Options().Disk, k.path(store), f); err != nil {
		return err
	}
	k.saved = time.Now()
	return nil
}
