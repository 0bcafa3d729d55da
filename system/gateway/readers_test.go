package gateway_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/gateway"
)

// listening is a store that shows what it was told of consumer groups.
type listening struct {
	*system.Store
	readers messages.Readers
}

func (l *listening) SetReaders(readers messages.Readers) {
	l.readers = readers
	l.Store.SetReaders(readers)
}

// TestGroupsKeepWhatTheyHaveNotRead while they are online, for a time after they were seen, and not when they were deleted.
func TestGroupsKeepWhatTheyHaveNotRead(t *testing.T) {
	var store *listening
	w := run(t, func(c *gateway.Config) {
		store = &listening{Store: c.Store.(*system.Store)}
		c.Store = store
	})
	first, second := messages.QueueKey{Topic: "T"}, messages.QueueKey{Topic: "T", QueueID: 1}
	commit := func(group string, q messages.QueueKey, next messages.QueueOffset) {
		w.group(group)
		require.NoError(t, w.node.Broker().Offsets.CommitWait(t.Context(), group, q, next))
	}
	require.Empty(t, store.readers(time.Hour))
	commit("slow", first, 3)
	commit("fast", first, 9)
	commit("fast", second, 1)
	require.Equal(t, map[messages.QueueKey]messages.Reader{
		first: {Group: "slow", Next: 3}, second: {Group: "fast", Next: 1},
	}, store.readers(time.Hour))

	require.Empty(t, store.readers(0), "both were seen some time ago")
	commit("fast", first, 10)
	require.Equal(t, map[messages.QueueKey]messages.Reader{
		first: {Group: "fast", Next: 10}, second: {Group: "fast", Next: 1},
	}, store.readers(0), "it has committed since")

	c := w.dial("broker")
	c.join(beating("c1", "slow", "T", 1))
	for range 2 {
		require.Equal(t, messages.Reader{Group: "slow", Next: 3}, store.readers(0)[first], "it is online")
	}
	require.NoError(t, c.sock.Close())
	w.eventually(func() bool { return len(store.readers(0)) == 0 })

	require.Len(t, store.readers(time.Hour), 2)
	require.Equal(t, remoting.ResponseSuccess, w.dial("broker").ask(req(remoting.RequestDeleteSubscriptionGroup, "groupName", "slow")).Code)
	require.Equal(t, messages.Reader{Group: "fast", Next: 10}, store.readers(time.Hour)[first])
}
