package actors

import (
	"slices"
	"sync/atomic"
	"time"
)

// Histogram counts how long things took. Adding is two atomic additions; it and reading are safe for any goroutine.
type Histogram struct {
	bounds []time.Duration
	counts []atomic.Int64 // one more than bounds: what took longer
	sum    atomic.Int64   // ns
}

// NewHistogram returns a histogram whose buckets end at the bounds, which ascend.
func NewHistogram(bounds ...time.Duration) *Histogram {
	return &Histogram{bounds: bounds, counts: make([]atomic.Int64, len(bounds)+1)}
}

// Add counts one that took so long.
func (h *Histogram) Add(took time.Duration) {
	i, _ := slices.BinarySearch(h.bounds, took)
	h.counts[i].Add(1)
	h.sum.Add(int64(took))
}

// Times is what a histogram has counted.
type Times struct {
	Bounds []time.Duration // where the buckets end
	Below  []int64         // how many took no longer than each bound
	Count  int64           // of all
	Sum    time.Duration   // of all
}

// Times returns what has been counted so far.
func (h *Histogram) Times() Times {
	t := Times{Bounds: h.bounds, Below: make([]int64, len(h.bounds)), Sum: time.Duration(h.sum.Load())}
	for i := range h.bounds {
		t.Count += h.counts[i].Load()
		t.Below[i] = t.Count
	}
	t.Count += h.counts[len(h.bounds)].Load()
	return t
}

// OperationBounds suit a put or a sync: 50 µs to 10 s.
func OperationBounds() []time.Duration {
	const us, ms = time.Microsecond, time.Millisecond
	return []time.Duration{50 * us, 100 * us, 250 * us, 500 * us, ms, 2500 * us, 5 * ms, 10 * ms, 25 * ms, 50 * ms, 100 * ms, 250 * ms,
		500 * ms, time.Second, 2500 * ms, 5 * time.Second, 10 * time.Second}
}
