package consume

import (
	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway/broker"
)

// lock answers 41 with the queues that the client has now.
func (c *Consumers) lock(r *gateway.Request) {
	var body remoting.LockBatch
	if !broker.Body(r, &body) {
		return
	}
	ctx, cancel := c.b.Context()
	defer cancel()
	granted, err := c.b.Locks.Lock(ctx, body.ConsumerGroup, body.ClientID, queuesOf(body.MQSet))
	if err != nil {
		broker.Fail(r, err)
		return
	}
	answer := remoting.LockBatchAnswer{LockOKMQSet: make([]remoting.MessageQueue, len(granted))}
	for i, q := range granted {
		answer.LockOKMQSet[i] = remoting.MessageQueue(q)
	}
	r.OKBody(&answer)
}

// unlock answers 42.
func (c *Consumers) unlock(r *gateway.Request) {
	var body remoting.LockBatch
	if !broker.Body(r, &body) {
		return
	}
	if err := c.b.Locks.Unlock(body.ConsumerGroup, body.ClientID, queuesOf(body.MQSet)); err != nil {
		broker.Fail(r, err)
		return
	}
	r.OK(nil)
}

func queuesOf(wire []remoting.MessageQueue) []messages.MessageQueue {
	queues := make([]messages.MessageQueue, len(wire))
	for i, q := range wire {
		queues[i] = messages.MessageQueue(q)
	}
	return queues
}
