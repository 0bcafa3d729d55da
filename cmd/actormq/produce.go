package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/actormq/actormq/cmd/actormq/internal/tools"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/client"
)

const (
	// producerGroup is the group in whose name messages are sent, as RocketMQ's tools do.
	producerGroup = "TOOLS_PRODUCER"
	// maxLineBytes bounds a line of standard input: what a frame holds, less some room for the header.
	maxLineBytes = remoting.DefaultFrameBytes - 1<<16
)

// statusFailed is the status of a message that was not sent; the others are those of RocketMQ's clients.
const statusFailed = "SEND_FAILED"

var sendStatus = map[int]string{
	remoting.ResponseSuccess:           "SEND_OK",
	remoting.ResponseFlushDiskTimeout:  "FLUSH_DISK_TIMEOUT",
	remoting.ResponseFlushSlaveTimeout: "FLUSH_SLAVE_TIMEOUT",
	remoting.ResponseSlaveNotAvailable: "SLAVE_NOT_AVAILABLE",
}

type produceFlags struct {
	tools.ConnectFlags

	topic, tag, key string
	queue           int32
	properties      []string
	json            bool
}

func newProduceCommand() *cobra.Command {
	var f produceFlags
	c := &cobra.Command{
		Use:   "produce --topic TOPIC [flags] [MESSAGE...]",
		Short: "Send messages to a topic",
		Long: `Sends each argument, or each line of standard input when there are none, as a message, one after the other, in turn to
the topic's queues. A topic that does not exist is made by the first message, if the brokers allow that. Empty lines are
left out.

For each message a line is printed: its status, its offset message id, its queue and its offset there. SEND_OK means that
the message is stored; FLUSH_DISK_TIMEOUT, FLUSH_SLAVE_TIMEOUT and SLAVE_NOT_AVAILABLE that it is stored, but that not all
is confirmed which the broker waits for; SEND_FAILED that it was not sent.

A message that a broker does not take, for a reason that another queue or another attempt may not have, is sent once more:
to a queue of another broker if there is one. When there was no answer the message may then be stored twice. When no broker
takes messages for the topic, as between a leader that has failed and the next one, the name servers are asked again until --timeout is over.

The exit status is 1 when a message was not sent.`,
		Example: `  actormq produce --topic orders "two coffees" "one tea"
  actormq produce --topic orders --tag new --key 4711 --property shop=7 "two coffees"
  actormq produce --topic orders --queue 0 --json < orders.txt
  actormq produce --topic orders --property DELAY=3 "in ten seconds"    # a delay level, from 1: messageDelayLevel
  actormq produce --namesrv 10.0.0.5:9876 --topic orders -- "-1 coffee"`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return runProduce(cmd, args, f) },
	}
	f.Bind(c, 3*time.Second)
	c.Flags().StringVar(&f.topic, "topic", "", "topic to send to")
	c.Flags().Int32Var(&f.queue, "queue", -1, "send to the queue with this number only")
	c.Flags().StringVar(&f.tag, "tag", "", "tag of the messages")
	c.Flags().StringVar(&f.key, "key", "", "key of the messages, by which they can be found; several with spaces between them")
	c.Flags().StringArrayVar(&f.properties, "property", nil, "name=value, a property of the messages; any number of times")
	c.Flags().BoolVar(&f.json, "json", false, "print each line as a JSON object")
	mustRequire(c, "topic")
	return c
}

// mustRequire marks a flag as required; there is no such flag only by a slip in this program.
func mustRequire(c *cobra.Command, flag string) {
	if err := c.MarkFlagRequired(flag); err != nil {
		panic("BUG: " + err.Error())
	}
}

func runProduce(cmd *cobra.Command, args []string, f produceFlags) error {
	opt, err := f.Options()
	if err != nil {
		return err
	}
	properties, err := f.wireProperties()
	if err != nil {
		return err
	}
	c := client.New(opt)
	defer c.Close()
	p := &producer{client: c, flags: f, patience: opt.Timeout, properties: properties, out: cmd.OutOrStdout()}
	if p.queues, err = p.findQueues(cmd.Context()); err != nil {
		return err
	}
	p.turn = rand.IntN(len(p.queues)) // else those who send one message at a time would all use the first queue
	if len(args) > 0 {
		err = p.sendAll(cmd.Context(), args)
	} else {
		err = p.sendLines(cmd.Context(), cmd.InOrStdin())
	}
	if err == nil && p.failed > 0 {
		err = fmt.Errorf("%d of %d messages were not sent", p.failed, p.count)
	}
	return err
}

// wireProperties are the properties of all messages.
func (f produceFlags) wireProperties() (messages.Properties, error) {
	pairs := map[string]string{}
	for _, pair := range f.properties {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || value == "" {
			return "", fmt.Errorf("--property %s: want name=value", pair)
		}
		pairs[name] = value
	}
	if f.tag != "" {
		pairs[messages.PropertyTags] = f.tag
	}
	if f.key != "" {
		pairs[messages.PropertyKeys] = f.key
	}
	var bad []error
	for name, value := range pairs {
		bad = append(bad, messages.CheckProperty(name, value))
	}
	return messages.PropertiesOf(pairs), errors.Join(bad...)
}

// producer sends messages one by one.
type producer struct {
	client     *client.Client
	flags      produceFlags
	patience   time.Duration // how long there may be no queue to send to
	properties messages.Properties
	out        io.Writer

	queues        []client.Queue // empty: to be asked for
	turn          int            // of the queue that is next
	count, failed int
}

// askAgain is how long to wait before the name servers, which tell nobody that a route has changed, are asked again.
const askAgain = 100 * time.Millisecond

// findQueues asks where to send to. That nobody takes messages may be so for a moment only: a leader has failed, and the next one is not
// there yet.
func (p *producer) findQueues(ctx context.Context) ([]client.Queue, error) {
	for deadline := time.Now().Add(p.patience); ; {
		queues, err := p.client.QueuesToSend(ctx, p.flags.topic)
		if err == nil {
			return onlyQueue(queues, p.flags.queue)
		}
		if !errors.Is(err, client.ErrNoQueue) || !time.Now().Before(deadline) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(askAgain):
		}
	}
}

// onlyQueue leaves the queues with that number, one of each broker; of all queues (which are sorted) when it is negative.
func onlyQueue(queues []client.Queue, id int32) ([]client.Queue, error) {
	if id < 0 {
		return queues, nil
	}
	last := int32(0)
	for _, q := range queues {
		last = max(last, q.ID)
	}
	if id > last {
		return nil, fmt.Errorf("topic %s has no queue %d, only 0 to %d", queues[0].Topic, id, last)
	}
	return slices.DeleteFunc(queues, func(q client.Queue) bool { return q.ID != id }), nil
}

func (p *producer) sendAll(ctx context.Context, bodies []string) error {
	if slices.Contains(bodies, "") {
		return errors.New("an empty message can't be sent: RocketMQ's clients do not expect one")
	}
	for _, body := range bodies {
		if err := p.send(ctx, []byte(body)); err != nil {
			return err
		}
	}
	return nil
}

func (p *producer) sendLines(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLineBytes)
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		if err := p.send(ctx, lines.Bytes()); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("standard input, after %d messages: %w", p.count, err)
	}
	return nil
}

// send sends a message and prints what came of it. The error is one that ends the command.
func (p *producer) send(ctx context.Context, body []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.count++
	line := sentLine{Status: statusFailed}
	q, sent, err := p.trySend(ctx, body)
	if err != nil {
		p.failed++
		p.queues = nil // they may have changed
		line.Error = err.Error()
	} else {
		line = sentLine{Status: sendStatus[sent.Code], ID: sent.MsgID, Broker: q.Broker, Queue: &sent.QueueID, Offset: &sent.QueueOffset}
	}
	if p.flags.json {
		return tools.WriteJSON(p.out, line)
	}
	_, err = fmt.Fprintln(p.out, line)
	return err
}

// trySend sends a message, and once more to another queue when that may help.
func (p *producer) trySend(ctx context.Context, body []byte) (client.Queue, client.Sent, error) {
	if len(p.queues) == 0 {
		var err error
		if p.queues, err = p.findQueues(ctx); err != nil {
			return client.Queue{}, client.Sent{}, err
		}
	}
	q := p.pick("")
	sent, err := p.client.Send(ctx, q.Address, p.header(q), body)
	if sendRetryable(err) && ctx.Err() == nil {
		q = p.pick(q.Broker)
		sent, err = p.client.Send(ctx, q.Address, p.header(q), body)
	}
	return q, sent, err
}

// sendRetryable tells what another queue may take: the codes are those of RocketMQ's clients (spec/remoting.md §8.4), but for
// two that no broker of RocketMQ 4.x sends.
func sendRetryable(err error) bool {
	return client.Unreached(err) || client.HasCode(err, remoting.ResponseSystemError, remoting.ResponseServiceNotAvailable,
		remoting.ResponseNoPermission, remoting.ResponseTopicNotExist)
}

// pick takes the queue whose turn it is, of another broker than the given one if there is any.
func (p *producer) pick(not string) client.Queue {
	for range p.queues {
		if q := p.take(); q.Broker != not {
			return q
		}
	}
	return p.take()
}

func (p *producer) take() client.Queue {
	q := p.queues[p.turn%len(p.queues)]
	p.turn++
	return q
}

func (p *producer) header(q client.Queue) remoting.SendMessageHeader {
	return remoting.SendMessageHeader{
		ProducerGroup: producerGroup, Topic: q.Topic, DefaultTopic: messages.TopicAutoCreateKey,
		DefaultTopicQueueNums: client.NewTopicQueues, QueueID: q.ID, BornTimestampMs: time.Now().UnixMilli(),
		Properties: string(p.properties), MaxReconsumeTimes: remoting.AbsentTimes, BrokerName: q.Broker,
	}
}

// sentLine is what is printed of a message: all but Error, or Status and Error.
type sentLine struct {
	Status string `json:"status"`
	ID     string `json:"msgId,omitempty"`
	Broker string `json:"broker,omitempty"`
	Queue  *int32 `json:"queue,omitempty"`
	Offset *int64 `json:"offset,omitempty"`
	Error  string `json:"error,omitempty"`
}

// String is the line without a line end.
func (l sentLine) String() string {
	if l.Queue == nil || l.Offset == nil {
		return fmt.Sprintf("%s error=%q", l.Status, l.Error)
	}
	return fmt.Sprintf("%s id=%s broker=%s queue=%d offset=%d", l.Status, tools.Shown(l.ID), tools.Shown(l.Broker), *l.Queue, *l.Offset)
}
