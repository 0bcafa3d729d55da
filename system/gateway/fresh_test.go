package gateway_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/testkit/fixture"
)

const freshQueues = 4

// A topic that the first send makes, a consumer that waits for it: it joins, asks for its offsets and pulls all queues while the
// messages come, so that queues, offsets and held pulls are looked at while they are made. Every message arrives, in its queue's
// order, long before a held pull's time is over.
func TestFreshTopicsReachTheirConsumers(t *testing.T) {
	w := run(t)
	const workers = 8
	rounds := fixture.Number(t, "ACTORMQ_BEAR_TOPICS", 80)
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			for round := worker; round < rounds && !t.Failed(); round += workers {
				w.freshTopic(t, round)
			}
		})
	}
	all.Wait()
}

// freshTopic runs one producer and one consumer of a topic of their own.
func (w *world) freshTopic(t *testing.T, round int) {
	topic, group := fmt.Sprint("fresh", round), fmt.Sprint("g", round)
	const each = 2 // messages a queue
	producer, consumer := w.dial("broker"), w.dial("broker")
	defer func() { _, _ = producer.sock.Close(), consumer.sock.Close() }()
	made := make(chan struct{})
	var sender sync.WaitGroup
	defer sender.Wait()
	sender.Go(func() {
		for i := range each * freshQueues {
			queue := (i + round) % freshQueues
			r := sending(topic, strconv.Itoa(i/freshQueues), "e", strconv.Itoa(queue))
			r.Opaque = int32(i + 1)
			b, _ := r.Append(nil)
			if _, err := producer.sock.Write(b); err != nil {
				t.Error(err)
				return
			}
			a, err := remoting.ReadCommand(producer.in, remoting.Limits{})
			if err != nil || a.Code != remoting.ResponseSuccess {
				t.Errorf("%s: send %d: %v %v", topic, i, a, err)
				return
			}
			if i == 0 {
				close(made)
			}
		}
	})
	c := &freshConsumer{t: t, client: consumer, topic: topic, group: group, left: each * freshQueues}
	if round%2 == 0 { // the topic may be there already when the consumer joins, or not yet
		select {
		case <-made:
		case <-time.After(patience):
			t.Errorf("%s: the first send was not answered", topic)
		}
	}
	c.consume()
}

// freshConsumer is a client that pulls all queues of a topic at once.
type freshConsumer struct {
	*client

	t            *testing.T
	topic, group string
	next         [freshQueues]int
	left         int
}

// consume ends once everything has come, or with the test.
func (c *freshConsumer) consume() {
	c.write(beating("id", c.group, c.topic, 1), -1)
	for q := range freshQueues {
		c.write(req(remoting.RequestQueryConsumerOffset, "consumerGroup", c.group, "topic", c.topic, "queueId", strconv.Itoa(q)), q)
	}
	for c.left > 0 && !c.t.Failed() {
		if err := c.sock.SetReadDeadline(time.Now().Add(patience)); err != nil {
			c.t.Error(err)
			return
		}
		a, err := remoting.ReadCommand(c.in, remoting.Limits{})
		if err != nil {
			c.t.Errorf("%s: %d messages are missing, next offsets %v: %v", c.topic, c.left, c.next, err)
			return
		}
		c.take(a)
	}
}

// write sends a request about a queue; the answer's opaque number tells which.
func (c *freshConsumer) write(r *remoting.Command, queue int) {
	c.last += freshQueues + 1
	r.Opaque = c.last + int32(queue) + 1
	b, err := r.Append(nil)
	if err == nil {
		_, err = c.sock.Write(b)
	}
	if err != nil {
		c.t.Error(err)
	}
}

func (c *freshConsumer) pull(queue int) {
	c.write(pulling(c.topic, c.next[queue], "consumerGroup", c.group, "queueId", strconv.Itoa(queue), "sysFlag", "2",
		"subVersion", "1", "suspendTimeoutMillis", "600000"), queue)
}

// take handles whatever comes from the node.
func (c *freshConsumer) take(a *remoting.Command) {
	queue := int(a.Opaque-1) % (freshQueues + 1)
	offset, isOffset := a.ExtFields.Get("offset")
	switch {
	case !a.IsResponse(): // the group has changed
	case isOffset:
		if offset != "0" {
			c.t.Errorf("%s/%d: a new group begins at %s", c.topic, queue, offset)
		}
		c.pull(queue)
	case a.Code == remoting.ResponseTopicNotExist: // yet
		c.pull(queue)
	case a.Code == remoting.ResponseSuccess && len(a.Body) > 0:
		c.records(queue, a)
		c.pull(queue)
	case a.Code != remoting.ResponseSuccess:
		c.t.Errorf("%s/%d at %d: %v", c.topic, queue, c.next[queue], a)
	}
}

func (c *freshConsumer) records(queue int, a *remoting.Command) {
	list, err := record.DecodeAll(a.Body)
	if err != nil {
		c.t.Error(err)
		return
	}
	for _, m := range list {
		if int(m.QueueID) != queue || m.QueueOffset != messages.QueueOffset(c.next[queue]) || string(m.Body) != strconv.Itoa(c.next[queue]) {
			c.t.Errorf("%s/%d at %d: queue %d, offset %d: %s", c.topic, queue, c.next[queue], m.QueueID, m.QueueOffset, m.Body)
		}
		c.next[queue]++
		c.left--
	}
}
