package crash_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system/remote/client"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/process"
)

// heard is what a subscription has delivered.
type heard struct {
	mu     sync.Mutex
	bodies map[string]int
	next   map[int32]messages.QueueOffset
	odd    []string
	grown  chan struct{}
}

func (h *heard) take(_ context.Context, d *client.Delivery) {
	h.mu.Lock()
	m := &d.Message
	if m.QueueOffset != h.next[m.QueueID] {
		h.odd = append(h.odd, fmt.Sprintf("queue %d: %d came, and %d was to come", m.QueueID, m.QueueOffset, h.next[m.QueueID]))
	}
	h.next[m.QueueID] = m.QueueOffset + 1
	h.bodies[string(m.Body)]++
	h.mu.Unlock()
	d.Ack()
	select {
	case h.grown <- struct{}{}:
	default:
	}
}

// has tells whether all of these have come.
func (h *heard) has(acked map[string]client.Placed) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for b := range acked {
		if h.bodies[b] == 0 {
			return false
		}
	}
	return true
}

// remoteLoad puts from several goroutines through the store endpoint, and keeps what was acknowledged.
type remoteLoad struct {
	c       *client.Client
	stop    chan struct{}
	putters sync.WaitGroup
	count   atomic.Int64
	grown   chan struct{}

	mu    sync.Mutex
	acked map[string]client.Placed
}

func beginRemoteLoad(ctx context.Context, t *testing.T, c *client.Client) *remoteLoad {
	l := &remoteLoad{c: c, stop: make(chan struct{}), grown: make(chan struct{}, 1), acked: map[string]client.Placed{}}
	for p := range 8 {
		l.putters.Go(func() {
			for i := 0; l.goesOn(); i++ {
				body := fmt.Sprint(p, "-", i)
				placed, err := c.Put(ctx, &messages.Message{Topic: "Orders", QueueID: -1, Body: []byte(body)})
				if err != nil {
					t.Errorf("put %s: %v", body, err)
					return
				}
				l.mu.Lock()
				l.acked[body] = placed
				l.mu.Unlock()
				l.count.Add(1)
				select {
				case l.grown <- struct{}{}:
				default:
				}
			}
		})
	}
	return l
}

func (l *remoteLoad) goesOn() bool {
	select {
	case <-l.stop:
		return false
	default:
		return true
	}
}

// await waits for n more acknowledgements.
func (l *remoteLoad) await(ctx context.Context, t *testing.T, n int64) {
	t.Helper()
	for from := l.count.Load(); l.count.Load() < from+n; {
		select {
		case <-l.grown:
		case <-ctx.Done():
			t.Fatal("puts have come to a halt")
		}
	}
}

// check requires that each acknowledged message is there once, at the place that was answered, and nothing else but the first.
func (l *remoteLoad) check(ctx context.Context, t *testing.T) {
	t.Helper()
	times := map[string]int{}
	offsets, err := l.c.Offsets(ctx, client.Ask{Topic: "Orders"})
	require.NoError(t, err)
	for _, q := range offsets {
		for next := q.Min; next < q.Max; {
			found, err := l.c.Get(ctx, client.Read{Queue: messages.QueueKey{Topic: "Orders", QueueID: q.QueueID}, Offset: next, MaxMessages: 32})
			require.NoError(t, err)
			for _, m := range found.Messages {
				body := string(m.Body)
				times[body]++
				if at, ok := l.acked[body]; ok {
					require.Equal(t, at.QueueOffset, m.QueueOffset, body)
					require.Equal(t, at.QueueID, m.QueueID, body)
				}
			}
			next = found.Next
		}
	}
	for body := range l.acked {
		require.Equal(t, 1, times[body], "message %s", body)
	}
	require.Len(t, times, len(l.acked)+1)
}

// A client of the store endpoint puts and subscribes while the node is killed again and again. Nothing that was acknowledged is lost,
// nothing is stored twice though puts are repeated, and the subscription goes on where it was.
func TestKillingANodeUnderARemoteClient(t *testing.T) {
	rounds := max(fixture.Number(t, "KILL_ROUNDS", 3), 3)
	n := buildNode(t)
	address := process.Port(t, 1).String()
	n.start("remoteListen=" + address)
	c, err := client.Dial(client.Options{Resolver: client.Static{address}, Timeout: time.Minute, Logger: zerolog.Nop()})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rounds)*time.Minute)
	defer cancel()
	_, err = c.Put(ctx, &messages.Message{Topic: "Orders", QueueID: -1, Body: []byte("first")}) // makes the topic
	require.NoError(t, err)
	h := &heard{bodies: map[string]int{}, next: map[int32]messages.QueueOffset{}, grown: make(chan struct{}, 1)}
	s, err := c.Subscribe(ctx, client.Subscription{Topic: "Orders", Group: "readers", From: client.FromFirst, Window: 20, Handle: h.take})
	require.NoError(t, err)

	l := beginRemoteLoad(ctx, t, c)
	for range rounds {
		l.await(ctx, t, 200)
		_ = n.End(syscall.SIGKILL) // which is an error
		n.start("remoteListen=" + address)
	}
	l.await(ctx, t, 50)
	close(l.stop)
	l.putters.Wait()
	require.False(t, t.Failed())
	for !h.has(l.acked) {
		select {
		case <-h.grown:
		case <-ctx.Done():
			t.Fatal("the subscription has come to a halt")
		}
	}
	s.Close()
	require.Empty(t, h.odd, "messages of a queue come in order, and once to one who does not fail")
	l.check(ctx, t)
	require.NoError(t, c.Close())
	require.NoError(t, n.End(syscall.SIGTERM))
	t.Logf("%d messages, %d kills", len(l.acked), rounds)
}
