package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
)

// Queue is a queue of a topic, and where it is reached.
type Queue struct {
	Broker  string
	Address string // host:port
	Topic   string
	ID      int32
}

// MaxQueues bounds the queues of a topic that this package lists.
const MaxQueues = 16 << 10

// The bits of QueueData.Perm (spec/remoting.md §15.3).
const (
	permWrite = 2
	permRead  = 4
)

// masterID is the broker id of a master.
const masterID = 0

// WriteQueues lists the queues that a producer may send to, sorted by broker and id: those of the masters. The error is
// ErrLimit.
func WriteQueues(route *remoting.TopicRouteData, topic string) ([]Queue, error) {
	return queues(route, topic, func(q *remoting.QueueData, b *remoting.BrokerData) (string, int32) {
		if q.Perm&permWrite == 0 {
			return "", 0
		}
		return b.BrokerAddrs[masterID], q.WriteQueueNums
	})
}

// ReadQueues lists the queues that a consumer may read, sorted by broker and id: those of the masters, and of a slave where
// the master is gone. The error is ErrLimit.
func ReadQueues(route *remoting.TopicRouteData, topic string) ([]Queue, error) {
	return queues(route, topic, func(q *remoting.QueueData, b *remoting.BrokerData) (string, int32) {
		if q.Perm&permRead == 0 {
			return "", 0
		}
		return firstAddress(b.BrokerAddrs), q.ReadQueueNums
	})
}

// firstAddress is the one with the least id.
func firstAddress(addrs map[int64]string) string {
	address, least := "", int64(-1)
	for id, a := range addrs {
		if least < 0 || id < least {
			address, least = a, id
		}
	}
	return address
}

// NewTopicQueues is how many queues a topic gets that is made by the first message to it: the default of RocketMQ's clients.
const NewTopicQueues = 4

// ErrNoQueue: nobody takes messages for the topic.
var ErrNoQueue = errors.New("no queue to send to")

// QueuesToSend asks where messages of a topic may be sent to, sorted by broker and id. A topic that does not exist is made by the
// broker with the queues that are counted here: as many as the template has, but not more than NewTopicQueues
// (spec/remoting.md §5.2).
func (c *Client) QueuesToSend(ctx context.Context, topic string) ([]Queue, error) {
	route, err := c.Route(ctx, topic)
	if HasCode(err, remoting.ResponseTopicNotExist) {
		route, err = c.Route(ctx, messages.TopicAutoCreateKey)
		if HasCode(err, remoting.ResponseTopicNotExist) {
			return nil, fmt.Errorf("%w: topic %s does not exist, and no broker makes topics for messages", ErrNoQueue, topic)
		}
		if err == nil {
			clip(route)
		}
	}
	if err != nil {
		return nil, err
	}
	queues, err := WriteQueues(route, topic)
	if err == nil && len(queues) == 0 {
		err = fmt.Errorf("%w: topic %s has none that can be written", ErrNoQueue, topic)
	}
	return queues, err
}

func clip(route *remoting.TopicRouteData) {
	for i := range route.QueueDatas {
		q := &route.QueueDatas[i]
		q.WriteQueueNums = min(q.ReadQueueNums, NewTopicQueues)
	}
}

// queues lists what pick finds: an address, and the number of queues there.
func queues(route *remoting.TopicRouteData, topic string, pick func(*remoting.QueueData, *remoting.BrokerData) (string, int32)) ([]Queue, error) {
	brokers := map[string]*remoting.BrokerData{}
	for i := range route.BrokerDatas {
		brokers[route.BrokerDatas[i].BrokerName] = &route.BrokerDatas[i]
	}
	var all []Queue
	for i := range route.QueueDatas {
		q := &route.QueueDatas[i]
		b := brokers[q.BrokerName]
		if b == nil {
			continue
		}
		address, n := pick(q, b)
		if address == "" {
			continue
		}
		if len(all)+int(max(n, 0)) > MaxQueues {
			return nil, fmt.Errorf("%w: topic %s has more than %d queues", ErrLimit, topic, MaxQueues)
		}
		for id := range n {
			all = append(all, Queue{Broker: q.BrokerName, Address: address, Topic: topic, ID: id})
		}
	}
	slices.SortFunc(all, func(a, b Queue) int { return cmp.Or(cmp.Compare(a.Broker, b.Broker), cmp.Compare(a.ID, b.ID)) })
	return slices.Compact(all), nil
}
