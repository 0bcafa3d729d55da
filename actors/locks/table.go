package locks

import (
	"time"

	"github.com/actormq/actormq/messages"
)

// lock is who may consume a queue, and when it said so last.
type lock struct {
	client  string
	renewed time.Time
}

// table is the keeper's state: pure decisions, no clock, no actor.
type table struct {
	groups map[string]map[messages.MessageQueue]lock
	n      int
	limit  int
	expiry time.Duration
}

// take gives the client the queues that it may have now, in their order.
func (t *table) take(group, client string, queues []messages.MessageQueue, now time.Time) []messages.MessageQueue {
	granted := make([]messages.MessageQueue, 0, len(queues))
	for _, q := range queues {
		held, is := t.groups[group][q]
		if is && held.client != client && now.Sub(held.renewed) <= t.expiry {
			continue
		}
		if !is && t.n >= t.limit {
			continue
		}
		t.put(group, q, lock{client, now})
		granted = append(granted, q)
	}
	return granted
}

func (t *table) put(group string, q messages.MessageQueue, l lock) {
	locks := t.groups[group]
	if locks == nil {
		locks = map[messages.MessageQueue]lock{}
		t.groups[group] = locks
	}
	before := len(locks)
	locks[q] = l
	t.n += len(locks) - before
}

// release gives back what the client has of the queues.
func (t *table) release(group, client string, queues []messages.MessageQueue) {
	for _, q := range queues {
		if held, is := t.groups[group][q]; is && held.client == client {
			t.drop(group, q)
		}
	}
}

// expire forgets locks that have not been renewed in time.
func (t *table) expire(now time.Time) {
	for group, locks := range t.groups {
		for q, l := range locks {
			if now.Sub(l.renewed) > t.expiry {
				t.drop(group, q)
			}
		}
	}
}

func (t *table) drop(group string, q messages.MessageQueue) {
	delete(t.groups[group], q)
	t.n--
	if len(t.groups[group]) == 0 {
		delete(t.groups, group)
	}
}
