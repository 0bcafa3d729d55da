package system_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
)

// BenchmarkDelayedDelivery delivers b.N messages of one level that are due, while nothing else or one sender puts too.
func BenchmarkDelayedDelivery(b *testing.B) {
	for _, others := range []string{"alone", "beside puts"} {
		b.Run(others, func(b *testing.B) { deliverAll(b, others != "alone") })
	}
}

func deliverAll(b *testing.B, puts bool) {
	s, err := system.Open(system.Options{
		Dir: b.TempDir(), SegmentBytes: 512 << 20, NoIndex: true, DelayLevels: "0s",
	})
	require.NoError(b, err)
	require.NoError(b, s.DeliverDelayed(b.Context(), false))
	body := strings.Repeat("b", 200)
	for range b.N {
		_, err := s.Put(b.Context(), later(1, body))
		require.NoError(b, err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	took := make(chan []time.Duration)
	b.ReportAllocs()
	b.ResetTimer()
	go func() {
		var all []time.Duration
		for m := message("other", 0, body); puts && ctx.Err() == nil; {
			began := time.Now()
			_, _ = s.Put(b.Context(), m)
			all = append(all, time.Since(began))
		}
		took <- all
	}()
	require.NoError(b, s.DeliverDelayed(b.Context(), true))
	for at := messages.QueueOffset(0); at < messages.QueueOffset(b.N); at = s.MaxOffset(target) {
		r, err := s.GetWait(b.Context(), messages.GetMessage{Queue: target, Offset: at, MaxMessages: 1})
		require.NoError(b, err)
		r.Release()
	}
	b.StopTimer()
	cancel()
	if all := <-took; len(all) > 0 {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)*99/100].Nanoseconds()), "p99-ns/put")
	}
	require.NoError(b, s.Close(b.Context()))
}
