package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/client"
)

// Topics of what is delivered later.
const (
	delayTopic       = "later"
	transactionTopic = "maybe"
)

// fates are what becomes of messages, by topic: a delay's level, or how a transaction ends.
var fates = map[string][]string{delayTopic: {"2", "3"}, transactionTopic: {"commit", "rollback"}}

// delays are those of the levels: longer than it takes to have another leader.
var delays = map[string]time.Duration{"2": 5 * time.Second, "3": 10 * time.Second}

// Promises sends, beside a load, what a group has to deliver later, whoever leads then: messages with a delay, and half messages. What becomes
// of those their producer says only when it is asked, and not before Next has been called: each is open while a leader goes and
// another one comes.
type Promises struct {
	l     *Load
	ctx   context.Context // of those who send
	stop  context.CancelFunc
	round atomic.Int64

	mu    sync.Mutex
	acked map[string]string // body → topic
	asked int
}

// MakePromises begins to send, until Kept.
func (l *Load) MakePromises() *Promises {
	p := &Promises{l: l, acked: map[string]string{}}
	p.ctx, p.stop = context.WithCancel(l.ctx)
	l.running.Go(func() { p.send(delayTopic) })
	l.running.Go(func() { p.send(transactionTopic) })
	l.running.Go(p.answer)
	return p
}

// Next has the transactions decided that have been open until now.
func (p *Promises) Next() { p.round.Add(1) }

// send sends 50 messages a second.
func (p *Promises) send(topic string) {
	n := 0
	p.l.again(p.ctx, 0, func(c *client.Client) error {
		pause(p.ctx)
		n++
		fate := fates[topic][n%2]
		body := fmt.Sprintf("%s/%d/%s/%d", topic, p.round.Load(), fate, n)
		properties := messages.PropertyDelay + "\x01" + fate
		if topic == transactionTopic {
			properties = "TRAN_MSG\x01true\x02PGROUP\x01" + group + "\x02UNIQ_KEY\x01" + body
		}
		if _, err := store(p.ctx, c, topic, properties, body); err != nil {
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.acked[body] = topic
		return nil
	})
}

// answer is the producer: it says what has become of transactions when a leader asks.
func (p *Promises) answer() {
	p.l.again(p.l.ctx, 0, func(c *client.Client) error {
		pause(p.l.ctx)
		queues, err := c.QueuesToSend(p.l.ctx, transactionTopic)
		if err != nil {
			return err
		}
		return p.serve(queues[0].Address)
	})
}

// serve is connected to a broker until it is silent.
func (p *Promises) serve(broker string) error {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(p.l.ctx, "tcp", broker)
	if err != nil {
		return err
	}
	defer context.AfterFunc(p.l.ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	beat := remoting.NewRequest(remoting.RequestHeartbeat, nil)
	beat.Body = []byte(`{"clientID":"load","producerDataSet":[{"groupName":"` + group + `"}]}`)
	in, say := bufio.NewReader(conn), func(c *remoting.Command) error {
		frame, err := c.Append(nil)
		if err == nil {
			_, err = conn.Write(frame)
		}
		return err
	}
	for err = say(beat); err == nil; {
		if err = conn.SetReadDeadline(time.Now().Add(3 * time.Second)); err != nil { // halves are open all the time, so it asks each second
			break
		}
		var c *remoting.Command
		if c, err = remoting.ReadCommand(in, remoting.Limits{}); err == nil && c.Code == remoting.RequestCheckTransactionState && !c.IsResponse() {
			err = p.decide(c, say)
		}
	}
	return err
}

// decide answers a question, once the transaction was open for long enough.
func (p *Promises) decide(asked *remoting.Command, say func(*remoting.Command) error) error {
	var h remoting.CheckTransactionHeader
	if err := remoting.FromExt(asked.ExtFields, &h); err != nil {
		return err
	}
	part := strings.Split(h.TransactionID, "/")
	if len(part) != 4 {
		return errors.New("it asks for a transaction that nobody has begun: " + h.TransactionID)
	}
	if of, err := strconv.ParseInt(part[1], 10, 64); err != nil || of >= p.round.Load() {
		return err
	}
	end := messages.SysFlagTransactionCommit
	if part[2] == "rollback" {
		end = messages.SysFlagTransactionRollback
	}
	p.mu.Lock()
	p.asked++
	p.mu.Unlock()
	request := remoting.NewRequest(remoting.RequestEndTransaction, &remoting.EndTransactionHeader{
		ProducerGroup: group, TranStateTableOffset: h.TranStateTableOffset, CommitLogOffset: h.CommitLogOffset, CommitOrRollback: end,
		FromTransactionCheck: true, MsgID: h.MsgID, TransactionID: h.TransactionID,
	})
	request.Flag |= remoting.FlagOneWay
	return say(request)
}

// Kept waits until everything is delivered that was to be, and requires that nothing is that was not, or too early.
func (p *Promises) Kept() {
	t := p.l.t
	t.Helper()
	p.stop()
	p.round.Store(math.MaxInt64)
	came, next := map[string]int{}, map[string]map[int32]int64{delayTopic: {}, transactionTopic: {}}
	turn := 0
	var missing []string
	look := func() bool {
		c := p.l.client(turn)
		turn++
		defer c.Close()
		for topic, at := range next {
			queues, err := c.QueuesToSend(t.Context(), topic)
			for _, q := range queues {
				if err == nil {
					err = readQueue(t.Context(), c, q, at, func(m *messages.StoredMessage) { p.came(m, came) })
				}
			}
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		missing = nil
		for body, topic := range p.acked {
			if came[body] == 0 && (topic == delayTopic || strings.Contains(body, "/commit/")) {
				missing = append(missing, body)
			}
		}
		return len(missing) == 0
	}
	deadline := time.Now().Add(2 * time.Minute)
	for !look() {
		require.True(t, time.Now().Before(deadline), "%d are not delivered: %.1000v", len(missing), missing)
		pause(t.Context())
	}
	twice := 0
	for body, n := range came {
		require.False(t, strings.HasPrefix(body, transactionTopic) && strings.Contains(body, "/rollback/"), "rolled back: %s", body)
		if n > 1 {
			twice++
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t.Logf("%d delayed messages and transactions, %d of them delivered more than once; %d answers about transactions", len(p.acked), twice, p.asked)
}

// came notes a message that is delivered; one with a delay is not early, but for a level's tick.
func (p *Promises) came(m *messages.StoredMessage, came map[string]int) {
	came[string(m.Body)]++
	if part := strings.Split(string(m.Body), "/"); m.Topic == delayTopic {
		after := time.Duration(m.StoreTimestampMs-m.BornTimestampMs) * time.Millisecond
		require.Greater(p.l.t, after, delays[part[2]]-time.Second, "%s", m.Body)
	}
}
