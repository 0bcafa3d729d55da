package bridge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/client"
)

const (
	// producerGroup is the group in whose name messages are sent.
	producerGroup = "ACTORMQ_BRIDGE"
	// routeAge is how long a route is used, as by RocketMQ's clients.
	routeAge = 30 * time.Second
)

// leftOut are properties that would mean something else at the target, or that it sets itself.
var leftOut = []string{
	messages.PropertyDelay, messages.PropertyTransactionMessage, messages.PropertyPreparedQueueOffset, messages.PropertyWait,
	messages.PropertyCluster, messages.PropertyMultiDispatch, messages.PropertyMultiQueueOffset,
}

// keptFlags are the bits of a message's flag that say how to read its body.
const keptFlags = messages.SysFlagCompressed | messages.SysFlagMultiTags | messages.SysFlagCompressionMask

type route struct {
	queues []client.Queue
	asked  time.Time
}

// lane is what is sent one after the other: messages of one queue.
type lane struct {
	queues   []client.Queue // of the target
	requests []*messages.DispatchRequest
}

// handle copies a batch. What is at the target is remembered until the whole batch is, so that it is not sent again.
func (b *Bridge) handle(ctx context.Context, batch *system.Batch) error {
	var c *client.Client
	select {
	case c = <-b.token:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { b.token <- c }()
	lanes, err := b.lanes(ctx, c, batch)
	err = errors.Join(err, b.sendLanes(ctx, c, batch, lanes))
	if err != nil {
		return fmt.Errorf("copy to %s: %w", b.cfg.Target, err)
	}
	clear(b.sent)
	return nil
}

// lanes asks for the routes of a batch and lays its messages out. An error is of topics whose messages are not in the lanes.
func (b *Bridge) lanes(ctx context.Context, c *client.Client, batch *system.Batch) ([]*lane, error) {
	var failed []error
	var all []*lane
	byQueue := map[messages.QueueKey]*lane{}
	bad := map[string]bool{}
	for i := range batch.Requests {
		r := &batch.Requests[i]
		if bad[r.Queue.Topic] || b.sent[r.PhysicalOffset] || !b.wants(r.Queue.Topic) {
			continue
		}
		l := byQueue[r.Queue]
		if l == nil {
			queues, err := b.route(ctx, c, r.Queue.Topic)
			if client.Unreached(err) || ctx.Err() != nil {
				return nil, err
			}
			if err != nil {
				failed, bad[r.Queue.Topic] = append(failed, err), true
				continue
			}
			l = &lane{queues: queues}
			byQueue[r.Queue], all = l, append(all, l)
		}
		l.requests = append(l.requests, r)
	}
	return all, errors.Join(failed...)
}

func (b *Bridge) route(ctx context.Context, c *client.Client, topic string) ([]client.Queue, error) {
	if known, ok := b.routes[topic]; ok && time.Since(known.asked) < routeAge {
		return known.queues, nil
	}
	queues, err := c.QueuesToSend(ctx, topic)
	if err == nil {
		b.routes[topic] = route{queues: queues, asked: time.Now()}
	}
	return queues, err
}

// sendLanes sends all lanes, some at once. It gives up when the target is not reached; any other error ends its lane alone.
func (b *Bridge) sendLanes(ctx context.Context, c *client.Client, batch *system.Batch, lanes []*lane) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	var mu sync.Mutex // of failed and b.sent
	var failed []error
	work := make(chan *lane)
	var workers sync.WaitGroup
	for range min(b.cfg.InFlight, len(lanes)) {
		workers.Go(func() {
			for l := range work {
				done := 0
				err := actors.Protect("bridge", func() (err error) {
					done, err = b.sendLane(ctx, c, batch, l)
					return err
				})
				mu.Lock()
				for _, r := range l.requests[:done] {
					b.sent[r.PhysicalOffset] = true
				}
				if err != nil && ctx.Err() == nil {
					failed = append(failed, err)
				}
				mu.Unlock()
				if client.Unreached(err) {
					giveUp(err)
				}
			}
		})
	}
	for _, l := range lanes {
		work <- l
	}
	close(work)
	workers.Wait()
	if len(failed) > 0 {
		clear(b.routes) // the queues may have moved
	}
	if len(failed) == 0 && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(failed...)
}

// sendLane sends the messages of a lane, up to the first that fails; it returns how many are done.
func (b *Bridge) sendLane(ctx context.Context, c *client.Client, batch *system.Batch, l *lane) (int, error) {
	for i, r := range l.requests {
		if ctx.Err() != nil {
			return i, context.Cause(ctx)
		}
		m, err := batch.Message(r)
		if errors.Is(err, system.ErrNoMessage) { // retention was quicker, or it stands for a lost one
			continue
		}
		if err == nil {
			err = b.send(ctx, c, l, &m)
		}
		if client.HasCode(err, remoting.ResponseMessageIllegal) && strings.Contains(err.Error(), messages.RemarkDuplicate) {
			continue // the target has package dedupe, and has it from before a crash
		}
		if b.cfg.SkipIllegal && client.HasCode(err, remoting.ResponseMessageIllegal) {
			b.illegal.Add(1)
			log := batch.Store().Options().Logger
			log.Error().Err(err).Str("extension", b.Name()).Int64("offset", int64(r.PhysicalOffset)).
				Str("topic", r.Queue.Topic).Msg("the target refuses a message: it is left out")
			continue
		}
		if err != nil {
			return i, fmt.Errorf("message at %d of topic %s: %w", r.PhysicalOffset, r.Queue.Topic, err)
		}
	}
	return len(l.requests), nil
}

func (b *Bridge) send(ctx context.Context, c *client.Client, l *lane, m *messages.StoredMessage) error {
	path, wanted := b.path(m)
	if !wanted {
		b.looped.Add(1)
		return nil
	}
	to, err := b.pick(l.queues, m.QueueID)
	if err != nil {
		return err
	}
	sent, err := c.Send(ctx, to.Address, remoting.SendMessageHeader{
		ProducerGroup: producerGroup, Topic: m.Topic, DefaultTopic: messages.TopicAutoCreateKey,
		DefaultTopicQueueNums: client.NewTopicQueues, QueueID: to.ID, SysFlag: m.SysFlag & keptFlags,
		BornTimestampMs: m.BornTimestampMs, Flag: m.Flag, ReconsumeTimes: m.ReconsumeTimes, BrokerName: to.Broker,
		Properties: string(m.Properties.Without(leftOut...).With(PropertyOrigin, path)), MaxReconsumeTimes: remoting.AbsentTimes,
	}, m.Body)
	if err != nil {
		return err
	}
	b.copied.Add(1)
	if sent.Code != remoting.ResponseSuccess {
		b.unconfirmed.Add(1)
	}
	return nil
}

// pick is the queue of the target for a queue of ours: always the same one, as long as the target has the same queues.
func (b *Bridge) pick(queues []client.Queue, id int32) (client.Queue, error) {
	if !b.cfg.KeepQueues {
		return queues[uint32(id)%uint32(len(queues))], nil
	}
	for _, q := range queues {
		if q.ID == id {
			return q, nil
		}
	}
	return client.Queue{}, fmt.Errorf("%w: %d of topic %s", ErrNoQueue, id, queues[0].Topic)
}
