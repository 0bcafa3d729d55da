package cluster

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	members "github.com/actormq/actormq/system/cluster"
	"github.com/actormq/actormq/system/remote/client"
)

// seen is what a subscription has delivered, by body.
type seen struct {
	mu    sync.Mutex
	times map[string]int
	grown chan struct{}
}

func (s *seen) take(_ context.Context, d *client.Delivery) {
	s.mu.Lock()
	s.times[string(d.Message.Body)]++
	s.mu.Unlock()
	d.Ack()
	select {
	case s.grown <- struct{}{}:
	default:
	}
}

// await waits until a message has come.
func (s *seen) await(ctx context.Context, t *testing.T, body string) {
	t.Helper()
	for {
		s.mu.Lock()
		n := s.times[body]
		s.mu.Unlock()
		if n > 0 {
			return
		}
		select {
		case <-s.grown:
		case <-ctx.Done():
			require.FailNow(t, "a message does not come", body)
		}
	}
}

// A program without a store puts to a topic and consumes it, whichever node leads: the leader is killed in between.
func TestAnActorOfAnotherProcessGoesThroughAFailover(t *testing.T) {
	g := Build(t, 3)
	g.Args = map[string][]string{}
	var etcd []string
	for _, n := range g.Nodes {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.NoError(t, l.Close())
		etcd = append(etcd, n.Port(members.PortClient))
		g.Args[n.ID] = []string{"--remote-listen", l.Addr().String()}
	}
	g.Start("1", "2", "3")
	g.Ready("1", "2", "3")
	where, err := members.NewResolver("test", etcd, nil)
	require.NoError(t, err)
	c, err := client.Dial(client.Options{Resolver: where, Timeout: time.Minute, Logger: zerolog.Nop()})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	put := func(body string) {
		_, err := c.Put(ctx, &messages.Message{Topic: "Orders", QueueID: -1, Body: []byte(body)})
		require.NoError(t, err, body)
	}
	put("0-0")
	s := &seen{times: map[string]int{}, grown: make(chan struct{}, 1)}
	d, err := c.Subscribe(ctx, client.Subscription{Topic: "Orders", Group: "readers", From: client.FromFirst, Handle: s.take})
	require.NoError(t, err)
	const before, all = 100, 300
	for i := range all {
		if i == before {
			g.Kill(g.Leader())
		}
		put(fmt.Sprint("1-", i))
	}
	for i := range all {
		s.await(ctx, t, fmt.Sprint("1-", i))
	}
	d.Close()
	require.NoError(t, c.Close())
	require.NoError(t, where.Close())
	for body, n := range s.times {
		require.Equal(t, 1, n, body)
	}
}
