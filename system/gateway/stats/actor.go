package stats

import (
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
)

// What the actor is told.
type (
	// first: an item that is not there yet has counted something.
	first struct {
		name     name
		n, bytes int
	}
	// forget: a topic is gone.
	forget struct{ topic string }
	// tick: take samples.
	tick struct{}
)

const (
	samplePause = 10 * time.Second
	minuteTicks = 6
	hourTicks   = 60  // of samplePause: ten minutes
	dayTicks    = 360 // an hour
)

// day are the broker's totals at midnight.
type day struct {
	date         int // of the year, local
	putYesterday int64
	putMidnight  int64
	getYesterday int64
	getMidnight  int64
}

// statsActor makes items and samples them.
type statsActor struct {
	log   zerolog.Logger
	self  actors.Peer
	timer *time.Timer
	ticks int
	began int64

	whole *[kinds]*item // in items too
	items atomic.Pointer[actors.Table[name, *item]]
	day   atomic.Pointer[day]

	puts, gets times
	sends      sends
}

func newStatsActor(log zerolog.Logger) *statsActor {
	a := &statsActor{log: log, began: time.Now().UnixMilli(), whole: new([kinds]*item), sends: newSends()}
	edit := actors.NewTable[name, *item]().Edit()
	for _, k := range []kind{brokerPut, brokerGet, getFound, getMiss} {
		a.whole[k] = a.newItem()
		edit.Set(name{kind: k}, a.whole[k])
	}
	a.items.Store(edit.Table())
	a.day.Store(&day{date: time.Now().YearDay()})
	return a
}

// newItem returns an item with the sample from which its windows count.
func (a *statsActor) newItem() *item {
	it := &item{}
	zero := sample{atMs: time.Now().UnixMilli()}
	push(&it.past.minute, zero, minuteSamples)
	push(&it.past.hour, zero, hourSamples)
	push(&it.past.day, zero, daySamples)
	return it
}

// Receive implements actor.Actor.
func (a *statsActor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		a.self = actors.NewPeer(ctx.ActorSystem().Root, ctx.Self())
		a.timer = a.self.After(samplePause, tick{})
	case first:
		a.first(m)
	case forget:
		a.forget(m.topic)
	case tick:
		a.sample(time.Now())
		a.timer = a.self.After(samplePause, tick{})
	case *actor.Stopping:
		a.timer.Stop()
	}
}

func (a *statsActor) first(m first) {
	it, ok := a.items.Load().Get(m.name)
	if !ok {
		it = a.newItem()
		edit := a.items.Load().Edit()
		edit.Set(m.name, it)
		a.items.Store(edit.Table())
	}
	it.add(m.n, m.bytes)
}

func (a *statsActor) forget(topic string) {
	edit := a.items.Load().Edit()
	var gone []name
	for n := range edit.All() {
		if n.topic == topic && topic != "" {
			gone = append(gone, n)
		}
	}
	for _, n := range gone {
		edit.Delete(n)
	}
	a.items.Store(edit.Table())
}

func (a *statsActor) sample(now time.Time) {
	a.ticks++
	for n, it := range a.items.Load().All() {
		s := sample{atMs: now.UnixMilli(), count: it.count.Load(), bytes: it.bytes.Load(), times: it.times.Load()}
		keep := minuteSamples
		if n.topic == "" {
			keep = tenMinutes
		}
		push(&it.past.minute, s, keep)
		if a.ticks%hourTicks == 0 {
			push(&it.past.hour, s, hourSamples)
		}
		if a.ticks%dayTicks == 0 {
			push(&it.past.day, s, daySamples)
		}
	}
	if a.ticks%minuteTicks == 0 {
		a.puts.rotate()
		a.gets.rotate()
	}
	a.midnight(now)
}

// midnight notes the totals when a day has begun.
func (a *statsActor) midnight(now time.Time) {
	old := a.day.Load()
	if now.YearDay() == old.date {
		return
	}
	put, get := a.whole[brokerPut], a.whole[brokerGet]
	a.day.Store(&day{
		date: now.YearDay(), putYesterday: old.putMidnight, putMidnight: put.count.Load(),
		getYesterday: old.getMidnight, getMidnight: get.count.Load(),
	})
}

func (a *statsActor) panicked(reason any, stack []byte) {
	a.log.Error().Interface("panic", reason).Bytes("stack", stack).Msg("BUG: the statistics panicked")
}
