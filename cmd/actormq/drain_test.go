package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/client"
)

// senders send to a topic as RocketMQ's clients do: routes are asked for again from time to time, and what a broker does not take,
// for a reason that another one may not have, is sent once more to another one.
type senders struct {
	t       *testing.T
	client  *client.Client
	route   atomic.Pointer[[]client.Queue]
	stop    context.CancelFunc
	running sync.WaitGroup

	sent, retried, failed atomic.Int64
}

// startSenders runs four of them.
func startSenders(n *testNode, topic string, refresh time.Duration) *senders {
	ctx, cancel := context.WithCancel(n.t.Context())
	s := &senders{t: n.t, client: n.client(), stop: cancel}
	s.refresh(ctx, topic)
	s.running.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(refresh):
				s.refresh(ctx, topic)
			}
		}
	})
	for i := range 4 {
		s.running.Go(func() {
			for turn := i; ctx.Err() == nil; turn++ {
				s.send(turn)
			}
		})
	}
	n.t.Cleanup(s.end)
	return s
}

func (s *senders) refresh(ctx context.Context, topic string) {
	route, err := s.client.Route(ctx, topic)
	if err != nil {
		return // the route before stays
	}
	queues, err := client.WriteQueues(route, topic)
	if err == nil && len(queues) > 0 {
		s.route.Store(&queues)
	}
}

// send tries a queue, and one of another broker after a failure that allows it.
func (s *senders) send(turn int) {
	queues := *s.route.Load()
	q := queues[turn%len(queues)]
	err := s.try(q)
	if sendRetryable(err) {
		s.retried.Add(1)
		for _, other := range queues {
			if other.Broker != q.Broker {
				err = s.try(other)
				break
			}
		}
	}
	if err != nil {
		s.failed.Add(1)
		s.t.Logf("not sent: %v", err)
		return
	}
	s.sent.Add(1)
}

func (s *senders) try(q client.Queue) error {
	p := producer{}
	_, err := s.client.Send(context.Background(), q.Address, p.header(q), []byte("x"))
	return err
}

func (s *senders) end() {
	s.stop()
	s.running.Wait()
}

// both are two nodes with a topic on each, the second one joined at the first one's name server.
func both(t *testing.T) (first, second *testNode) {
	first = serve(t)
	second = joined(t, first, "broker-b")
	first.knows("TBW102", "broker-a", "broker-b")
	_, _, err := run("produce", "--namesrv", first.names, "--topic", "orders", "1", "2", "3", "4", "5", "6", "7", "8")
	require.NoError(t, err)
	first.knows("orders", "broker-a", "broker-b")
	return first, second
}

// ends waits for a node that drains as runNode does, and stops it.
func (n *testNode) ends() {
	n.t.Helper()
	select {
	case grace := <-n.drain:
		n.drained(n.t.Context(), grace)
	case <-time.After(10 * time.Second):
		require.FailNow(n.t, "nobody has asked it to drain")
	}
	n.end()
}

func TestDrainSendsProducersElsewhereBeforeTheNodeStops(t *testing.T) {
	first, second := both(t)
	s := startSenders(first, "orders", 20*time.Millisecond)
	first.eventually(func() bool { return s.sent.Load() > 100 })
	ended := make(chan error, 1)
	go func() {
		said, _, err := run("drain", "--grace", "1s", "--json", second.broker)
		if err == nil && !strings.Contains(said, `"stopped":true`) {
			err = errors.New(said)
		}
		ended <- err
	}()
	second.ends()
	require.NoError(t, <-ended, "the command waits until the node has stopped")
	before := s.sent.Load()
	first.eventually(func() bool { return s.sent.Load() > before+100 })
	s.end()
	require.Zero(t, s.failed.Load())
	require.Zero(t, s.retried.Load(), "nobody has even noticed")
	first.knows("orders", "broker-a")
}

func TestAStopWithoutDrainCostsARetryAtMost(t *testing.T) {
	first, second := both(t)
	s := startSenders(first, "orders", 20*time.Millisecond)
	first.eventually(func() bool { return s.sent.Load() > 100 })
	second.end() // as SIGTERM
	before := s.sent.Load()
	first.eventually(func() bool { return s.sent.Load() > before+100 })
	s.end()
	require.Zero(t, s.failed.Load())
}

func TestDrainIsNotForEverybody(t *testing.T) {
	n := serve(t)
	a, err := n.client().Call(t.Context(), n.broker, remoting.NewRequest(remoting.RequestDrainBroker, &remoting.DrainHeader{GraceMs: -1}))
	require.NoError(t, err)
	require.Equal(t, remoting.ResponseSystemError, a.Code)
	_, _, err = run("drain", "--async", n.names)
	require.ErrorContains(t, err, "not supported", "a name server is no broker")
	_, _, err = run("drain", "nonsense")
	require.ErrorContains(t, err, "HOST:PORT")
	_, _, err = run("drain", "--async", "--grace", "3ms", n.broker)
	require.NoError(t, err)
	require.Equal(t, 3*time.Millisecond, <-n.drain)
	route, err := n.client().Route(t.Context(), "TBW102")
	require.NoError(t, err)
	require.NotZero(t, route.QueueDatas[0].Perm&2)
	n.drained(t.Context(), time.Millisecond)
	route, err = n.client().Route(t.Context(), "TBW102")
	require.NoError(t, err)
	require.Zero(t, route.QueueDatas[0].Perm&2, "its own name server says it too")
	require.NotZero(t, route.QueueDatas[0].Perm&4, "and it is still read")
}
