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
// the extension and to one without, in turn; what is reported is the median over the rounds, of the ratios too.
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
	var none, slower figures
	for n := 0; b.Loop(); n++ {
		var took [2]figures
		for k := range stores {
			i := (k + n) % 2
			took[i] = putRound(b, stores[i], callers)
		}
		for name := range took[0] {
			with, without := took[1][name][0], took[0][name][0]
			none.add(name, without)
			slower.add(name, 100*(with/without-1))
		}
	}
	for _, e := range stores[1].Extensions() {
		reported := e.LastError != nil || e.LastTook >= time.Millisecond || time.Since(e.CallSince) < time.Hour // it is in a call
		require.True(b, reported, "%+v", e)
	}
	close(release)
	b.ReportMetric(0, "ns/op") // of a round: says nothing
	for name := range none {
		b.ReportMetric(part(none[name], 0.5), "none-"+name+"-ns")
		b.ReportMetric(part(slower[name], 0.5), name+"-slower-%")
	}
	for _, s := range stores {
		require.NoError(b, s.Close(b.Context()))
	}
}

// figures are values of rounds by name: put is the whole time by the number of puts, p50 and p99 are of single puts; all ns.
type figures map[string][]float64

func (f *figures) add(name string, value float64) {
	if *f == nil {
		*f = figures{}
	}
	(*f)[name] = append((*f)[name], value)
}

func putRound(b *testing.B, s *system.Store, callers int) (f figures) {
	b.Helper()
	all := make([][]float64, callers)
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
				all[c] = append(all[c], float64(time.Since(put)))
			}
		})
	}
	running.Wait()
	f.add("put", float64(time.Since(began))/round)
	require.NoError(b, s.AwaitDispatched(b.Context()))
	one := slices.Concat(all...)
	f.add("p50", part(one, 0.5))
	f.add("p99", part(one, 0.99))
	return f
}

// part is the value below which that part of the values is.
func part(values []float64, p float64) float64 {
	slices.Sort(values)
	return values[int(p*float64(len(values)-1))]
}

// BenchmarkPutWithAHealthyHook shows what a hook costs that does nothing.
func BenchmarkPutWithAHealthyHook(b *testing.B) {
	pass := func(*messages.Message) error { return nil }
	for name, hooks := range map[string][]system.PutHook{
		"none": nil, "apart": {{Name: "pass", Func: pass}}, "inline": {{Name: "pass", Func: pass, Inline: true}},
	} {
		b.Run(name, func(b *testing.B) {
			opt := system.Options{Dir: b.TempDir(), SegmentBytes: 512 << 20, NoIndex: true}
			opt.PutHooks = hooks
			s, err := system.Open(opt)
			require.NoError(b, err)
			m := message("T", 0, string(make([]byte, 128)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Put(b.Context(), m); err != nil {
					b.Fatal(err)
				}
			}
			require.NoError(b, s.Close(b.Context()))
		})
	}
}
