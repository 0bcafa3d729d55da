package locks_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/actors/locks"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/testkit/fixture"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t testing.TB, cfg locks.Config) *locks.Keeper {
	t.Helper()
	cfg.Logger = zerolog.New(io.Discard)
	k, err := locks.Start(fixture.System(t).Root, "locks", cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, k.Close()) })
	return k
}

func queues(ids ...int32) []messages.MessageQueue {
	list := make([]messages.MessageQueue, len(ids))
	for i, id := range ids {
		list[i] = messages.MessageQueue{BrokerName: "broker-a", Topic: "T", QueueID: id}
	}
	return list
}

// lock asks, and returns the ids that were granted.
func lock(t *testing.T, k *locks.Keeper, group, client string, ids ...int32) []int32 {
	t.Helper()
	got, err := k.Lock(t.Context(), group, client, queues(ids...))
	require.NoError(t, err)
	granted := []int32{}
	for _, q := range got {
		require.Equal(t, queues(q.QueueID)[0], q)
		granted = append(granted, q.QueueID)
	}
	return granted
}

func TestLockAndUnlock(t *testing.T) {
	k := start(t, locks.Config{})
	require.Equal(t, []int32{2, 0, 1}, lock(t, k, "g", "a", 2, 0, 1), "in the order of the request")
	require.Equal(t, []int32{3}, lock(t, k, "g", "b", 0, 1, 3), "held ones are not granted")
	require.Equal(t, []int32{0, 1}, lock(t, k, "other", "b", 0, 1), "another group")
	require.Equal(t, []int32{0, 1, 2}, lock(t, k, "g", "a", 0, 1, 2, 3), "one's own are renewed")
	require.Equal(t, []int32{}, lock(t, k, "g", "c"))

	require.NoError(t, k.Unlock("g", "b", queues(0)))
	require.Equal(t, []int32{}, lock(t, k, "g", "b", 0), "only the owner unlocks")
	require.NoError(t, k.Unlock("g", "a", queues(0, 7)))
	require.NoError(t, k.Unlock("none", "a", queues(0)))
	require.Equal(t, []int32{0}, lock(t, k, "g", "b", 0))
	require.Equal(t, 6, k.Len())

	for _, q := range []messages.MessageQueue{{BrokerName: "broker-b", Topic: "T"}, {BrokerName: "broker-a", Topic: "U"}} {
		got, err := k.Lock(t.Context(), "g", "z", []messages.MessageQueue{q})
		require.NoError(t, err)
		require.Equal(t, []messages.MessageQueue{q}, got, "broker and topic tell queues apart")
	}
}

func TestExpiry(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		k := start(t, locks.Config{})
		require.Equal(t, []int32{0, 1}, lock(t, k, "g", "a", 0, 1))
		pass(40 * time.Second)
		require.Equal(t, []int32{0}, lock(t, k, "g", "a", 0))
		pass(20 * time.Second)
		require.Equal(t, []int32{}, lock(t, k, "g", "b", 0, 1), "60 s are not over 60 s")
		pass(time.Millisecond)
		require.Equal(t, []int32{1}, lock(t, k, "g", "b", 0, 1), "0 was renewed")
		require.Equal(t, []int32{}, lock(t, k, "g", "a", 1), "and 1 is the other's now")
		require.Equal(t, 2, k.Len())
		pass(3 * time.Minute)
		synctest.Wait()
		require.Zero(t, k.Len(), "forgotten without being asked for")
		require.Equal(t, []int32{0}, lock(t, k, "g", "c", 0))
		pass(3 * time.Minute)
		synctest.Wait()
		require.Zero(t, k.Len(), "the timer is armed again")
	})
}

func TestExpiryOption(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		k := start(t, locks.Config{Expiry: time.Second})
		lock(t, k, "g", "a", 0)
		pass(time.Second + 1)
		require.Equal(t, []int32{0}, lock(t, k, "g", "b", 0))
	})
}

func TestLimit(t *testing.T) {
	k := start(t, locks.Config{Limit: 2})
	require.Equal(t, []int32{0, 1}, lock(t, k, "g", "a", 0, 1, 2))
	require.Equal(t, []int32{0}, lock(t, k, "g", "a", 0, 2), "renewing goes on")
	require.NoError(t, k.Unlock("g", "a", queues(0)))
	require.Equal(t, []int32{2}, lock(t, k, "h", "b", 2, 3))
}

func TestMessagesFromOtherActors(t *testing.T) {
	k := start(t, locks.Config{})
	ask := &messages.LockQueues{Group: "g", ClientID: "a", Queues: queues(4), Answer: messages.NewAnswer[[]messages.MessageQueue]()}
	k.Peer().Send(ask)
	got, err := ask.Answer.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, queues(4), got)

	back := &messages.UnlockQueues{Group: "g", ClientID: "a", Queues: queues(4), Answer: messages.NewAnswer[struct{}]()}
	k.Peer().Send(back)
	_, err = back.Answer.Wait(t.Context())
	require.NoError(t, err)
	require.Zero(t, k.Len())

	fixture.RefusesStrangers(t, k.Peer())
}

func TestCloseRefuses(t *testing.T) {
	k := start(t, locks.Config{})
	lock(t, k, "g", "a", 0) // the timer is armed: goleak and Close see to it
	require.NoError(t, k.Close())
	_, err := k.Lock(context.Background(), "g", "a", queues(0))
	require.ErrorIs(t, err, messages.ErrClosed)
}

// Of many clients that ask for one queue at once, one gets it, until it gives it back.
func TestOneOwner(t *testing.T) {
	k := start(t, locks.Config{})
	var owners, turns atomic.Int32
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			client := fmt.Sprint("c", i)
			for range 200 {
				got, err := k.Lock(t.Context(), "g", client, queues(0))
				if err != nil {
					t.Error(err)
					return
				}
				if len(got) == 0 {
					continue
				}
				if owners.Add(1) != 1 {
					t.Error("two owners")
				}
				turns.Add(1)
				owners.Add(-1)
				if err := k.Unlock("g", client, queues(0)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.NotZero(t, turns.Load())
}

// pass lets time pass in a bubble of synctest.
func pass(d time.Duration) { <-time.After(d) }
