package upgrade

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/client"
)

// poll is how often routes are asked for: pollNameServerInterval of RocketMQ's clients.
const poll = 100 * time.Millisecond

// pace is between two sends of a sender.
const pace = 2 * time.Millisecond

// place is where a message stands.
type place struct {
	broker string
	queue  int32
	at     int64
}

// load is senders and what they were told.
type load struct {
	c       *cluster
	client  *client.Client
	route   atomic.Pointer[[]client.Queue]
	stop    context.CancelFunc
	running sync.WaitGroup
	told    chan struct{} // after each acknowledged send

	mu      sync.Mutex
	acked   map[place]string
	retried int
	failed  []error
}

// send starts so many senders.
func (c *cluster) send(senders int) *load {
	l := &load{c: c, client: client.New(client.Options{NameServers: c.nameServers()}), acked: map[place]string{}, told: make(chan struct{}, 1)}
	var ctx context.Context
	ctx, l.stop = context.WithCancel(c.t.Context())
	l.ask(ctx)
	l.running.Go(func() {
		for ctx.Err() == nil {
			rest(ctx, poll)
			l.ask(ctx)
		}
	})
	for i := range senders {
		l.running.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				l.sendOne(i+n, fmt.Sprintf("%d/%d", i, n))
				rest(ctx, pace)
			}
		})
	}
	return l
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// ask takes over the route, if there is one.
func (l *load) ask(ctx context.Context) {
	route, err := l.client.Route(ctx, topic)
	if err != nil {
		return
	}
	if queues, err := client.WriteQueues(route, topic); err == nil && len(queues) > 0 {
		l.route.Store(&queues)
	}
}

// sendOne sends as RocketMQ's clients do: on a failure, twice again at another broker than the one before (spec/remoting.md §8).
func (l *load) sendOne(turn int, body string) {
	const tries = 3
	var err error
	last := ""
	for try := range tries {
		queues := *l.route.Load()
		q := queues[turn%len(queues)]
		for i := range queues {
			if o := queues[(turn+i)%len(queues)]; o.Broker != last {
				q = o
				break
			}
		}
		var sent client.Sent
		sent, err = l.client.Send(context.Background(), q.Address, remoting.SendMessageHeader{
			ProducerGroup: "load", Topic: topic, DefaultTopic: "TBW102", DefaultTopicQueueNums: 4, QueueID: q.ID,
			BornTimestampMs: time.Now().UnixMilli(), MaxReconsumeTimes: remoting.AbsentTimes,
		}, []byte(body))
		if err == nil && sent.Code == remoting.ResponseSuccess {
			l.mu.Lock()
			l.acked[place{q.Broker, sent.QueueID, sent.QueueOffset}] = body
			l.retried += try
			l.mu.Unlock()
			select {
			case l.told <- struct{}{}:
			default:
			}
			return
		}
		if err == nil {
			err = fmt.Errorf("stored, but %s", remoting.ResponseName(sent.Code))
		}
		last = q.Broker
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = append(l.failed, fmt.Errorf("%s: %w", body, err))
}

// goesOn waits until so many more sends are acknowledged.
func (l *load) goesOn(more int) {
	l.c.t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.acked)
	}
	until, late := count()+more, time.After(time.Minute)
	for count() < until {
		select {
		case <-l.told:
		case <-late:
			require.FailNow(l.c.t, "sends do not go on")
		}
	}
}

// end stops the senders and judges what the brokers have.
func (l *load) end() {
	t := l.c.t
	t.Helper()
	l.stop()
	l.running.Wait()
	defer l.client.Close()
	require.Empty(t, l.failed, "sends that retries do not cover")
	route, err := l.client.Route(t.Context(), topic)
	require.NoError(t, err)
	queues, err := client.ReadQueues(route, topic)
	require.NoError(t, err)
	there := 0
	for _, q := range queues {
		last := map[string]int{}
		l.each(q, func(at int64, body string) {
			there++
			if acked, known := l.acked[place{q.Broker, q.ID, at}]; known {
				require.Equal(t, acked, body, "%v at %d", q, at)
				delete(l.acked, place{q.Broker, q.ID, at})
			}
			sender, number, _ := strings.Cut(body, "/")
			n, err := strconv.Atoi(number)
			require.NoError(t, err)
			require.GreaterOrEqual(t, n, last[sender], "%v at %d: the order of sender %s", q, at, sender)
			last[sender] = n
		})
	}
	require.Empty(t, l.acked, "acknowledged, and lost")
	t.Logf("%d messages, %d retries", there, l.retried)
}

// each reads a queue.
func (l *load) each(q client.Queue, do func(at int64, body string)) {
	t := l.c.t
	t.Helper()
	end, err := l.client.MaxOffset(t.Context(), q)
	require.NoError(t, err)
	for at := int64(0); at < end; {
		p, err := l.client.Pull(t.Context(), q.Address, remoting.PullMessageHeader{
			ConsumerGroup: "load", Topic: topic, QueueID: q.ID, QueueOffset: at, MaxMsgNums: 32, SysFlag: remoting.PullFlagSubscription,
			Subscription: "*", ExpressionType: "TAG",
		})
		require.NoError(t, err)
		require.NotEmpty(t, p.Messages, "%v at %d", q, at)
		for _, m := range p.Messages {
			do(int64(m.QueueOffset), string(m.Body))
			at = int64(m.QueueOffset) + 1
		}
	}
}
