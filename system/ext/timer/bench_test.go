package timer_test

import (
	"context"
	"encoding/binary"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/ext/timer"
)

// BenchmarkTimers accepts timed messages that are due in an hour as quickly as they come, and then 100,000 a second that are due one
// to three seconds later: how late they are in their queue.
//
//	go test -run xxx -bench Timers -benchtime 500000x ./system/ext/timer
func BenchmarkTimers(b *testing.B) {
	b.Run("accepted", func(b *testing.B) {
		s, _ := watched(b, system.Options{})
		due := strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10)
		began := time.Now()
		var callers sync.WaitGroup
		for c := range 4 {
			callers.Go(func() {
				for i := c; i < b.N && !b.Failed(); i += 4 {
					put(b, s, due, nil)
				}
			})
		}
		callers.Wait()
		require.NoError(b, s.AwaitExtension(b.Context(), "timer"))
		b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "timers/s")
		require.NoError(b, s.Close(b.Context()))
	})
	for name, flush := range map[string]system.FlushDiskType{"late": system.AsyncFlush, "late-sync-flush": system.SyncFlush} {
		b.Run(name, func(b *testing.B) { late(b, flush) })
	}
}

func late(b *testing.B, flush system.FlushDiskType) {
	s, lateness := watched(b, system.Options{FlushDiskType: flush})
	const perMs = 100
	began := time.Now()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	accepted := make(chan error, 1<<16)
	for i := 0; i < b.N; <-tick.C {
		now := time.Now()
		for ; i < b.N && i < int(now.Sub(began).Milliseconds()*perMs); i++ {
			due := now.Add(time.Second + time.Duration(i%2000)*time.Millisecond).UnixMilli()
			m := timed(strconv.FormatInt(due, 10), binary.BigEndian.AppendUint64(nil, uint64(due)))
			s.PutAsync(m, true, time.Time{}, func(_ messages.PutResult, err error) { accepted <- err })
			for len(accepted) > 1<<15 {
				require.NoError(b, <-accepted)
			}
		}
	}
	took := time.Since(began)
	var all []int64
	for len(all) < b.N {
		all = append(all, <-lateness...)
	}
	slices.Sort(all)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(b.N)/took.Seconds(), "timers/s")
	for name, at := range map[string]int{"earliest": 0, "p50": len(all) / 2, "p99": len(all) * 99 / 100, "max": len(all) - 1} {
		b.ReportMetric(float64(all[at]), name+"-ms")
	}
	require.NoError(b, s.Close(b.Context()))
}

// watched opens a store with a timer; what is delivered tells how many ms late it is.
func watched(b *testing.B, opt system.Options) (*system.Store, <-chan []int64) {
	opt.Dir, opt.SegmentBytes, opt.NoIndex = b.TempDir(), 256<<20, true
	timer.New(timer.Config{MaxPending: 5_000_000}).Plug(&opt)
	found := make(chan []int64, 1024)
	opt.Dispatchers = append(opt.Dispatchers, system.Dispatcher{Name: "watch", Handle: func(_ context.Context, batch *system.Batch) error {
		var late []int64
		for i := range batch.Requests {
			r := &batch.Requests[i]
			if r.Queue.Topic != "Orders" {
				continue
			}
			m, err := batch.Message(r)
			if err != nil {
				return err
			}
			late = append(late, r.StoreTimestampMs-int64(binary.BigEndian.Uint64(m.Body)))
		}
		found <- late
		return nil
	}})
	s, err := system.Open(opt)
	require.NoError(b, err)
	return s, found
}

func timed(due string, body []byte) *messages.Message {
	return &messages.Message{Topic: "Orders", QueueID: 1, Body: body, Properties: messages.Properties(timer.DeliverMs + "\x01" + due)}
}

func put(b *testing.B, s *system.Store, due string, body []byte) {
	if _, err := s.Put(b.Context(), timed(due, body)); err != nil {
		b.Error(err)
	}
}
