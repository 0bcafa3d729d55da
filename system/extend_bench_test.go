package system_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
)

// faults are what a broken extension does with a message: it panics, does not come back before release is closed, or takes a
// millisecond, a thousand times what a put takes.
func faults(release chan struct{}) map[string]func() {
	return map[string]func(){
		"panics": func() { panic("always") },
		"blocks": func() { <-release },
		"slow":   func() { <-time.After(time.Millisecond) },
	}
}

// breakers plug an extension of each kind that does that with each message.
var breakers = map[string]func(opt *system.Options, fault func()){
	"hook": func(opt *system.Options, fault func()) {
		opt.PutHooks = []system.PutHook{{Name: "broken", Func: func(*messages.Message) error { fault(); return nil }}}
	},
	"dispatcher": func(opt *system.Options, fault func()) {
		opt.Dispatchers = []system.Dispatcher{{Name: "broken", Handle: func(_ context.Context, b *system.Batch) error {
			for range b.Requests {
				fault()
			}
			return nil
		}}}
	},
	"listener": func(opt *system.Options, fault func()) {
		opt.Listeners = []system.Listener{{
			Name: "broken", Handle: func(context.Context, map[messages.QueueKey]messages.QueueOffset) error { fault(); return nil },
		}}
	},
	"service": func(opt *system.Options, fault func()) { // it looks at the end of a queue, as quickly as it can
		opt.Services = []system.Service{{Name: "broken", Run: func(ctx context.Context, s *system.Store) error {
			for ctx.Err() == nil {
				s.MaxOffset(messages.QueueKey{Topic: "T"})
				fault()
			}
			return nil
		}}}
	},
}

// round is what is put at a time.
const (
	round   = 10_000
	sampled = 8 // of so many puts one is timed
)

// BenchmarkPutBesideABrokenExtension shows that an extension of any kind that panics on each message, one that does not come back
// and one that is a thousand times too slow leave the rate and the latency of puts as they are. A round puts to a store with
// the extension and to one without, in turn; slower-% is the median of the rounds' ratios, p99-slower-% that of all puts.
func BenchmarkPutBesideABrokenExtension(b *testing.B) {
	for _, kind := range []string{"none", "hook", "dispatcher", "listener", "service"} {
		for _, fault := range []string{"panics", "blocks", "slow"} {
			for _, callers := range []int{1, 16} {
				if kind == "none" && fault != "slow" {
					continue
				}
				b.Run(fmt.Sprintf("%s/%s/callers=%d", kind, fault, callers), func(b *testing.B) { beside(b, kind, fault, callers) })
			}
		}
	}
}

func beside(b *testing.B, kind, fault string, callers int) {
	release := make(chan struct{})
	var stores [2]*system.Store
	for i := range stores {
		opt := system.Options{Dir: b.TempDir(), SegmentBytes: 512 << 20, NoIndex: true}
		if plug := breakers[kind]; i == 1 && plug != nil {
			plug(&opt, faults(release)[fault])
		}
		s, err := system.Open(opt)
		require.NoError(b, err)
		stores[i] = s
		putRound(b, s, callers) // warm
	}
	var ratios []float64
	var rates, latencies [2][]time.Duration
	for n := 0; b.Loop(); n++ {
		var took [2]time.Duration
		for k := range stores {
			i := (k + n) % 2
			var l []time.Duration
			took[i], l = putRound(b, stores[i], callers)
			rates[i], latencies[i] = append(rates[i], took[i]/round), append(latencies[i], l...)
		}
		ratios = append(ratios, float64(took[1])/float64(took[0]))
	}
	for _, e := range stores[1].Extensions() {
		reported := e.LastError != nil || e.LastTook >= time.Millisecond || time.Since(e.CallSince) < time.Hour // it is in a call
		require.True(b, reported, "%+v", e)
	}
	close(release)
	b.ReportMetric(0, "ns/op") // of a round: says nothing
	b.ReportMetric(float64(part(rates[0], 0.5)), "none-ns/put")
	b.ReportMetric(100*(part(ratios, 0.5)-1), "slower-%")
	for name, p := range map[string]float64{"p50": 0.5, "p99": 0.99} {
		none := float64(part(latencies[0], p))
		b.ReportMetric(none, "none-"+name+"-ns")
		b.ReportMetric(100*(float64(part(latencies[1], p))/none-1), name+"-slower-%")
	}
	for _, s := range stores {
		require.NoError(b, s.Close(b.Context()))
	}
}

// putRound returns how long it took, and how long some of the puts took.
func putRound(b *testing.B, s *system.Store, callers int) (time.Duration, []time.Duration) {
	b.Helper()
	all := make([][]time.Duration, callers)
	began := time.Now()
	var running sync.WaitGroup
	for c := range callers {
		running.Go(func() {
			m := message("T", int32(c), string(make([]byte, 128)))
			for i := range round / callers {
				if i%sampled != 0 {
					if _, err := s.Put(b.Context(), m); err != nil {
						b.Error(err)
					}
					continue
				}
				put := time.Now()
				if _, err := s.Put(b.Context(), m); err != nil {
					b.Error(err)
				}
				all[c] = append(all[c], time.Since(put))
			}
		})
	}
	running.Wait()
	took := time.Since(began)
	require.NoError(b, s.AwaitDispatched(b.Context()))
	return took, slices.Concat(all...)
}

// part is the value below which that part of the values is.
func part[T float64 | time.Duration](values []T, p float64) T {
	slices.Sort(values)
	return values[int(p*float64(len(values)-1))]
}
