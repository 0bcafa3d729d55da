package namesrv

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/metadata"
)

// Limits of what other brokers may register.
const (
	maxBrokers = 4096
	maxTopics  = 500_000 // of all brokers together, each counted once a broker
)

// Refusals of a registration.
var (
	errOwnName      = errors.New("this node's own broker has that name and id")
	errTooMany      = errors.New("too many brokers or topics are registered")
	errBadAddresses = errors.New("a broker needs a name, an address and a cluster, and an id that is not negative")
)

// remotes are the brokers that have registered: published with the state, never changed.
type remotes struct {
	brokers map[string]remoteBroker                  // by name
	topics  map[string]map[string]remoting.QueueData // by topic, then by broker; no topic is empty
	lives   map[string]life                          // by address
	queues  int                                      // topics, each counted once a broker
}

// remoteBroker is one broker with its replicas.
type remoteBroker struct {
	cluster string
	addrs   map[int64]string // never empty
}

// life is what is known of one address.
type life struct {
	name    string
	id      int64
	version remoting.DataVersion
	ha      string
}

// registration is what a broker has sent, checked and with strings of its own.
type registration struct {
	remoting.RegisterBrokerHeader
	version remoting.DataVersion
	topics  map[string]remoting.TopicConfig
	bare    bool // without a body
}

// own takes the strings out of the frame that they came in.
func own(h *remoting.RegisterBrokerHeader) remoting.RegisterBrokerHeader {
	c := *h
	for _, s := range []*string{&c.BrokerName, &c.BrokerAddr, &c.ClusterName, &c.HAServerAddr} {
		*s = strings.Clone(*s)
	}
	return c
}

// register returns the brokers with one more, or one that is known better (spec/remoting.md §6.1): topics are those of the
// master, merged, never removed, and only looked at when their version is another one.
func (s *remotes) register(r *registration) (*remotes, error) {
	if r.BrokerName == "" || r.BrokerAddr == "" || r.ClusterName == "" || r.BrokerID < 0 {
		return nil, errBadAddresses
	}
	next := *s
	next.brokers, next.lives = cloned(s.brokers), cloned(s.lives)
	broker, known := next.brokers[r.BrokerName]
	if !known && len(next.brokers) >= maxBrokers {
		return nil, fmt.Errorf("%w: limit %d brokers", errTooMany, maxBrokers)
	}
	broker.cluster, broker.addrs = r.ClusterName, cloned(broker.addrs)
	for id, addr := range broker.addrs {
		if addr == r.BrokerAddr && id != r.BrokerID {
			delete(broker.addrs, id)
		}
	}
	_, had := broker.addrs[r.BrokerID]
	broker.addrs[r.BrokerID] = r.BrokerAddr
	next.brokers[r.BrokerName] = broker
	before, lived := next.lives[r.BrokerAddr]
	next.lives[r.BrokerAddr] = life{name: r.BrokerName, id: r.BrokerID, version: r.version, ha: r.HAServerAddr}
	if r.BrokerID == 0 && !r.bare && (!had || !lived || before.version != r.version) {
		return &next, next.merge(r)
	}
	return &next, nil
}

// merge takes the topics of a master over.
func (s *remotes) merge(r *registration) error {
	topics := cloned(s.topics)
	for name, t := range r.topics {
		byBroker := cloned(topics[name])
		if _, there := byBroker[r.BrokerName]; !there {
			s.queues++
		}
		byBroker[r.BrokerName] = remoting.QueueData{
			BrokerName: r.BrokerName, Perm: t.Perm, ReadQueueNums: t.ReadQueueNums, TopicSysFlag: t.TopicSysFlag, WriteQueueNums: t.WriteQueueNums,
		}
		topics[name] = byBroker
	}
	if s.queues > maxTopics {
		return fmt.Errorf("%w: limit %d topics", errTooMany, maxTopics)
	}
	s.topics = topics
	return nil
}

// without returns the brokers without some addresses; a broker goes with its last one, and its topics with it.
func (s *remotes) without(addrs ...string) *remotes {
	next := *s
	next.lives, next.brokers = cloned(s.lives), cloned(s.brokers)
	over := map[string]struct{}{} // brokers whose last address has gone
	for _, addr := range addrs {
		l, ok := next.lives[addr]
		if !ok {
			continue
		}
		delete(next.lives, addr)
		broker := next.brokers[l.name]
		if broker.addrs[l.id] != addr {
			continue // another address has taken its place
		}
		broker.addrs = cloned(broker.addrs)
		delete(broker.addrs, l.id)
		if next.brokers[l.name] = broker; len(broker.addrs) == 0 {
			delete(next.brokers, l.name)
			over[l.name] = struct{}{}
		}
	}
	if len(over) > 0 {
		next.topics = cloned(s.topics)
		for topic := range s.topics {
			next.drop(topic, over)
		}
	}
	return &next
}

// drop takes a topic of some brokers out, all at once; s.topics is a copy already.
func (s *remotes) drop(topic string, brokers map[string]struct{}) {
	had := s.topics[topic]
	left := had
	for broker := range brokers {
		if _, there := had[broker]; !there {
			continue
		}
		if len(left) == len(had) {
			left = cloned(had)
		}
		delete(left, broker)
		s.queues--
	}
	if s.topics[topic] = left; len(left) == 0 {
		delete(s.topics, topic)
	}
}

// withoutTopic returns the brokers without a topic; with a cluster only those of the cluster lose it.
func (s *remotes) withoutTopic(topic, cluster string) *remotes {
	if len(s.topics[topic]) == 0 {
		return s
	}
	next := *s
	next.topics = cloned(s.topics)
	over := map[string]struct{}{}
	for broker := range s.topics[topic] {
		if cluster == "" || s.brokers[broker].cluster == cluster {
			over[broker] = struct{}{}
		}
	}
	next.drop(topic, over)
	return &next
}

// withPerm returns the brokers with the permissions of one broker's topics changed, and how many those are. It lasts until the
// broker registers with another version.
func (s *remotes) withPerm(broker string, perm func(int32) int32) (*remotes, int) {
	next, n := *s, 0
	next.topics = cloned(s.topics)
	for topic, byBroker := range s.topics {
		if q, there := byBroker[broker]; there {
			q.Perm = perm(q.Perm)
			changed := cloned(byBroker)
			changed[broker] = q
			next.topics[topic] = changed
			n++
		}
	}
	return &next, n
}

func wiped(perm int32) int32 { return perm &^ metadata.PermWrite }

// restored is what the original gives a topic whatever it had.
func restored(int32) int32 { return metadata.PermRead | metadata.PermWrite }

// cloned is a copy that can be changed, also of a nil map.
func cloned[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	return maps.Clone(m)
}
