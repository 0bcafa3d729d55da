package namesrv

import (
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/testkit/fixture"
)

func reg(name, addr string, id, version int64, topics ...string) *registration {
	r := &registration{
		RegisterBrokerHeader: remoting.RegisterBrokerHeader{
			BrokerName: name, BrokerAddr: addr, ClusterName: "C-" + name[:1], BrokerID: id, HAServerAddr: addr + "1",
		},
		version: remoting.DataVersion{Counter: version}, topics: map[string]remoting.TopicConfig{},
	}
	for _, t := range topics {
		r.topics[t] = remoting.TopicConfig{TopicName: t, Perm: 6, ReadQueueNums: int32(version), WriteQueueNums: 4}
	}
	return r
}

func with(t *testing.T, s *remotes, all ...*registration) *remotes {
	t.Helper()
	for _, r := range all {
		next, err := s.register(r)
		require.NoError(t, err)
		s = next
	}
	return s
}

func TestRegistrationsAreMerged(t *testing.T) {
	empty := &remotes{}
	s := with(t, empty, reg("a", "h:1", 0, 1, "T", "U"), reg("b", "h:2", 0, 1, "T"), reg("a", "h:3", 1, 9, "slave"))
	require.Empty(t, empty.brokers, "what is published does not change")
	require.Equal(t, map[int64]string{0: "h:1", 1: "h:3"}, s.brokers["a"].addrs)
	require.Len(t, s.topics["T"], 2)
	require.NotContains(t, s.topics, "slave", "topics are the master's")
	s = with(t, s, reg("a", "h:1", 0, 2, "V"))
	require.Contains(t, s.topics, "U", "a topic that is no longer sent stays until it is deleted here")
	require.EqualValues(t, 1, with(t, s, reg("a", "h:1", 0, 2, "X")).queuesOf("V"), "the same version is not looked at")
	s = with(t, s, reg("a", "h:3", 0, 3, "V"))
	require.Equal(t, map[int64]string{0: "h:3"}, s.brokers["a"].addrs, "an address has one id: the slave has become the master")
	require.Equal(t, s, s.without("h:1").without("h:1").withLife("h:1", s.lives["h:1"]), "whose place was taken takes nobody out")
}

// queuesOf is the number of brokers that have a topic.
func (s *remotes) queuesOf(topic string) int { return len(s.topics[topic]) }

func (s *remotes) withLife(addr string, l life) *remotes {
	next := *s
	next.lives = cloned(s.lives)
	next.lives[addr] = l
	return &next
}

func TestTheLastAddressTakesTheTopicsAlong(t *testing.T) {
	s := with(t, &remotes{}, reg("a", "h:1", 0, 1, "T", "U"), reg("a", "h:3", 1, 1), reg("b", "h:2", 0, 1, "T"))
	s = s.without("h:1")
	require.Len(t, s.topics["T"], 2, "the slave is still there")
	s = s.without("h:3")
	require.NotContains(t, s.brokers, "a")
	require.NotContains(t, s.topics, "U")
	require.Len(t, s.topics["T"], 1)
	require.Equal(t, 1, s.queues)
	s = s.withoutTopic("T", "other")
	require.Len(t, s.topics["T"], 1)
	s = s.withoutTopic("T", "C-b")
	require.Empty(t, s.topics)
	require.Zero(t, s.queues)
}

// TestAConnectionWithManyBrokersEndsAtOnce: one by one they cost minutes, in which the node could not be stopped.
func TestAConnectionWithManyBrokersEndsAtOnce(t *testing.T) {
	s, addrs := &remotes{brokers: map[string]remoteBroker{}, topics: map[string]map[string]remoting.QueueData{}, lives: map[string]life{}}, []string{}
	const brokers, topics = 2000, 20
	for i := range brokers {
		name, addr := fmt.Sprint("b", i), fmt.Sprint("h:", i)
		addrs = append(addrs, addr)
		s.brokers[name], s.lives[addr] = remoteBroker{cluster: "c", addrs: map[int64]string{0: addr}}, life{name: name}
		for n := range topics {
			topic := fmt.Sprint("T", n)
			if s.topics[topic] == nil {
				s.topics[topic] = map[string]remoting.QueueData{}
			}
			s.topics[topic][name] = remoting.QueueData{BrokerName: name}
			s.queues++
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	left := s.without(addrs[1:]...)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), "not a copy of all for each")
	require.Len(t, left.brokers, 1)
	require.Len(t, left.topics, topics)
	require.Equal(t, topics, left.queues)
	require.Len(t, s.brokers, brokers, "what is published does not change")
	require.Equal(t, brokers*topics, s.queues)
	require.Empty(t, s.without(addrs...).topics)
}

func TestPermissionsOfOtherBrokers(t *testing.T) {
	s := with(t, &remotes{}, reg("a", "h:1", 0, 1, "T"), reg("b", "h:2", 0, 1, "T"))
	s, n := s.withPerm("a", wiped)
	require.Equal(t, 1, n)
	require.EqualValues(t, 4, s.topics["T"]["a"].Perm)
	require.EqualValues(t, 6, s.topics["T"]["b"].Perm)
	s, _ = s.withPerm("a", restored)
	require.EqualValues(t, 6, s.topics["T"]["a"].Perm)
}

func TestRegistrationsAreBounded(t *testing.T) {
	for _, bad := range []*registration{reg("a", "", 0, 1), reg("a", "h:1", -1, 1)} {
		_, err := (&remotes{}).register(bad)
		require.ErrorIs(t, err, errBadAddresses)
	}
	full := &remotes{queues: maxTopics}
	_, err := full.register(reg("a", "h:1", 0, 1, "T"))
	require.ErrorIs(t, err, errTooMany)
	full = &remotes{brokers: map[string]remoteBroker{}}
	for i := range maxBrokers {
		full.brokers[string(rune('a'+i%26))+time.Duration(i).String()] = remoteBroker{}
	}
	_, err = full.register(reg("new", "h:1", 0, 1))
	require.ErrorIs(t, err, errTooMany)
}

// socket stands for a connection.
type socket struct{ closed chan struct{} }

func (s socket) Close(error)             { close(s.closed) }
func (s socket) Closed() <-chan struct{} { return s.closed }

func TestASilentBrokerIsDroppedAfterTwoMinutes(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
			return slog.New(slog.NewTextHandler(io.Discard, nil))
		}))
		k, peer, err := startKeeper(system.Root, Config{})
		require.NoError(t, err)
		register := func(r *registration) socket {
			s := socket{make(chan struct{})}
			m := change{
				what: func(now *remotes) (*remotes, error) { return now.register(r) }, heard: &alive{addr: r.BrokerAddr, conn: s},
				answer: messages.NewAnswer[*remotes](),
			}
			peer.Send(m)
			_, err := m.answer.Wait(t.Context())
			require.NoError(t, err)
			return s
		}
		after := func(d time.Duration) map[string]life {
			<-time.After(d)
			synctest.Wait()
			return k.published.Load().remote.lives
		}
		silent := register(reg("a", "h:1", 0, 1, "T"))
		dying := register(reg("b", "h:2", 0, 1, "T"))
		talking := register(reg("c", "h:3", 0, 1, "T"))
		require.Len(t, after(100*time.Second), 3)
		peer.Send(alive{addr: "h:3", conn: talking})
		peer.Send(gone{dying})
		require.Len(t, after(time.Second), 2, "a lost connection counts at once")
		require.Contains(t, after(30*time.Second), "h:3")
		require.NotContains(t, after(0), "h:1")
		<-silent.Closed()
		require.Empty(t, after(130*time.Second))
		dead := socket{make(chan struct{})}
		dead.Close(nil)
		register(reg("d", "h:4", 0, 1))
		peer.Send(alive{addr: "h:4", conn: dead})
		require.Empty(t, after(0), "what comes behind the end of its connection does not count")
		require.NoError(t, system.Root.PoisonFuture(peer.PID()).Wait())
		system.Shutdown()
	})
}
