package timer

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system"
)

// entry is a message that waits.
type entry struct {
	At  int64  `json:"at"`  // its physical offset in the timer's topic
	Due int64  `json:"due"` // ms
	Ms  int64  `json:"ms"`  // when it was stored
	ID  string `json:"id,omitempty"`

	flying  bool   // it is delivered, but the log does not say so yet
	held    bool   // likewise it is cancelled
	carried bool   // likewise a copy is put
	stays   bool   // no copy of it can be put
	twin    *entry // another one of the same ID
	heir    *entry // the copy that stands for it
}

// state is what the log says about timed messages up to a place. Dispatcher and service share it.
type state struct {
	mu      sync.Mutex
	applied int64 // physical offset: everything below is in it
	waiting map[int64]*entry
	pending atomic.Int64 // how many those are: puts ask, and must not wait
	byID    map[string]*entry
	byTime  entries  // those that are not on their way, with some that are or have gone: not more than wait
	byAge   []*entry // all, in the order of the log; likewise
	from    int64    // physical offset: nothing that waits below it can be missing in it
	woken   chan struct{}
}

func newState() *state {
	return &state{waiting: map[int64]*entry{}, byID: map[string]*entry{}, woken: make(chan struct{}, 1)}
}

// apply notes messages of the timer's topic; those that it has noted before change nothing.
func (s *state) apply(list []messages.StoredMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range list {
		s.note(&list[i])
	}
}

func (s *state) note(m *messages.StoredMessage) {
	if int64(m.PhysicalOffset) < s.applied {
		return
	}
	s.applied = int64(m.PhysicalOffset) + int64(m.StoreSize)
	if m.Topic != Topic {
		if e := s.waiting[int64(m.PreparedTransactionOffset)-1]; e != nil {
			s.drop(e)
		}
		return
	}
	if id, ok := m.Properties.Get(CancelID); ok {
		for e := s.byID[id]; e != nil; e = s.byID[id] {
			s.drop(e)
		}
		return
	}
	if _, ok := m.Properties.Get(done); ok {
		for places := m.Body; len(places) >= 8; places = places[8:] {
			if e := s.waiting[int64(binary.BigEndian.Uint64(places))]; e != nil {
				s.drop(e)
			}
		}
		return
	}
	var carried *entry
	if text, ok := m.Properties.Get(carriedFrom); ok {
		at, err := strconv.ParseInt(text, 10, 64)
		if err != nil || s.waiting[at] == nil && at >= s.from {
			return // it was cancelled, or delivered, before the copy came
		}
		carried = s.waiting[at]
	}
	if due, err := strconv.ParseInt(get(m.Properties, DeliverMs), 10, 64); err == nil {
		e := &entry{At: int64(m.PhysicalOffset), Due: due, Ms: m.StoreTimestampMs, ID: idOf(m.Properties)}
		if carried != nil {
			e.held, carried.heir = carried.held, e
			s.drop(carried)
		}
		s.add(e)
	}
}

// idOf is the id by which a message can be cancelled.
func idOf(p messages.Properties) string {
	if id, ok := p.Get(ID); ok {
		return strings.Clone(id)
	}
	return strings.Clone(get(p, messages.PropertyUniqKey))
}

func (s *state) add(e *entry) {
	s.waiting[e.At] = e
	s.pending.Store(int64(len(s.waiting)))
	if e.ID != "" {
		e.twin = s.byID[e.ID]
		s.byID[e.ID] = e
	}
	heap.Push(&s.byTime, e)
	s.byAge = append(s.byAge, e)
}

// gone tells whether an entry has left the state: delivered, carried, cancelled, deleted, or of before a reset.
func (s *state) gone(e *entry) bool { return s.waiting[e.At] != e }

func (s *state) drop(e *entry) {
	if s.gone(e) {
		return
	}
	delete(s.waiting, e.At)
	s.pending.Store(int64(len(s.waiting)))
	s.dropID(e)
	const few = 64
	if max(len(s.byTime), len(s.byAge)) > 2*len(s.waiting)+few {
		s.byTime, s.byAge = slices.DeleteFunc(s.byTime, s.gone), slices.DeleteFunc(s.byAge, s.gone)
		heap.Init(&s.byTime)
	}
}

// dropID takes an entry out of those of its id.
func (s *state) dropID(e *entry) {
	if e.ID == "" {
		return
	}
	switch first := s.byID[e.ID]; {
	case first != e:
		for first != nil && first.twin != e {
			first = first.twin
		}
		if first != nil {
			first.twin = e.twin
		}
	case e.twin != nil:
		s.byID[e.ID] = e.twin
	default:
		delete(s.byID, e.ID)
	}
}

// hold takes those of an id that are not on their way, for them to be cancelled.
func (s *state) hold(id string) (held []*entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.byID[id]; e != nil; e = e.twin {
		if !e.flying && !e.held {
			e.held = true
			held = append(held, e)
		}
	}
	return held
}

// forget notes that a message will not be delivered.
func (s *state) forget(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(e)
}

// reset forgets everything.
func (s *state) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied, s.waiting, s.byID, s.byTime = 0, map[int64]*entry{}, map[string]*entry{}, nil
	s.byAge, s.from = nil, 0
	s.pending.Store(0)
}

// due takes the messages that are due, so many at most, or tells how long to wait for one. Give back those that are not delivered: the
// others are gone once the log says so.
func (s *state) due(now time.Time, limit int) ([]*entry, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*entry
	wait := time.Duration(math.MaxInt64)
	for len(s.byTime) > 0 && len(found) < limit {
		e := s.byTime[0]
		if wait = time.UnixMilli(e.Due).Sub(now); wait > 0 {
			break
		}
		heap.Pop(&s.byTime)
		if !s.gone(e) && !e.flying && !e.held && !e.carried {
			e.flying = true
			found = append(found, e)
		}
	}
	return found, wait
}

// old takes messages that were stored before a time, or below a place in the log, so many at most, or tells when there will be one. Those
// that can't be carried are told to notCarried.
func (s *state) old(before time.Time, below int64, limit int) (found []*entry, next time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.byAge) > 0 && s.gone(s.byAge[0]) {
		s.byAge[0] = nil
		s.byAge = s.byAge[1:]
	}
	for _, e := range s.byAge {
		switch {
		case s.gone(e) || e.flying || e.held || e.carried || e.stays:
			continue
		case e.At >= below && time.UnixMilli(e.Ms).After(before):
			return found, time.UnixMilli(e.Ms).Sub(before)
		case len(found) == limit:
			return found, 0
		}
		e.carried = true
		found = append(found, e)
	}
	return found, math.MaxInt64
}

// notCarried takes a message again of which no copy is there; ever is false when none can be put.
func (s *state) notCarried(e *entry, ever bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.carried, e.stays = false, !ever
}

// giveBack takes those again that due or hold took, and that wait as before.
func (s *state) giveBack(list []*entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range list {
		for e.heir != nil {
			e = e.heir
		}
		if e.flying, e.held = false, false; !s.gone(e) {
			heap.Push(&s.byTime, e)
		}
	}
}

// regain takes those again that a service which has panicked took. All that it put has been noted by now.
func (s *state) regain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.waiting {
		if e.flying || e.carried {
			e.flying, e.carried = false, false
			heap.Push(&s.byTime, e)
		}
	}
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
	taken time.Time         // the last one; the dispatcher's
	todo  chan snapshotFile // to the goroutine that saves: that may take a second

	mu   sync.Mutex
	held *snapshotFile // not to be saved before the log is durable up to its place: what a power cut takes of that is not known then
}

type snapshotFile struct {
	Position system.Position `json:"position"`
	Waiting  []entry         `json:"waiting"`
}

func (*snapshot) path(s *system.Store) string {
	return path.Join(s.Options().Dir, "extensions", "timer.state.json")
}

// load reads the snapshot. One that does not fit the log is of no use: the log is read from its beginning.
func (k *snapshot) load(store *system.Store, s *state) (system.Position, bool, error) {
	s.reset()
	k.held = nil
	var f snapshotFile
	found, err := metadata.Load(store.Options().Disk, k.path(store), &f)
	if err != nil && !errors.Is(err, metadata.ErrDamaged) {
		return system.Position{}, false, err
	}
	if err != nil || !found || errors.Is(store.CheckPosition(f.Position), system.ErrPosition) {
		first, _ := store.LogRange()
		s.from = int64(first) // what was carried from below is not known
		return system.Position{}, false, nil
	}
	slices.SortFunc(f.Waiting, func(a, b entry) int { return cmp.Compare(a.At, b.At) })
	for i := range f.Waiting {
		s.add(&f.Waiting[i])
	}
	s.applied = f.Position.Offset
	return f.Position, true, nil
}

// take keeps the state at a place to be saved, unless the one before still is; only the dispatcher calls it.
func (k *snapshot) take(s *state, at system.Position) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held == nil {
		k.held, k.taken = &snapshotFile{Position: at, Waiting: s.copied()}, time.Now()
	}
}

// flushed has what is held saved once the log is durable that far.
func (k *snapshot) flushed(upTo messages.PhysicalOffset) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held == nil || k.held.Position.Offset > int64(upTo) {
		return
	}
	select {
	case k.todo <- *k.held:
		k.held = nil
	default: // that is busy
	}
}

// save saves what is taken until the context ends.
func (k *snapshot) save(ctx context.Context, store *system.Store) {
	for {
		select {
		case f := <-k.todo:
			err := actors.Protect("save the snapshot", func() error { return metadata.Save(store.Options().Disk, k.path(store), f) })
			if err != nil {
				log := store.Options().Logger
				log.Error().Err(err).Str("extension", "timer").Msg("the timed messages are not saved; it is tried again")
			}
		case <-ctx.Done():
			return
		}
	}
}

// copied are the messages that wait.
func (s *state) copied() []entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]entry, 0, len(s.waiting))
	for _, e := range s.waiting {
		all = append(all, *e)
	}
	return all
}
