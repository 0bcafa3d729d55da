package client_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system/remote/client"
)

func TestPutGetQueryOffsets(t *testing.T) {
	s := serve(t, nil)
	ctx := within(t)
	m := message("Orders", "two coffees")
	m.Properties = messages.Properties("").With(messages.PropertyKeys, "k1").With(messages.PropertyTags, "hot")
	placed, err := s.client.Put(ctx, m)
	require.NoError(t, err)
	require.Equal(t, messages.PutOK, placed.Status)
	require.NotEmpty(t, placed.MessageID)
	require.NoError(t, s.Store.AwaitDispatched(ctx))

	read := client.Read{Queue: messages.QueueKey{Topic: "Orders"}, MaxMessages: 10}
	found, err := s.client.Get(ctx, read)
	require.NoError(t, err)
	require.Equal(t, messages.Found, found.Status)
	require.Len(t, found.Messages, 1)
	require.Equal(t, "two coffees", string(found.Messages[0].Body))
	require.Equal(t, placed.PhysicalOffset, found.Messages[0].PhysicalOffset)
	require.EqualValues(t, 1, found.Next)
	read.Tags = []string{"cold"}
	found, err = s.client.Get(ctx, read)
	require.NoError(t, err)
	require.Empty(t, found.Messages)

	all, err := s.client.Query(ctx, messages.QueryMessage{Topic: "Orders", Key: "k1", MaxMessages: 5, EndMs: time.Now().UnixMilli() + 1000})
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, placed.QueueOffset, all[0].QueueOffset)
	require.Equal(t, placed.PhysicalOffset, all[0].PhysicalOffset)

	require.NoError(t, s.Gateway.Broker().Offsets.CommitWait(ctx, "readers", messages.QueueKey{Topic: "Orders"}, 1))
	offsets, err := s.client.Offsets(ctx, client.Ask{Topic: "Orders", Queues: []int32{0}, Group: "readers", At: time.Now().Add(-time.Hour)})
	require.NoError(t, err)
	require.Equal(t, []client.QueueOffsets{{QueueID: 0, Min: 0, Max: 1, Committed: 1, ByTime: 0}}, offsets)
	offsets, err = s.client.Offsets(ctx, client.Ask{Topic: "Orders", Group: "others"})
	require.NoError(t, err)
	require.Len(t, offsets, 4, "all queues of the topic")
	require.Equal(t, messages.NoOffset, offsets[0].Committed)
}

func TestManyPutsOfOneClientKeepTheirOrder(t *testing.T) {
	s := serve(t, nil)
	const n = 500
	done := make(chan error, n)
	for i := range n {
		s.client.PutAsync(message("Orders", fmt.Sprint(i)), time.Now().Add(20*time.Second), func(_ client.Placed, err error) { done <- err })
	}
	for range n {
		require.NoError(t, <-done)
	}
	ctx := within(t)
	require.NoError(t, s.Store.AwaitDispatched(ctx))
	for next := messages.QueueOffset(0); next < n; {
		found, err := s.client.Get(ctx, client.Read{Queue: messages.QueueKey{Topic: "Orders"}, Offset: next, MaxMessages: 32})
		require.NoError(t, err)
		for _, m := range found.Messages {
			require.Equal(t, fmt.Sprint(int(m.QueueOffset)), string(m.Body))
		}
		next = found.Next
	}
}
