package registrar_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/registrar"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/testkit/fixture"
)

// heard is a request as a name server hears it.
type heard struct {
	address string
	code    int
	at      time.Duration
}

// names are name servers: they hear everything, and answer as they are told.
type names struct {
	began time.Time
	calls chan heard

	mu    sync.Mutex
	down  map[string]bool
	stuck map[string]bool
	same  bool // they know this version
}

func (n *names) call(ctx context.Context, address string, c *remoting.Command) (*remoting.Command, error) {
	n.calls <- heard{address, c.Code, time.Since(n.began)}
	n.mu.Lock()
	down, stuck, same := n.down[address], n.stuck[address], n.same
	n.mu.Unlock()
	if stuck {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if down {
		return nil, errors.New("no connection")
	}
	a := c.Answer(remoting.ResponseSuccess, "")
	if c.Code == remoting.RequestQueryDataVersion {
		a.ExtFields = remoting.ToExt(&remoting.DataVersionAnswer{Changed: !same})
	}
	return a, nil
}

// set changes what they do.
func (n *names) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}

// so returns what has been heard so far.
func (n *names) so() []heard {
	synctest.Wait()
	all := []heard{}
	for len(n.calls) > 0 {
		all = append(all, <-n.calls)
	}
	return all
}

func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// bubble runs a registrar for the name servers "one" and "two" in a bubble.
func bubble(t *testing.T, cfg registrar.Config, test func(*testing.T, *names, *registrar.Registrar)) {
	fixture.Bubble(t, func(t *testing.T) {
		n := &names{began: time.Now(), calls: make(chan heard, 1000), down: map[string]bool{}, stuck: map[string]bool{}}
		system := actor.NewActorSystem(fixture.Quiet)
		cfg.NameServers, cfg.Call = []string{"one", "two"}, n.call
		cfg.Broker = func() registrar.Broker {
			return registrar.Broker{RegisterBrokerHeader: remoting.RegisterBrokerHeader{BrokerName: "b", BrokerAddr: "h:1", ClusterName: "C"}}
		}
		r, err := registrar.Start(system.Root, "registrar", cfg)
		require.NoError(t, err)
		test(t, n, r)
		require.NoError(t, r.Close())
		require.NoError(t, r.Close())
		system.Shutdown()
	})
}

func TestRegistersAtStartAtAnIntervalAndOnChanges(t *testing.T) {
	bubble(t, registrar.Config{}, func(t *testing.T, n *names, r *registrar.Registrar) {
		r.Peer().Send(messages.TopicsChanged{})
		require.Empty(t, n.so(), "nothing before all is ready")
		r.Begin()
		require.Len(t, n.so(), 2, "every name server at once")
		after(29 * time.Second)
		require.Empty(t, n.so())
		after(time.Second)
		require.Len(t, n.so(), 2)
		r.Peer().Send(messages.TopicsChanged{})
		require.Len(t, n.so(), 2, "a change does not wait for the interval")
		after(29 * time.Second)
		require.Empty(t, n.so(), "the interval begins anew")
		after(time.Second)
		r.Lost("two")
		require.Len(t, n.so(), 3, "a lost connection is made again at once, at that name server")
		require.NoError(t, r.Leave(t.Context()))
		for _, h := range n.so() {
			require.Equal(t, remoting.RequestUnregisterBroker, h.code)
		}
		r.Changed()
		after(time.Hour)
		require.Empty(t, n.so(), "who has left stays away")
		require.NoError(t, r.Leave(t.Context()))
	})
}

func TestANameServerThatIsDownIsTriedAgainWithGrowingPauses(t *testing.T) {
	bubble(t, registrar.Config{}, func(t *testing.T, n *names, r *registrar.Registrar) {
		n.down["two"], n.stuck["one"] = true, true
		r.Begin()
		after(100 * time.Second)
		var pauses []time.Duration
		last := time.Duration(0)
		ones := 0
		for _, h := range n.so() {
			if h.address == "two" {
				pauses = append(pauses, h.at-last)
				last = h.at
			} else {
				ones++
			}
		}
		require.Equal(t, []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second}, pauses)
		require.Greater(t, ones, 3, "one that does not answer holds up nobody, and has its own deadline")
		n.set(func() { n.down["two"], n.stuck["one"] = false, false })
		after(40 * time.Second)
		n.so()
		after(30 * time.Second)
		require.Len(t, n.so(), 2, "back to the interval")
		n.set(func() { n.stuck["two"] = true })
		require.ErrorContains(t, r.Leave(t.Context()), "unregister")
	})
}

func TestOneThatHangsKeepsNobodyFromTheGoodbye(t *testing.T) {
	bubble(t, registrar.Config{}, func(t *testing.T, n *names, r *registrar.Registrar) {
		n.stuck["one"] = true
		r.Begin()
		require.Len(t, n.so(), 2)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Since(n.began)
		require.ErrorIs(t, r.Leave(ctx), context.DeadlineExceeded)
		require.Equal(t, []heard{{"two", remoting.RequestUnregisterBroker, began}}, n.so())
	})
}

func TestChangesDuringARegistrationMakeOneMore(t *testing.T) {
	bubble(t, registrar.Config{}, func(t *testing.T, n *names, r *registrar.Registrar) {
		n.stuck["one"] = true
		r.Begin()
		n.so()
		for range 100 {
			r.Changed()
		}
		got := n.so()
		require.LessOrEqual(t, len(got), 100)
		for _, h := range got {
			require.Equal(t, "two", h.address, "the first one is still busy")
		}
		n.set(func() { n.stuck["one"] = false })
		after(6*time.Second + leastPause)
		ones := 0
		for _, h := range n.so() {
			if h.address == "one" {
				ones++
			}
		}
		require.Equal(t, 1, ones)
	})
}

// leastPause is the pause after a first failure.
const leastPause = time.Second

func TestAsksFirstWhetherTheTopicsAreKnown(t *testing.T) {
	bubble(t, registrar.Config{IfChanged: true}, func(t *testing.T, n *names, r *registrar.Registrar) {
		n.same = true
		r.Begin()
		for _, h := range n.so() {
			require.Equal(t, remoting.RequestQueryDataVersion, h.code)
		}
		n.set(func() { n.same = false })
		r.Changed()
		require.Len(t, n.so(), 4, "a question and a registration each")
	})
}
