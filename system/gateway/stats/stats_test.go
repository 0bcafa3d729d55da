package stats_test

import (
	"io"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway/stats"
	"github.com/actormq/actormq/testkit/fixture"
)

// in runs a test with an actor system and a clock of its own.
func in(t *testing.T, test func(*testing.T, *stats.Set)) {
	fixture.Bubble(t, func(t *testing.T) {
		system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
			return slog.New(slog.NewTextHandler(io.Discard, nil))
		}), actor.WithDeadLetterThrottleInterval(time.Millisecond))
		defer system.Shutdown()
		s, err := stats.Start(system.Root, zerolog.Nop())
		require.NoError(t, err)
		test(t, s)
		require.NoError(t, s.Close())
	})
}

// pass lets time go by, in the test's own clock.
func pass(d time.Duration) { <-time.After(d) }

func all(string, string) bool { return true }

func view(t *testing.T, s *stats.Set, name, key string) remoting.StatsData {
	t.Helper()
	data, ok := s.View(name, key, all)
	require.True(t, ok)
	return data
}

func TestWindows(t *testing.T) {
	in(t, func(t *testing.T, s *stats.Set) {
		for range 60 {
			s.Put("T", 2, 100)
			s.Got("g", "T", 1, 50)
			pass(time.Second)
		}
		synctest.Wait()
		put := view(t, s, "TOPIC_PUT_NUMS", "T").StatsMinute
		require.InDelta(t, 2, put.TPS, 0.2)
		require.InDelta(t, 2, put.AveragePerTime, 0.01)
		require.InDelta(t, 120, put.Sum, 4)
		require.InDelta(t, 100, view(t, s, "TOPIC_PUT_SIZE", "T").StatsMinute.TPS, 10)
		require.InDelta(t, 1, view(t, s, "GROUP_GET_NUMS", "T@g").StatsMinute.TPS, 0.1)
		require.InDelta(t, 50, view(t, s, "GROUP_GET_SIZE", "T@g").StatsMinute.TPS, 5)
		require.InDelta(t, 2, view(t, s, "BROKER_PUT_NUMS", "cluster").StatsMinute.TPS, 0.2)

		pass(2 * time.Minute)
		synctest.Wait()
		require.Zero(t, view(t, s, "TOPIC_PUT_NUMS", "T").StatsMinute, "the minute has passed")
		require.Zero(t, view(t, s, "BROKER_PUT_NUMS", "cluster").StatsMinute)
		pass(20 * time.Minute)
		synctest.Wait()
		require.Equal(t, int64(120), view(t, s, "TOPIC_PUT_NUMS", "T").StatsHour.Sum)
		pass(2 * time.Hour)
		synctest.Wait()
		require.Zero(t, view(t, s, "TOPIC_PUT_NUMS", "T").StatsHour)
		require.Equal(t, int64(120), view(t, s, "TOPIC_PUT_NUMS", "T").StatsDay.Sum)
	})
}

func TestTotals(t *testing.T) {
	in(t, func(t *testing.T, s *stats.Set) {
		pass(time.Second / 2) // between the samples: one that is taken at the same time may see some of the counts only
		for range 100 {
			s.Put("T", 3, 30)
			s.Got("g", "T", 2, 20)
			s.Missed()
			pass(time.Second)
		}
		synctest.Wait()
		totals := s.Totals()
		require.Equal(t, int64(300), totals.PutTimes)
		require.Equal(t, int64(3000), totals.PutBytes)
		require.Equal(t, int64(100), totals.PutCalls)
		require.Equal(t, int64(200), totals.GetTotal)
		for rates, want := range map[string]float64{totals.PutRates: 3, totals.TransferredRates: 2, totals.MissRates: 1} {
			words := strings.Fields(rates)
			require.Len(t, words, 3)
			for _, word := range words {
				rate, err := strconv.ParseFloat(word, 64)
				require.NoError(t, err)
				require.InDelta(t, want, rate, 0.3)
			}
		}
		require.Equal(t, totals.TransferredRates, totals.GetRates, "found and missed")
		require.Zero(t, totals.PutTodayMorning)
		pass(24 * time.Hour)
		s.Put("T", 5, 50)
		synctest.Wait()
		next := s.Totals()
		require.Equal(t, int64(300), next.PutTodayMorning)
		require.Equal(t, int64(305), next.PutTimes)
		pass(24 * time.Hour)
		synctest.Wait()
		require.Equal(t, int64(300), s.Totals().PutYesterdayMorning)
		require.Equal(t, int64(305), s.Totals().PutTodayMorning)
	})
}

func TestNames(t *testing.T) {
	in(t, func(t *testing.T, s *stats.Set) {
		none := func(string, string) bool { return false }
		_, ok := s.View("NO_SUCH", "T", all)
		require.False(t, ok)
		_, ok = s.View("TOPIC_PUT_NUMS", "T", none)
		require.False(t, ok)
		_, ok = s.View("GROUP_GET_NUMS", "no group", all)
		require.False(t, ok)
		data, ok := s.View("TOPIC_PUT_NUMS", "T", all)
		require.True(t, ok, "known, and idle")
		require.Zero(t, data)
		s.SentBack("g", "T")
		s.Put("T", 1, 1)
		synctest.Wait()
		_, ok = s.View("SNDBCK_PUT_NUMS", "T@g", none)
		require.True(t, ok)
		s.Forget("T")
		synctest.Wait()
		_, ok = s.View("SNDBCK_PUT_NUMS", "T@g", none)
		require.False(t, ok)
		_, ok = s.View("BROKER_PUT_NUMS", "", none)
		require.True(t, ok, "the broker's own stay")
	})
}

func TestNoSetCountsNothing(t *testing.T) {
	var none *stats.Set
	none.Put("T", 1, 1)
	none.Got("g", "T", 1, 1)
	none.Missed()
	none.Forget("T")
	_, ok := none.View("TOPIC_PUT_NUMS", "T", all)
	require.True(t, ok)
	require.Equal(t, "0.0000 0.0000 0.0000", none.Totals().PutRates)
}

func TestCountingAKnownItemAllocatesNothing(t *testing.T) {
	in(t, func(t *testing.T, s *stats.Set) {
		s.Put("T", 1, 1)
		synctest.Wait()
		require.Zero(t, testing.AllocsPerRun(100, func() { s.Put("T", 1, 1) }))
	})
}

func status(ok bool) messages.PutStatus {
	if ok {
		return messages.PutOK
	}
	return messages.OSPageCacheBusy
}

func TestTheTimesOfPuts(t *testing.T) {
	in(t, func(t *testing.T, s *stats.Set) {
		for i := range 1000 {
			s.PutTook(time.Duration(i)*100*time.Microsecond, status(i%100 != 0)) // 0 to 99.9 ms, evenly
		}
		s.GetTook(7 * time.Millisecond)
		require.Zero(t, testing.AllocsPerRun(10, func() { s.GetTook(time.Millisecond) }))
		for _, d := range []time.Duration{time.Millisecond * 700, 20 * time.Second} {
			s.PutTook(d, messages.PutOK)
		}
		now := s.Totals()
		require.Equal(t, "[<=0ms]:10 [0~10ms]:90 [10~50ms]:400 [50~100ms]:500 [100~200ms]:0 [200~500ms]:0 [500ms~1s]:1 [1~2s]:0 "+
			"[2~3s]:0 [3~4s]:0 [4~5s]:0 [5~10s]:0 [10s~]:1 ", now.PutDistribution)
		require.EqualValues(t, 10, now.PutFailed)
		counted := s.Sends()
		require.Equal(t, map[messages.PutStatus]int64{messages.PutOK: 992, messages.OSPageCacheBusy: 10}, counted.Status)
		require.EqualValues(t, 1002, counted.Times.Count)
		require.EqualValues(t, 20_000, now.PutMaxMs)
		require.EqualValues(t, 7, now.GetMaxMs)
		pass(time.Minute)
		synctest.Wait()
		require.InDelta(t, 99, s.Totals().PutLatency99, 1.5)
		require.InDelta(t, 700, s.Totals().Put999, 300)
		require.Equal(t, now.PutDistribution, s.Totals().PutDistribution, "the last whole minute")
		pass(time.Minute)
		synctest.Wait()
		require.Zero(t, s.Totals().PutLatency99)
		require.NotContains(t, s.Totals().PutDistribution, ":1", "the minute has passed")
	})
}
