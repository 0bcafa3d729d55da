package client_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system/remote/client"
	"github.com/actormq/actormq/system/remote/endpoint"
)

// put stores messages in queue 0 of a topic, with their numbers as bodies.
func put(t *testing.T, s *serving, topic string, from, to int) {
	t.Helper()
	ctx := within(t)
	for i := from; i < to; i++ {
		_, err := s.client.Put(ctx, message(topic, fmt.Sprint(i)))
		require.NoError(t, err)
	}
}

// receive waits for a delivery with a number.
func receive(t *testing.T, came <-chan *client.Delivery, want int) *client.Delivery {
	t.Helper()
	select {
	case d := <-came:
		require.Equal(t, fmt.Sprint(want), string(d.Message.Body))
		return d
	case <-within(t).Done():
		require.FailNow(t, "nothing came", "want %d", want)
		return nil
	}
}

func TestASubscriptionDeliversWhatIsThereAndWhatComes(t *testing.T) {
	s := serve(t, nil)
	put(t, s, "Orders", 0, 100)
	came := make(chan *client.Delivery)
	d, err := s.client.Subscribe(within(t), client.Subscription{Topic: "Orders", Group: "readers", Handle: func(ctx context.Context, d *client.Delivery) {
		select {
		case came <- d:
			d.Ack()
		case <-ctx.Done():
		}
	}})
	require.NoError(t, err)
	for i := range 100 {
		receive(t, came, i)
	}
	put(t, s, "Orders", 100, 110)
	for i := 100; i < 110; i++ {
		receive(t, came, i)
	}
	d.Close()
	q := messages.QueueKey{Topic: "Orders"}
	require.Eventually(t, func() bool { return s.Gateway.Broker().Offsets.Lookup("readers", q) == 110 }, 10*time.Second, time.Millisecond)

	put(t, s, "Orders", 110, 111)
	d, err = s.client.Subscribe(within(t), client.Subscription{Topic: "Orders", Queues: []int32{0}, Group: "readers", Handle: func(ctx context.Context, d *client.Delivery) {
		select {
		case came <- d:
		case <-ctx.Done():
		}
	}})
	require.NoError(t, err)
	receive(t, came, 110) // goes on where the group is
	d.Close()
}

func TestASlowSubscriberIsSentNoMoreThanItsWindow(t *testing.T) {
	s := serve(t, nil)
	put(t, s, "Orders", 0, 300)
	came := make(chan *client.Delivery)
	var handled atomic.Int64
	d, err := s.client.Subscribe(within(t), client.Subscription{
		Topic: "Orders", Queues: []int32{0}, Window: 10, Handle: func(ctx context.Context, d *client.Delivery) {
			select {
			case came <- d:
				handled.Add(1)
			case <-ctx.Done():
			}
		},
	})
	require.NoError(t, err)
	defer d.Close()
	var window []*client.Delivery
	for i := range 10 {
		window = append(window, receive(t, came, i))
	}
	held := s.Status().HeldBytes
	require.Positive(t, held)
	put(t, s, "Others", 0, 50) // nobody else is held up, and the node has answered requests that came later
	require.Equal(t, held, s.Status().HeldBytes, "nothing more was sent")
	select {
	case d := <-came:
		require.Fail(t, "more than the window", "%s", d.Message.Body)
	default:
	}
	for _, d := range window[1:] {
		d.Ack()
	}
	put(t, s, "Others", 50, 60)
	require.EqualValues(t, 10, handled.Load(), "the first one is missing: nothing is acknowledged")
	window[0].Ack()
	for i := 10; i < 300; i++ {
		receive(t, came, i).Ack()
	}
}

func TestAHandlerThatPanicsGetsTheMessageAgain(t *testing.T) {
	s := serve(t, nil)
	put(t, s, "Orders", 0, 2)
	came := make(chan *client.Delivery)
	first := true
	d, err := s.client.Subscribe(within(t), client.Subscription{Topic: "Orders", Handle: func(ctx context.Context, d *client.Delivery) {
		if first {
			first = false
			panic("a bug")
		}
		select {
		case came <- d:
			d.Ack()
		case <-ctx.Done():
		}
	}})
	require.NoError(t, err)
	defer d.Close()
	receive(t, came, 0)
	receive(t, came, 1)
}

func TestOnlyMessagesWithTheTagAreDelivered(t *testing.T) {
	s := serve(t, nil)
	for i := range 20 {
		m := message("Orders", fmt.Sprint(i))
		// "Aa" and "BB" have the same hash.
		m.Properties = messages.Properties("").With(messages.PropertyTags, []string{"Aa", "BB"}[i%2])
		_, err := s.client.Put(within(t), m)
		require.NoError(t, err)
	}
	came := make(chan *client.Delivery)
	d, err := s.client.Subscribe(within(t), client.Subscription{Topic: "Orders", Tags: []string{"BB"}, Handle: func(ctx context.Context, d *client.Delivery) {
		select {
		case came <- d:
			d.Ack()
		case <-ctx.Done():
		}
	}})
	require.NoError(t, err)
	defer d.Close()
	for i := 1; i < 20; i += 2 {
		receive(t, came, i)
	}
}

func TestATopicWithoutQueuesCanNotBeSubscribedTo(t *testing.T) {
	s := serve(t, nil)
	_, err := s.client.Subscribe(within(t), client.Subscription{Topic: "Nothing", Handle: func(context.Context, *client.Delivery) {}})
	require.ErrorIs(t, err, client.ErrNoQueues)
}

func TestSubscriptionsOfOneClientAreBounded(t *testing.T) {
	s := serve(t, func(c *endpoint.Config) { c.Limits.ClientBytes = 4 << 10 })
	put(t, s, "Orders", 0, 300)
	came := make(chan *client.Delivery)
	d, err := s.client.Subscribe(within(t), client.Subscription{Topic: "Orders", Handle: func(ctx context.Context, d *client.Delivery) {
		select {
		case came <- d:
			d.Ack()
		case <-ctx.Done():
		}
	}})
	require.NoError(t, err)
	defer d.Close()
	for i := range 300 {
		require.Less(t, s.Status().HeldBytes, int64(4<<10+64<<10), "one read more than the bound")
		receive(t, came, i)
	}
}
