package gateway

import (
	"time"

	"github.com/actormq/actormq/messages"
)

// readers knows which consumer groups keep what they have not read. A group is seen while one of its clients is online, and when it
// commits; at a start all count as seen. A group whose configuration was deleted keeps nothing.
type readers struct {
	node *Node
	seen map[string]*sighting
}

// sighting is when a group was seen last, and what its offsets added up to.
type sighting struct {
	sum int64
	at  time.Time
}

func (n *Node) startReaders() error {
	r := &readers{node: n, seen: map[string]*sighting{}}
	n.broker.Store.SetReaders(r.slowest)
	return nil
}

// slowest is a messages.Readers; the store sees to it that one goroutine at a time calls it.
func (r *readers) slowest(seen time.Duration) map[messages.QueueKey]messages.Reader {
	now := time.Now()
	r.look(now)
	slowest := map[messages.QueueKey]messages.Reader{}
	r.node.broker.Offsets.Each(func(group string, q messages.QueueKey, next messages.QueueOffset) {
		s := r.seen[group]
		if s == nil || now.Sub(s.at) > seen {
			return
		}
		if before, ok := slowest[q]; !ok || next < before.Next {
			slowest[q] = messages.Reader{Group: group, Next: next}
		}
	})
	return slowest
}

// look brings up to date when each group was seen.
func (r *readers) look(now time.Time) {
	sums := map[string]int64{}
	r.node.broker.Offsets.Each(func(group string, _ messages.QueueKey, next messages.QueueOffset) { sums[group] += int64(next) + 1 })
	online := map[string]bool{}
	for _, group := range r.node.broker.Clients.Groups() {
		online[group] = true
	}
	for group := range r.seen {
		if _, ok := sums[group]; !ok {
			delete(r.seen, group)
		}
	}
	for group, sum := range sums {
		if _, known := r.node.broker.Groups.Lookup(group); !known && !online[group] {
			delete(r.seen, group)
			continue
		}
		s := r.seen[group]
		if s == nil {
			s = &sighting{sum: sum, at: now}
			r.seen[group] = s
		}
		if s.sum != sum || online[group] {
			s.sum, s.at = sum, now
		}
	}
}
