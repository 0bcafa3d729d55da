package stats

import (
	"sync/atomic"

	"github.com/actormq/actormq/messages/remoting"
)

// sample is what an item had counted at a time.
type sample struct {
	atMs                int64
	count, bytes, times int64
}

// Samples that a window keeps.
const (
	minuteSamples = 7
	hourSamples   = 7
	daySamples    = 25
	tenMinutes    = 61 // of the 10 s samples, for rates of the whole broker
)

// windows are an item's samples, published as lists that never change, the oldest first.
type windows struct {
	minute, hour, day atomic.Pointer[[]sample]
}

func (w *windows) view(bytes bool) remoting.StatsData {
	return remoting.StatsData{
		StatsMinute: difference(latest(w.minute.Load(), minuteSamples), bytes), StatsHour: difference(w.hour.Load(), bytes),
		StatsDay: difference(w.day.Load(), bytes),
	}
}

// push adds a sample, and drops the oldest beyond keep.
func push(list *atomic.Pointer[[]sample], s sample, keep int) {
	var old []sample
	if p := list.Load(); p != nil {
		old = *p
	}
	if len(old) == keep {
		old = old[1:]
	}
	next := append(append(make([]sample, 0, len(old)+1), old...), s)
	list.Store(&next)
}

// latest returns the newest n samples.
func latest(list *[]sample, n int) *[]sample {
	if list == nil || len(*list) <= n {
		return list
	}
	short := (*list)[len(*list)-n:]
	return &short
}

// difference is what happened between the oldest and the newest sample.
func difference(list *[]sample, bytes bool) remoting.StatsSnapshot {
	if list == nil || len(*list) < 2 {
		return remoting.StatsSnapshot{}
	}
	return between((*list)[0], (*list)[len(*list)-1], bytes)
}

func between(from, to sample, bytes bool) remoting.StatsSnapshot {
	sum := to.count - from.count
	if bytes {
		sum = to.bytes - from.bytes
	}
	view := remoting.StatsSnapshot{Sum: sum}
	if ms := to.atMs - from.atMs; ms > 0 {
		view.TPS = float64(sum) * 1000 / float64(ms)
	}
	if times := to.times - from.times; times > 0 {
		view.AveragePerTime = float64(sum) / float64(times)
	}
	return view
}
