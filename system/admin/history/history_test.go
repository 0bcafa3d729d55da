package history

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/node"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestLagsAreRememberedByPair: also those of pairs that come later or go, for an hour.
func TestLagsAreRememberedByPair(t *testing.T) {
	at := time.Now()
	l := &lags{}
	step := func(all ...Lag) {
		l = l.with(at, all)
		at = at.Add(LagInterval)
	}
	step(Lag{"a", "t", 1})
	early := l
	step(Lag{"a", "t", 2}, Lag{"b", "t", 7})
	step(Lag{"b", "t", 8})
	h := &History{}
	of := func(l *lags, group string) (values []int64) {
		h.lags = &atomic.Pointer[lags]{}
		h.lags.Store(l)
		for _, p := range h.Lag(group, "t") {
			values = append(values, p.Messages)
		}
		return values
	}
	require.Equal(t, []int64{1, 2}, of(l, "a"))
	require.Equal(t, []int64{7, 8}, of(l, "b"))
	require.Nil(t, of(l, "c"))
	require.Equal(t, []int64{1}, of(early, "a"), "what was published stays as it was")
	require.Nil(t, of(early, "b"))
	for range 2 * int(LagKept/LagInterval) {
		step(Lag{"a", "t", 9})
	}
	require.Len(t, of(l, "a"), int(LagKept/LagInterval)+1)
	require.Nil(t, of(l, "b"), "it has gone")
}

// TestPairsAreBounded: those beyond the bound are left out, until there are some that have gone.
func TestPairsAreBounded(t *testing.T) {
	var all []Lag
	for i := range maxPairs + 1 {
		all = append(all, Lag{fmt.Sprint("g", i), "t", int64(i)})
	}
	l := (&lags{}).with(time.Now(), all)
	require.Len(t, l.column, maxPairs)
	l = l.with(time.Now(), all)
	require.Len(t, l.rows, 2)
	l = l.with(time.Now(), all[1:])
	require.Len(t, l.rows, 1, "it begins anew")
	require.Contains(t, l.column, pair{fmt.Sprint("g", maxPairs), "t"})
}

// TestSamplesAreTakenEveryTwoSeconds and kept for half an hour.
func TestSamplesAreTakenEveryTwoSeconds(t *testing.T) {
	n := node.Start(t, nil)
	synctest.Test(t, func(t *testing.T) {
		sys := fixture.System(t, actor.WithDeadLetterThrottleInterval(time.Millisecond))
		actors.TakeCensus(sys)
		h, err := Start(sys.Root, Config{
			Store: n.Store, Broker: n.Gateway.Broker(), Connections: func() int { return 3 }, Logger: zerolog.Nop(),
			Actors: func() []actors.Standing { return actors.Standings(sys) },
		})
		require.NoError(t, err)
		<-time.After(time.Second)
		require.Len(t, h.Samples(Kept), 1)
		<-time.After(2 * Interval)
		all := h.Samples(Kept)
		require.Len(t, all, 3)
		require.Equal(t, Interval, all[2].At.Sub(all[1].At))
		require.EqualValues(t, 3, all[2].Connections)
		require.Len(t, h.Samples(Interval), 2)
		<-time.After(Kept + time.Minute)
		require.Len(t, h.Samples(Kept), int(Kept/Interval)+1)
		require.Empty(t, h.Rates(), "nobody has asked")
		<-time.After(2 * Interval)
		require.Contains(t, h.Rates(), "history")
		<-time.After(2 * countedFor)
		require.Empty(t, h.Rates(), "nobody has asked for long")
		require.NoError(t, h.Close())
	})
}
