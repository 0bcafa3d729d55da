package client

import (
	"cmp"
	"fmt"
	"slices"

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
