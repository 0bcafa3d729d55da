package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/client"
	members "github.com/actormq/actormq/system/cluster"
)

// Topic is where the load sends to.
const Topic = "load"

// place is where a message stands.
type place struct {
	queue int32
	at    int64
}

// commit is an offset that a broker has taken from the reader's group.
type commit struct {
	at     time.Time
	queue  int32
	offset int64
}

// Load sends and reads until it is ended.
type Load struct {
	t     testing.TB
	nodes []members.Node

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	acked   map[place]string // what was answered with SEND_OK
	seen    map[place]string // what a reader has got
	last    time.Time        // of the last SEND_OK
	kept    []commit         // what the reader has committed, in order
	wrong   []string
	tried   int
	history history
	gapped  chan struct{} // told after each SEND_OK
}

// Begin starts senders and a reader.
func Begin(t testing.TB, g *Group, senders int) *Load {
	l := &Load{t: t, nodes: g.Nodes, acked: map[place]string{}, seen: map[place]string{}, gapped: make(chan struct{}, 1), history: history{began: time.Now()}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	ctx := l.ctx
	for i := range senders {
		l.running.Go(func() { l.send(ctx, i) })
	}
	l.running.Go(func() { l.read(ctx) })
	return l
}

// End stops them.
func (l *Load) End() {
	l.cancel()
	l.running.Wait()
}

// Acked is how many sends have been acknowledged.
func (l *Load) Acked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// client asks one name server first, and the others when that one is not reached.
func (l *Load) client(first int) *client.Client {
	var servers []string
	for i := range l.nodes {
		servers = append(servers, l.nodes[(first+i)%len(l.nodes)].Port(members.PortNameServer))
	}
	return client.New(client.Options{NameServers: servers, Timeout: time.Second})
}

// send sends one message after the other, to whoever the routes say.
func (l *Load) send(ctx context.Context, sender int) {
	n := 0
	l.again(ctx, sender, func(c *client.Client) error {
		n++
		return l.sendOne(ctx, c, fmt.Sprintf("%d/%d", sender, n))
	})
}

// again does something again and again until the context ends, after a failure by another name server.
func (l *Load) again(ctx context.Context, first int, what func(c *client.Client) error) {
	for turn := first; ctx.Err() == nil; turn++ {
		c := l.client(turn)
		for ctx.Err() == nil && what(c) == nil {
		}
		c.Close()
		pause(ctx)
	}
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Millisecond):
	}
}

// store sends a message to whoever leads; without an error it is acknowledged.
func store(ctx context.Context, c *client.Client, topic, properties, body string) (client.Sent, error) {
	queues, err := c.QueuesToSend(ctx, topic)
	if err != nil {
		return client.Sent{}, err
	}
	q := queues[len(body)%len(queues)]
	sent, err := c.Send(ctx, q.Address, remoting.SendMessageHeader{
		ProducerGroup: group, Topic: topic, DefaultTopic: "TBW102", DefaultTopicQueueNums: 4, QueueID: q.ID, Properties: properties,
		BornTimestampMs: time.Now().UnixMilli(),
	}, []byte(body))
	if err == nil && sent.Code != remoting.ResponseSuccess {
		err = fmt.Errorf("stored, but %s", remoting.ResponseName(sent.Code))
	}
	return sent, err
}

func (l *Load) sendOne(ctx context.Context, c *client.Client, body string) error {
	asked := call{body: body, called: l.history.now(), returned: never}
	sent, err := store(ctx, c, Topic, "", body+strings.Repeat(".", 200))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried++
	if err == nil {
		asked.returned = l.history.now()
	}
	if l.history.calls = append(l.history.calls, asked); err != nil {
		return err
	}
	l.note(l.acked, place{sent.QueueID, sent.QueueOffset}, body)
	l.last = time.Now()
	select {
	case l.gapped <- struct{}{}:
	default:
	}
	return nil
}

// note keeps what stands at a place; mu is held. Another message there, now or before, is an error.
func (l *Load) note(where map[place]string, p place, body string) {
	for _, known := range []map[place]string{l.acked, l.seen} {
		if before, there := known[p]; there && before != body && len(l.wrong) < 100 {
			l.wrong = append(l.wrong, fmt.Sprintf("queue %d at %d: %q, and before %q", p.queue, p.at, body, before))
		}
	}
	where[p] = body
}

// read reads every queue from its beginning on, and goes on where it was after each failure.
func (l *Load) read(ctx context.Context) {
	next := map[int32]int64{}
	l.again(ctx, 0, func(c *client.Client) error {
		pause(ctx)
		return l.readOnce(ctx, c, next)
	})
}

func (l *Load) readOnce(ctx context.Context, c *client.Client, next map[int32]int64) error {
	route, err := c.Route(ctx, Topic)
	if err != nil {
		return err
	}
	queues, err := client.ReadQueues(route, Topic)
	if err != nil {
		return err
	}
	for _, q := range queues {
		asked := call{queue: q.ID, from: next[q.ID], called: l.history.now()}
		err := readQueue(ctx, c, q, next, func(m *messages.StoredMessage) {
			body, _, _ := strings.Cut(string(m.Body), ".")
			l.mu.Lock()
			defer l.mu.Unlock()
			l.note(l.seen, place{q.ID, int64(m.QueueOffset)}, body)
		})
		if asked.to, asked.returned = next[q.ID], l.history.now(); asked.to > asked.from {
			l.mu.Lock()
			l.history.calls = append(l.history.calls, asked)
			l.mu.Unlock()
		}
		if err != nil {
			return err
		}
		if err := c.Commit(ctx, q, group, next[q.ID]); err != nil {
			return err
		}
		l.mu.Lock()
		l.kept = append(l.kept, commit{time.Now(), q.ID, next[q.ID]})
		l.mu.Unlock()
	}
	return nil
}

// readQueue reads a queue from where next says to its end, and moves that on.
func readQueue(ctx context.Context, c *client.Client, q client.Queue, next map[int32]int64, each func(*messages.StoredMessage)) error {
	for {
		p, err := c.Pull(ctx, q.Address, remoting.PullMessageHeader{
			ConsumerGroup: group, Topic: q.Topic, QueueID: q.ID, QueueOffset: next[q.ID], MaxMsgNums: 32, SysFlag: remoting.PullFlagSubscription,
			Subscription: "*", ExpressionType: "TAG",
		})
		if err != nil || len(p.Messages) == 0 {
			return err
		}
		for i := range p.Messages {
			m := &p.Messages[i]
			each(m)
			next[q.ID] = int64(m.QueueOffset) + 1
		}
	}
}

// group is that of the reader, and of the producers.
const group = "load"

// Kept requires that the reader's group is, at whoever leads now, where it was at a time or further.
func (l *Load) Kept(at time.Time) {
	l.t.Helper()
	l.mu.Lock()
	want := map[int32]int64{}
	for _, k := range l.kept {
		if k.at.Before(at) {
			want[k.queue] = max(want[k.queue], k.offset)
		}
	}
	l.mu.Unlock()
	turn := 0
	reached := func() error {
		c := l.client(turn) // the name server of a node that is cut off knows nobody who leads
		turn++
		defer c.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		route, err := c.Route(ctx, Topic)
		if err != nil {
			return err
		}
		queues, err := client.WriteQueues(route, Topic)
		if err == nil && len(queues) == 0 {
			err = fmt.Errorf("nobody leads by that route")
		}
		for _, q := range queues {
			now, err := c.GroupOffset(ctx, q, group)
			if err != nil {
				return err
			}
			if now < want[q.ID] {
				l.mu.Lock()
				l.wrong = append(l.wrong, fmt.Sprintf("queue %d: the group is at %d, it was at %d", q.ID, now, want[q.ID]))
				l.mu.Unlock()
			}
		}
		return err
	}
	require.Eventually(l.t, func() bool { return reached() == nil }, 30*time.Second, 50*time.Millisecond, "the group's offsets are told")
}

// AwaitAck waits until a send that was made after now is acknowledged, and tells how long that took.
func (l *Load) AwaitAck(since time.Time, within time.Duration) time.Duration {
	l.t.Helper()
	deadline := time.After(within)
	for {
		l.mu.Lock()
		last := l.last
		l.mu.Unlock()
		if last.After(since) {
			return last.Sub(since)
		}
		select {
		case <-l.gapped:
		case <-deadline:
			require.Fail(l.t, "nothing is acknowledged any more")
		}
	}
}

// Check requires that what was acknowledged, and what was seen, is there: all is what a store has at the end.
func (l *Load) Check(all map[place]string) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(l.t, l.wrong, "places whose message has changed")
	require.NoError(l.t, l.history.Linearizable(all))
	for name, known := range map[string]map[place]string{"acknowledged": l.acked, "seen": l.seen} {
		lost := 0
		for p, body := range known {
			if all[p] != body {
				lost++
			}
		}
		require.Zero(l.t, lost, "%s, and lost, of %d", name, len(known))
	}
}

// finds requires that clients that know all name servers, and ask that of a node first, are led to whoever leads: one that is cut off sends
// them on.
func (l *Load) finds(g *Group, first, leader string) {
	l.t.Helper()
	at := slices.IndexFunc(l.nodes, func(n members.Node) bool { return n.ID == first })
	want := l.nodes[slices.IndexFunc(l.nodes, func(n members.Node) bool { return n.ID == leader })].Port(members.PortBroker)
	c := l.client(at)
	defer c.Close()
	g.Until("a client that asks node "+first+" first finds node "+leader, func() bool {
		queues, err := c.QueuesToSend(l.t.Context(), Topic)
		return err == nil && queues[0].Address == want
	})
}
