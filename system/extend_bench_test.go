package system_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
)

// BenchmarkPutBesideADispatcher shows that a dispatcher that panics on each message, one that blocks for ever and one that is a
// thousand times too slow cost the puts of others nothing: they read the log themselves, two batches ahead.
func BenchmarkPutBesideADispatcher(b *testing.B) {
	pass := func(*messages.Message) error { return nil }
	for _, c := range []struct {
		name   string
		handle func(context.Context, *system.Batch) error
		hook   bool
	}{
		{"none", nil, false},
		{"hook", nil, true},
		{"panics", func(context.Context, *system.Batch) error { panic("always") }, false},
		{"blocks", func(ctx context.Context, _ *system.Batch) error { <-ctx.Done(); return context.Cause(ctx) }, false},
		{"slow", func(ctx context.Context, batch *system.Batch) error { // a message a millisecond
			select {
			case <-time.After(time.Duration(len(batch.Requests)) * time.Millisecond):
			case <-ctx.Done():
			}
			return nil
		}, false},
		{"quick", func(context.Context, *system.Batch) error { return nil }, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			opt := system.Options{Dir: b.TempDir(), SegmentBytes: 512 << 20, IndexSlots: 1000, IndexEntries: 4000, NoIndex: true}
			if c.handle != nil {
				opt.Dispatchers = []system.Dispatcher{{Name: c.name, Handle: c.handle}}
			}
			if c.hook {
				opt.PutHooks = []system.PutHook{{Name: c.name, Func: pass}}
			}
			s, err := system.Open(opt)
			require.NoError(b, err)
			m := message("T", 0, string(make([]byte, 128)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Put(b.Context(), m); err != nil {
					b.Fatal(err)
				}
			}
			for _, e := range s.Extensions() {
				b.ReportMetric(float64(e.LagBytes), "lag-bytes")
				b.Log(e.State, e.Failures, e.LastError != nil)
			}
			require.NoError(b, s.Close(b.Context()))
		})
	}
}
