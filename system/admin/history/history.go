package history

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/gateway/broker"
)

// How often samples are taken and for how long they are kept.
const (
	Interval = 2 * time.Second
	Kept     = 30 * time.Minute

	LagInterval = 10 * time.Second
	LagKept     = time.Hour
)

// maxPairs bounds the pairs of group and topic whose lag is remembered.
const maxPairs = 500

// Sample is what was counted at one time. All but the levels grow only.
type Sample struct {
	At time.Time

	Puts, PutBytes, Gets int64 // messages, bytes of records, messages
	Refused              int64 // puts that did not enter
	PutTimes, Flushes    actors.Times

	// Levels.
	Unflushed, Undispatched int64 // bytes
	PendingPuts, Parked     int64
	Connections             int64
}

// History is the way to the samples. Safe for concurrent use.
type History struct {
	samples *atomic.Pointer[[]Sample]
	lags    *atomic.Pointer[lags]
	counts  *atomic.Pointer[[]count]
	asked   *atomic.Int64
	end     func() error
}

// Config is what is looked at.
type Config struct {
	Store       *system.Store
	Broker      *broker.Broker
	Connections func() int
	Actors      func() []actors.Standing
	Logger      zerolog.Logger
}

// Start spawns the actor under the name "history".
func Start(root *actor.RootContext, cfg Config) (*History, error) {
	a := &sampler{cfg: cfg}
	a.samples.Store(&[]Sample{})
	a.lags.Store(&lags{})
	a.counts.Store(&[]count{})
	port := mailbox.New(mailbox.Options{OnPanic: func(reason any, stack []byte) {
		cfg.Logger.Error().Interface("panic", reason).Bytes("stack", stack).Msg("BUG: the history panicked")
	}})
	pid, err := root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithMailbox(port.Producer())), "history")
	if err != nil {
		return nil, fmt.Errorf("start the history: %w", err)
	}
	return &History{samples: &a.samples, lags: &a.lags, counts: &a.counts, asked: &a.asked,
		end: sync.OnceValue(func() error { return root.StopFuture(pid).Wait() })}, nil
}

// Close ends the actor.
func (h *History) Close() error {
	if err := h.end(); err != nil {
		return fmt.Errorf("stop the history: %w", err)
	}
	return nil
}

// Samples returns what is kept of the last so long, the oldest first; it must not be changed.
func (h *History) Samples(last time.Duration) []Sample {
	all := *h.samples.Load()
	return all[max(len(all)-int(last/Interval)-1, 0):]
}

// tick: take a sample.
type tick struct{}

// sampler takes samples. What it publishes never changes: it only appends behind it, and moves on to a new slice now and then.
type sampler struct {
	cfg   Config
	self  actors.Peer
	timer *time.Timer
	ticks int

	samples atomic.Pointer[[]Sample]
	lags    atomic.Pointer[lags]
	counts  atomic.Pointer[[]count]
	asked   atomic.Int64 // ns: when somebody last asked for rates
}

// Receive implements actor.Actor.
func (a *sampler) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started:
		a.self = actors.NewPeer(ctx.ActorSystem().Root, ctx.Self())
		a.timer = a.self.After(0, tick{})
	case tick:
		a.timer = a.self.After(Interval, tick{})
		a.sample(time.Now())
	case *actor.Stopping:
		a.timer.Stop()
	}
}

func (a *sampler) sample(now time.Time) {
	next := append(*a.samples.Load(), a.look(now))
	next = bounded(next, int(Kept/Interval)+1)
	a.samples.Store(&next)
	counts := []count{}
	if now.UnixNano()-a.asked.Load() < int64(countedFor) {
		counts = append(slices.Clone(*a.counts.Load()), a.count(now))
		counts = counts[max(len(counts)-keptCounts, 0):]
	}
	a.counts.Store(&counts)
	if a.ticks%int(LagInterval/Interval) == 0 {
		a.lags.Store(a.lags.Load().with(now, Lags(a.cfg.Broker, "")))
	}
	a.ticks++
}

// bounded keeps the last so many of a slice that grows at its end, copying only once in as many times.
func bounded[T any](s []T, most int) []T {
	if len(s) < 2*most {
		return s
	}
	return append(make([]T, 0, 2*most), s[len(s)-most:]...)
}

func (a *sampler) look(now time.Time) Sample {
	st, stats := a.cfg.Store.Status(), a.cfg.Store.Stats()
	sends, totals := a.cfg.Broker.Stats.Sends(), a.cfg.Broker.Stats.Totals()
	s := Sample{
		At: now, Puts: totals.PutTimes, PutBytes: totals.PutBytes, Gets: totals.GetTotal, PutTimes: sends.Times, Flushes: stats.Flushes,
		Unflushed: int64(max(st.WrittenTo-st.FlushedTo, 0)), Undispatched: int64(max(st.WrittenTo-st.DispatchedTo, 0)),
		PendingPuts: stats.PendingPuts, Parked: stats.ParkedPulls, Connections: int64(a.cfg.Connections()),
	}
	for _, n := range stats.Refused {
		s.Refused += n
	}
	return s
}

const (
	// keptCounts is over how many samples the rates of actors are taken.
	keptCounts = 6
	// countedFor is for how long actors are counted after somebody has asked: there is one for each connection.
	countedFor = time.Minute
)

// count is what each actor has handled at one time.
type count struct {
	at      time.Time
	handled map[string]int64
}

func (a *sampler) count(now time.Time) count {
	c := count{at: now, handled: map[string]int64{}}
	for _, one := range a.cfg.Actors() {
		c.handled[one.ID] = one.Handled
	}
	return c
}

// Rates tells how many messages a second each actor has handled lately, by its path. Actors are counted from the first question on:
// there are rates two samples later, for as long as somebody asks each minute.
func (h *History) Rates() map[string]float64 {
	h.asked.Store(time.Now().UnixNano())
	counts, rates := *h.counts.Load(), map[string]float64{}
	if len(counts) < 2 {
		return rates
	}
	from, to := counts[0], counts[len(counts)-1]
	for id, n := range to.handled {
		rates[id] = float64(max(n-from.handled[id], 0)) / to.at.Sub(from.at).Seconds()
	}
	return rates
}
