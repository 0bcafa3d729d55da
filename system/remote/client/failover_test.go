// Failing connections log beside the next Dial, which sets the global logger of gRPC (docs/adr/0008): the race detector minds.

//go:build !race

package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system/remote"
	"github.com/actormq/actormq/system/remote/client"
	"github.com/actormq/actormq/system/remote/endpoint"
	"github.com/actormq/actormq/system/remote/wire"
)

// nobody is an address where nobody listens.
const nobody = "127.0.0.1:1"

func TestAClientFindsTheNodeThatLeads(t *testing.T) {
	s := serve(t, nil)
	var asked atomic.Int64
	var clients []*client.Client
	var others []*endpoint.Endpoint
	for _, hint := range []string{"", s.Address()} { // all are there before one is busy: the library sets a variable of gRPC's
		other, err := endpoint.Start(endpoint.Config{
			Remote: remote.Config{Listen: "127.0.0.1:0"}, Store: s.Store, Logger: zerolog.Nop(),
			Leads: func(string) (bool, string) { asked.Add(1); return false, hint },
		})
		require.NoError(t, err)
		others = append(others, other)
		clients = append(clients, dial(t, client.Options{Resolver: client.Static{other.Address(), nobody, s.Address()}}))
	}
	for i, c := range clients {
		placed, err := c.Put(within(t), message("Orders", "a coffee"))
		require.NoError(t, err)
		require.Equal(t, messages.PutOK, placed.Status)
		require.GreaterOrEqual(t, asked.Load(), int64(i+1))
	}
	for _, other := range others {
		require.NoError(t, other.Stop(within(t)))
	}
}

// moving is a resolver that the test moves.
type moving struct{ to atomic.Pointer[string] }

func (m *moving) Leader(context.Context, string, string) (string, error) {
	if at := m.to.Load(); at != nil {
		return *at, nil
	}
	return "", errors.New("there is no leader")
}

// L106: no address is kept that nobody answers at.
func TestALeaderThatMovesTakesPutsAndSubscriptionsAlong(t *testing.T) {
	s := serve(t, nil)
	where := &moving{}
	first := s.Address()
	where.to.Store(&first)
	var leads atomic.Bool
	leads.Store(true)
	second, err := endpoint.Start(endpoint.Config{
		Remote: remote.Config{Listen: "127.0.0.1:0"}, Store: s.Store, Topics: s.Gateway.Broker().Topics, Logger: zerolog.Nop(),
		Leads: func(string) (bool, string) { return leads.Load(), "" },
	})
	require.NoError(t, err)
	c := dial(t, client.Options{Resolver: where})
	_, err = c.Put(within(t), message("Orders", "0"))
	require.NoError(t, err)
	came := make(chan *client.Delivery)
	d, err := c.Subscribe(within(t), client.Subscription{Topic: "Orders", Handle: func(ctx context.Context, d *client.Delivery) {
		select {
		case came <- d:
			d.Ack()
		case <-ctx.Done():
		}
	}})
	require.NoError(t, err)
	receive(t, came, 0)

	address := second.Address()
	where.to.Store(&address)
	require.NoError(t, s.Endpoint.Stop(within(t))) // the first one leaves
	for i := 1; i < 10; i++ {
		_, err = c.Put(within(t), message("Orders", fmt.Sprint(i)))
		require.NoError(t, err)
		receive(t, came, i)
	}
	where.to.Store(nil) // an election
	leads.Store(false)
	done := make(chan error, 1)
	c.PutAsync(message("Orders", "10"), time.Now().Add(20*time.Second), func(_ client.Placed, err error) { done <- err })
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err = c.Offsets(ctx, client.Ask{Topic: "Orders"})
	require.ErrorIs(t, err, client.ErrUnreachable)
	leads.Store(true)
	where.to.Store(&address)
	require.NoError(t, <-done)
	receive(t, came, 10)
	d.Close()
	require.NoError(t, c.Close())
	require.NoError(t, second.Stop(within(t)))
}

func TestRequestsThatNobodyTakes(t *testing.T) {
	c := dial(t, client.Options{Resolver: client.Static{nobody}, MaxInFlight: 2})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := c.Put(ctx, message("Orders", "x"))
	require.ErrorIs(t, err, client.ErrUnreachable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	done := make(chan error, 3)
	for range 3 {
		c.PutAsync(message("Orders", "x"), time.Now().Add(time.Hour), func(_ client.Placed, err error) { done <- err })
	}
	require.ErrorIs(t, <-done, client.ErrBusy)
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = c.Get(ctx, client.Read{Queue: messages.QueueKey{Topic: "Orders"}})
	require.ErrorIs(t, err, client.ErrUnreachable, "there is no room")
	require.NoError(t, c.Close())
	require.ErrorIs(t, <-done, client.ErrClosed)
	require.ErrorIs(t, <-done, client.ErrClosed)
	_, err = c.Put(t.Context(), message("Orders", "x"))
	require.ErrorIs(t, err, client.ErrClosed)
	c.PutAsync(message("Orders", "x"), time.Time{}, func(_ client.Placed, err error) { done <- err })
	require.ErrorIs(t, <-done, client.ErrClosed)
	_, err = c.Subscribe(t.Context(), client.Subscription{Topic: "Orders", Handle: func(context.Context, *client.Delivery) {}})
	require.ErrorIs(t, err, client.ErrClosed)
}

func TestWhatIsRefusedForGoodIsNotRepeated(t *testing.T) {
	s := serve(t, nil)
	for topic, code := range map[string]wire.Code{messages.TopicSchedule: wire.Code_INVALID, "not a topic": wire.Code_INVALID} {
		var refused *client.RefusedError
		_, err := s.client.Put(within(t), message(topic, "x"))
		require.ErrorAs(t, err, &refused)
		require.Equal(t, code, refused.Code)
	}
	large := message("Orders", "")
	large.Body = make([]byte, s.Store.Options().MaxMessageBytes+1)
	placed, err := s.client.Put(within(t), large)
	var status *client.StatusError
	require.ErrorAs(t, err, &status)
	require.Equal(t, messages.MessageIllegal, placed.Status)
	_, err = s.client.Query(within(t), messages.QueryMessage{Topic: "Orders", Key: strings.Repeat("x", 20<<20)})
	var refused *client.RefusedError
	require.ErrorAs(t, err, &refused, "more than a frame takes is not sent")
	large.Body = large.Body[1:]
	_, err = s.client.Put(within(t), large)
	require.NoError(t, err)
	panicked := make(chan error, 1)
	s.client.PutAsync(message("Orders", "x"), time.Time{}, func(client.Placed, error) { panic("a bug of the caller") })
	s.client.PutAsync(message("Orders", "x"), time.Time{}, func(_ client.Placed, err error) { panicked <- err })
	require.NoError(t, <-panicked)
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	for _, opt := range []client.Options{{}, {Resolver: client.Static{nobody}, MaxInFlight: 5000}, {Resolver: client.Static{nobody}, Timeout: -1}} {
		_, err := client.Dial(opt)
		require.ErrorIs(t, err, client.ErrOptions)
	}
	_, err := client.Dial(client.Options{Resolver: client.Static{nobody}, Listen: "0.0.0.0:0"})
	require.ErrorIs(t, err, remote.ErrConfig)
	_, err = client.Static{}.Leader(t.Context(), "Orders", "")
	require.ErrorIs(t, err, client.ErrOptions)
}
