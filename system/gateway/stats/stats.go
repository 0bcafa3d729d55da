package stats

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages/remoting"
)

// kind says what an item counts.
type kind uint8

const (
	topicPut kind = iota // messages and bytes sent to a topic
	groupGet             // messages and bytes that a group took of a topic
	sendBack             // messages that a group sent back, by topic
	brokerPut
	brokerGet
	getFound // gets with a message
	getMiss  // gets without
	kinds    // how many there are
)

// name is what an item is found by. The strings are those of the topic and group tables.
type name struct {
	kind         kind
	topic, group string
}

// item counts one thing. Only the samples belong to the actor.
type item struct {
	count atomic.Int64 // messages
	bytes atomic.Int64
	times atomic.Int64 // calls
	past  windows
}

// Set is all statistics of a broker. Its methods are safe for any goroutine and do not block. The zero Set is none: it counts nothing.
type Set struct {
	items *atomic.Pointer[actors.Table[name, *item]]
	whole *[kinds]*item // the broker's own, by their kind; never changed
	puts  *times
	gets  *times
	sends *sends
	peer  actors.Peer
	day   *atomic.Pointer[day]
	began int64 // ms
	end   func() error
}

// Start spawns the actor under the name "statistics".
func Start(root *actor.RootContext, log zerolog.Logger) (*Set, error) {
	a := newStatsActor(log)
	port := mailbox.New(mailbox.Options{OnPanic: a.panicked})
	props := actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithMailbox(port.Producer()))
	pid, err := root.SpawnNamed(props, "statistics")
	if err != nil {
		return nil, fmt.Errorf("start the statistics: %w", err)
	}
	return &Set{items: &a.items, whole: a.whole, puts: &a.puts, gets: &a.gets, sends: &a.sends, peer: actors.NewPeer(root, pid), day: &a.day, began: a.began,
		end: sync.OnceValue(func() error { return root.PoisonFuture(pid).Wait() })}, nil
}

// Close ends the actor; what is counted stays readable.
func (s *Set) Close() error {
	if err := s.end(); err != nil {
		return fmt.Errorf("stop the statistics: %w", err)
	}
	return nil
}

// Put counts messages of one send to a topic.
func (s *Set) Put(topic string, n, bytes int) {
	s.add(name{kind: topicPut, topic: topic}, n, bytes)
	s.addWhole(brokerPut, n, bytes)
}

// Got counts messages that a group was given in one pull.
func (s *Set) Got(group, topic string, n, bytes int) {
	s.add(name{kind: groupGet, topic: topic, group: group}, n, bytes)
	s.addWhole(brokerGet, n, bytes)
	s.addWhole(getFound, 1, 0)
}

// Missed counts a pull that found nothing.
func (s *Set) Missed() { s.addWhole(getMiss, 1, 0) }

// SentBack counts a message that a group sent back.
func (s *Set) SentBack(group, topic string) {
	s.add(name{kind: sendBack, topic: topic, group: group}, 1, 0)
}

func (s *Set) add(of name, n, bytes int) {
	if s == nil || s.items == nil {
		return
	}
	if it, ok := s.items.Load().Get(of); ok {
		it.add(n, bytes)
		return
	}
	of.topic, of.group = strings.Clone(of.topic), strings.Clone(of.group)
	s.peer.Send(first{name: of, n: n, bytes: bytes})
}

func (s *Set) addWhole(of kind, n, bytes int) {
	if s != nil && s.items != nil {
		s.whole[of].add(n, bytes)
	}
}

func (it *item) add(n, bytes int) {
	it.count.Add(int64(n))
	it.bytes.Add(int64(bytes))
	it.times.Add(1)
}

// Forget drops the items of a topic.
func (s *Set) Forget(topic string) {
	if s != nil && s.items != nil {
		s.peer.Send(forget{topic: topic})
	}
}

// wire is how an item is called in VIEW_BROKER_STATS_DATA, and which of its counters is meant.
var wire = map[string]struct {
	kind  kind
	bytes bool
}{
	"TOPIC_PUT_NUMS":  {kind: topicPut},
	"TOPIC_PUT_SIZE":  {kind: topicPut, bytes: true},
	"GROUP_GET_NUMS":  {kind: groupGet},
	"GROUP_GET_SIZE":  {kind: groupGet, bytes: true},
	"SNDBCK_PUT_NUMS": {kind: sendBack},
	"BROKER_PUT_NUMS": {kind: brokerPut},
	"BROKER_GET_NUMS": {kind: brokerGet},
}

// View returns the windows of an item by its name and key on the wire: a topic, "topic@group", or the cluster's name. An item
// that has counted nothing yet is zero if known says so of its topic and group; false for a name or key that is none.
func (s *Set) View(statsName, key string, known func(topic, group string) bool) (remoting.StatsData, bool) {
	of, ok := wire[statsName]
	if !ok {
		return remoting.StatsData{}, false
	}
	n := name{kind: of.kind}
	switch of.kind {
	case topicPut:
		n.topic = key
	case groupGet, sendBack:
		if n.topic, n.group, ok = strings.Cut(key, "@"); !ok {
			return remoting.StatsData{}, false
		}
	}
	if s != nil && s.items != nil {
		if it, there := s.items.Load().Get(n); there {
			return it.past.view(of.bytes), true
		}
	}
	return remoting.StatsData{}, n.topic == "" || known(n.topic, n.group)
}
