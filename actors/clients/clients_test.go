package clients_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/clients"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/testkit/fixture"
)

func TestHeartbeatRegisters(t *testing.T) {
	k := start(t, clients.Config{})
	require.Nil(t, k.Consumers("g"))
	a, b := &channel{id: "a"}, &channel{id: "b"}
	beat(t, k, a, "ida", "g", sub("T", "TagA||TagB", 1), sub("%RETRY%g", "*", 1))
	beat(t, k, b, "idb", "g", sub("T", "TagA||TagB", 1), sub("%RETRY%g", "*", 1))
	g := k.Consumers("g")
	require.Equal(t, []string{"ida", "idb"}, g.ClientIDs())
	require.Equal(t, messages.ConsumePassively, g.ConsumeType)
	require.Equal(t, messages.Clustering, g.MessageModel)
	require.Equal(t, "CONSUME_FROM_LAST_OFFSET", g.ConsumeFromWhere)
	require.Len(t, g.Subscriptions, 2)
	require.True(t, g.Subscriptions["T"].Tags(2598919))
	require.False(t, g.Subscriptions["T"].Tags(1))
	require.Nil(t, g.Subscriptions["%RETRY%g"].Tags)
	require.Same(t, a, g.Clients[0].Channel)
	require.Equal(t, "JAVA", g.Clients[0].Language)
	require.Equal(t, 407, g.Clients[0].Version)
	require.NotZero(t, g.Clients[0].LastUpdateMs())
	require.Equal(t, []string{"g"}, k.Groups())
	require.Equal(t, []string{"g"}, k.Subscribers("T"))
	require.Empty(t, k.Subscribers("U"))
}

// Every member is told of a new member or topic, the newcomer too (spec/remoting.md §7.2), when it is registered and before the
// keeper's answer.
func TestNotifications(t *testing.T) {
	k := start(t, clients.Config{})
	a, b := &channel{id: "a"}, &channel{id: "b"}
	beat(t, k, a, "ida", "g", sub("T", "*", 1))
	require.Equal(t, []string{"g"}, a.news())
	beat(t, k, b, "idb", "g", sub("T", "*", 1))
	require.Equal(t, []string{"g"}, a.news())
	require.Equal(t, []string{"g"}, b.news())

	beat(t, k, a, "ida", "g", sub("T", "*", 1))
	beat(t, k, a, "ida", "g", sub("T", "TagA", 2))
	require.Empty(t, a.news(), "neither the same again nor a higher version is a change")
	beat(t, k, a, "ida", "g", sub("T", "TagA", 2), sub("U", "*", 1))
	require.Equal(t, []string{"g"}, b.news(), "a new topic is")
	beat(t, k, b, "idb", "g", sub("U", "*", 1))
	require.Equal(t, []string{"g"}, b.news(), "a topic that has gone is")
	beat(t, k, b, "idb", "g", sub("V", "*", 1))
	require.Equal(t, []string{"g"}, b.news(), "one in the place of another is")
	a.news()

	require.NoError(t, k.Unregister(t.Context(), &messages.UnregisterClient{Channel: b, ConsumerGroup: "g"}))
	require.Equal(t, []string{"g"}, a.news())
	require.Empty(t, b.news(), "it has left")
	beat(t, k, b, "idb", "g", sub("V", "*", 1))
	a.news()
	k.Gone(b)
	flush(t, k)
	require.Equal(t, []string{"g"}, a.news())
	k.Gone(a)
	flush(t, k)
	require.Nil(t, k.Consumers("g"), "an empty group is none")
	require.Empty(t, a.news())
}

// A heartbeat's client is answered when it is registered and before it is told.
func TestRegisteredComesBeforeTheNotification(t *testing.T) {
	k := start(t, clients.Config{})
	c := &channel{id: "a"}
	called := false
	require.NoError(t, k.Heartbeat(t.Context(), &messages.Heartbeat{
		Channel: c, ClientID: "ida", Consumers: []messages.ConsumerRegistration{{Group: "g"}},
		Registered: func() {
			called = true
			require.NotNil(t, k.Consumers("g"))
			require.Empty(t, c.news())
		},
	}))
	require.True(t, called)
	require.Equal(t, []string{"g"}, c.news())
}

func TestNotificationsSwitchedOff(t *testing.T) {
	k := start(t, clients.Config{Notifies: func(group string) bool { return group != "quiet" }})
	a := &channel{id: "a"}
	beat(t, k, a, "ida", "quiet", sub("T", "*", 1))
	beat(t, k, a, "ida", "loud", sub("T", "*", 1))
	require.Equal(t, []string{"loud"}, a.news())
}

func TestSubscriptionVersions(t *testing.T) {
	k := start(t, clients.Config{})
	a, b := &channel{id: "a"}, &channel{id: "b"}
	beat(t, k, a, "ida", "g", sub("T", "TagA", 5))
	first := k.Consumers("g")
	beat(t, k, a, "ida", "g", sub("T", "TagB", 5))
	beat(t, k, b, "idb", "g", sub("T", "TagC", 4))
	require.Equal(t, "TagA", k.Consumers("g").Subscriptions["T"].SubString, "lower and equal versions are ignored")
	beat(t, k, b, "idb", "g", sub("T", "TagD", 6))
	require.Equal(t, "TagD", k.Consumers("g").Subscriptions["T"].SubString)
	require.Equal(t, "TagA", first.Subscriptions["T"].SubString, "a picture never changes")
	require.Len(t, first.Clients, 1)
}

func TestTypesAreThoseOfTheLastHeartbeat(t *testing.T) {
	k := start(t, clients.Config{})
	a := &channel{id: "a"}
	beat(t, k, a, "ida", "g", sub("T", "*", 1))
	a.news()
	require.NoError(t, k.Heartbeat(t.Context(), &messages.Heartbeat{Channel: a, ClientID: "ida", Consumers: []messages.ConsumerRegistration{{
		Group: "g", ConsumeType: messages.ConsumeActively, MessageModel: messages.Broadcasting, ConsumeFromWhere: "X",
		Subscriptions: []messages.Subscription{sub("T", "*", 1)},
	}}}))
	g := k.Consumers("g")
	require.Equal(t, []string{messages.ConsumeActively, messages.Broadcasting, "X"}, []string{g.ConsumeType, g.MessageModel, g.ConsumeFromWhere})
	require.Empty(t, a.news())
}

func TestOtherExpressionsAreCompiledOnce(t *testing.T) {
	var compiled []string
	k := start(t, clients.Config{Compile: func(kind, expression string) (any, error) {
		compiled = append(compiled, kind+" "+expression)
		if expression == "bad" {
			return nil, errors.New("it is bad")
		}
		return len(expression), nil
	}})
	sql := func(topic, expression string, version int64) messages.Subscription {
		return messages.Subscription{Topic: topic, SubString: expression, SubVersion: version, ExpressionType: messages.ExpressionSQL92}
	}
	a := &channel{id: "a"}
	for range 3 {
		beat(t, k, a, "ida", "g", sql("T", "a > 5", 1), sql("U", "bad", 1), sub("V", "TagA", 1))
	}
	require.ElementsMatch(t, []string{"SQL92 a > 5", "SQL92 bad"}, compiled)
	subs := k.Consumers("g").Subscriptions
	require.Equal(t, 5, subs["T"].Compiled)
	require.Nil(t, subs["T"].Tags)
	require.NoError(t, subs["T"].CompileErr)
	require.EqualError(t, subs["U"].CompileErr, "it is bad")
	require.Nil(t, subs["V"].Compiled)

	none := start(t, clients.Config{})
	beat(t, none, a, "ida", "g", sql("T", "a > 5", 1))
	require.Error(t, none.Consumers("g").Subscriptions["T"].CompileErr)
}

func TestProducers(t *testing.T) {
	k := start(t, clients.Config{})
	a, b, c := &channel{id: "a"}, &channel{id: "b"}, &channel{id: "c"}
	require.Nil(t, k.NextProducer("p"))
	require.Nil(t, k.Producer("ida"))
	require.Empty(t, k.Producers("p"))
	produce(t, k, a, "ida", "p", "CLIENT_INNER_PRODUCER")
	produce(t, k, b, "idb", "p")
	produce(t, k, c, "idc", "p")
	produce(t, k, a, "ida", "p")
	require.Len(t, k.Producers("p"), 3)
	require.Len(t, k.AllProducers(), 2)
	require.Len(t, k.AllProducers()["CLIENT_INNER_PRODUCER"], 1)
	require.Same(t, b, k.Producer("idb").Channel)
	var asked []string
	for range 6 {
		asked = append(asked, k.NextProducer("p").ID)
	}
	require.Equal(t, []string{"ida", "idb", "idc", "ida", "idb", "idc"}, asked, "each in turn")
	require.Empty(t, a.news(), "producers are told nothing")

	require.NoError(t, k.Unregister(t.Context(), &messages.UnregisterClient{Channel: a, ProducerGroup: "p"}))
	require.Len(t, k.Producers("p"), 2)
	require.NotNil(t, k.Producer("ida"), "it is still in another group")
	require.NoError(t, k.Unregister(t.Context(), &messages.UnregisterClient{Channel: a, ProducerGroup: "CLIENT_INNER_PRODUCER"}))
	require.Nil(t, k.Producer("ida"))
	k.Gone(b)
	k.Gone(c)
	flush(t, k)
	require.Empty(t, k.AllProducers())
	require.Nil(t, k.NextProducer("p"))
}

// A client that connects again before its old connection is found to be gone is reached on the new one, also after that.
func TestProducerThatConnectsAgain(t *testing.T) {
	k := start(t, clients.Config{})
	old, fresh := &channel{id: "old"}, &channel{id: "fresh"}
	produce(t, k, old, "id", "p")
	produce(t, k, fresh, "id", "p")
	require.Same(t, fresh, k.Producer("id").Channel)
	produce(t, k, old, "id", "p")
	require.Same(t, fresh, k.Producer("id").Channel)
	k.Gone(old)
	flush(t, k)
	require.Same(t, fresh, k.Producer("id").Channel)

	third := &channel{id: "third"}
	produce(t, k, third, "id", "p")
	k.Gone(third)
	flush(t, k)
	require.Same(t, fresh, k.Producer("id").Channel, "the one that is left")
}

func TestUnregisterIsByConnection(t *testing.T) {
	k := start(t, clients.Config{})
	a, b := &channel{id: "a"}, &channel{id: "b"}
	beat(t, k, a, "same", "g", sub("T", "*", 1))
	produce(t, k, a, "same", "p")
	for _, m := range []*messages.UnregisterClient{
		{Channel: b, ConsumerGroup: "g", ProducerGroup: "p"}, {Channel: a, ConsumerGroup: "other"}, {Channel: a},
	} {
		require.NoError(t, k.Unregister(t.Context(), m))
	}
	require.NotNil(t, k.Consumers("g"))
	require.Len(t, k.Producers("p"), 1)
	require.NoError(t, k.Unregister(t.Context(), &messages.UnregisterClient{Channel: a, ConsumerGroup: "g", ProducerGroup: "p"}))
	require.Nil(t, k.Consumers("g"))
	require.Empty(t, k.Producers("p"))
}

// L84: two connections with one client id are counted and reported with both addresses, and both are listed.
func TestDuplicateClientIDs(t *testing.T) {
	var log bytes.Buffer
	k := start(t, clients.Config{Logger: zerolog.New(&log)})
	a, b := &channel{id: "10.0.0.1"}, &channel{id: "10.0.0.2"}
	beat(t, k, a, "id", "g", sub("T", "*", 1))
	beat(t, k, a, "id", "g", sub("T", "*", 1))
	beat(t, k, b, "other", "g", sub("T", "*", 1))
	require.Zero(t, k.Duplicates())
	c := &channel{id: "10.0.0.3"}
	beat(t, k, c, "id", "g", sub("T", "*", 1))
	beat(t, k, c, "id", "g", sub("T", "*", 1))
	require.EqualValues(t, 1, k.Duplicates())
	require.Contains(t, log.String(), "10.0.0.1:1")
	require.Contains(t, log.String(), "10.0.0.3:1")
	require.Equal(t, []string{"id", "other", "id"}, k.Consumers("g").ClientIDs())
}

func TestAnotherClientIDOnTheSameConnection(t *testing.T) {
	k := start(t, clients.Config{})
	a := &channel{id: "a"}
	beat(t, k, a, "before", "g", sub("T", "*", 1))
	produce(t, k, a, "before", "p")
	beat(t, k, a, "after", "g", sub("T", "*", 1))
	require.Equal(t, []string{"after"}, k.Consumers("g").ClientIDs())
	require.Nil(t, k.Producer("before"))
}

func TestExpiry(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		k := start(t, clients.Config{})
		alive, dead := &channel{id: "alive"}, &channel{id: "dead"}
		beat(t, k, dead, "dead", "g", sub("T", "*", 1))
		produce(t, k, dead, "dead", "p")
		for range 5 {
			beat(t, k, alive, "alive", "g", sub("T", "*", 1))
			pass(30 * time.Second)
		}
		synctest.Wait()
		require.Equal(t, []string{"alive"}, k.Consumers("g").ClientIDs())
		require.ErrorIs(t, dead.cause(), messages.ErrClientExpired)
		require.NoError(t, alive.cause())
		require.Nil(t, k.Producer("dead"))
		require.Empty(t, k.AllProducers())
		require.Equal(t, []string{"g", "g"}, alive.news(), "it came, and the other went")
		dead.news()
		pass(time.Hour)
		synctest.Wait()
		require.Nil(t, k.Consumers("g"))
		require.ErrorIs(t, alive.cause(), messages.ErrClientExpired)
	})
}

// A group that a connection does not name any more expires by itself; the connection goes on with the others. The Go client
// never unregisters.
func TestOneGroupOfAConnectionExpires(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		k := start(t, clients.Config{})
		a := &channel{id: "a"}
		beat(t, k, a, "ida", "stopped", sub("T", "*", 1))
		produce(t, k, a, "ida", "old")
		for range 5 {
			beat(t, k, a, "ida", "g", sub("T", "*", 1))
			pass(30 * time.Second)
		}
		synctest.Wait()
		require.Nil(t, k.Consumers("stopped"))
		require.Nil(t, k.Producer("ida"))
		require.NotNil(t, k.Consumers("g"))
		require.NoError(t, a.cause())
	})
}

// A connection that has unregistered from all its groups is nobody's business any more.
func TestNoExpiryAfterUnregister(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		k := start(t, clients.Config{Expiry: time.Second, Interval: time.Second})
		a := &channel{id: "a"}
		beat(t, k, a, "ida", "g", sub("T", "*", 1))
		require.NoError(t, k.Unregister(t.Context(), &messages.UnregisterClient{Channel: a, ConsumerGroup: "g"}))
		require.NoError(t, k.Heartbeat(t.Context(), &messages.Heartbeat{Channel: a, ClientID: "ida"}))
		pass(time.Minute)
		synctest.Wait()
		require.NoError(t, a.cause())
		beat(t, k, a, "ida", "g", sub("T", "*", 1))
		pass(time.Minute)
		synctest.Wait()
		require.ErrorIs(t, a.cause(), messages.ErrClientExpired, "the timer is armed again")
	})
}

func TestPanicRefusesAndGoesOn(t *testing.T) {
	fail := true
	k := start(t, clients.Config{Compile: func(string, string) (any, error) {
		if fail {
			panic("injected")
		}
		return 1, nil
	}})
	a := &channel{id: "a"}
	m := func() *messages.Heartbeat {
		return &messages.Heartbeat{Channel: a, ClientID: "ida", Consumers: []messages.ConsumerRegistration{{
			Group: "g", Subscriptions: []messages.Subscription{{Topic: "T", SubString: "x", ExpressionType: "SQL92"}},
		}}}
	}
	require.ErrorIs(t, k.Heartbeat(t.Context(), m()), messages.ErrPanicked)
	fail = false
	require.NoError(t, k.Heartbeat(t.Context(), m()))
	require.Equal(t, 1, k.Consumers("g").Subscriptions["T"].Compiled)
	require.Len(t, k.Consumers("g").Clients, 1)
	k.Gone(a)
	flush(t, k)
	require.Nil(t, k.Consumers("g"))
}

// A panic refuses the whole batch: the client asks again, and what was noted is noted.
func TestPanicRefusesTheBatch(t *testing.T) {
	entered, goOn := make(chan struct{}), make(chan struct{})
	k := start(t, clients.Config{Compile: func(_, expression string) (any, error) {
		if expression == "panic" {
			panic("injected")
		}
		close(entered)
		<-goOn
		return 1, nil
	}})
	beats := make([]*messages.Heartbeat, 3)
	for i, expression := range []string{"slow", "", "panic"} {
		beats[i] = &messages.Heartbeat{
			Channel: &channel{id: fmt.Sprint(i)}, ClientID: fmt.Sprint(i), Answer: messages.NewAnswer[struct{}](),
			Consumers: []messages.ConsumerRegistration{{Group: fmt.Sprint("g", i), Subscriptions: []messages.Subscription{
				{Topic: "T", SubString: expression, ExpressionType: map[bool]string{true: "SQL92"}[expression != ""]},
			}}},
		}
	}
	go k.Peer().Send(beats[0]) // it runs the actor
	<-entered
	k.Peer().Send(beats[1])
	k.Peer().Send(beats[2])
	close(goOn)
	for i, want := range []error{nil, messages.ErrPanicked, messages.ErrPanicked} {
		_, err := beats[i].Answer.Wait(t.Context())
		require.ErrorIs(t, err, want)
	}
	flush(t, k)
	require.NotNil(t, k.Consumers("g1"), "published with the next batch")
}

func TestMessagesFromOtherActors(t *testing.T) {
	k := start(t, clients.Config{})
	a := &channel{id: "a"}
	m := &messages.Heartbeat{Channel: a, ClientID: "ida", Producers: []string{"p"}, Answer: messages.NewAnswer[struct{}]()}
	k.Peer().Send(m)
	_, err := m.Answer.Wait(t.Context())
	require.NoError(t, err)
	k.Peer().Send(messages.ClientGone{Channel: a})
	flush(t, k)
	require.Nil(t, k.Producer("ida"))

	fixture.RefusesStrangers(t, k.Peer())
}

func TestCloseRefuses(t *testing.T) {
	k := start(t, clients.Config{})
	a := &channel{id: "a"}
	beat(t, k, a, "ida", "g", sub("T", "*", 1))
	require.NoError(t, k.Close())
	require.ErrorIs(t, k.Heartbeat(context.Background(), &messages.Heartbeat{Channel: a, ClientID: "ida"}), messages.ErrClosed)
	k.Gone(a)
	require.NotNil(t, k.Consumers("g"), "lookups go on")
}

// Many connections come, renew, unregister and go at once; at the end nobody is left, and whoever has an answer finds itself.
func TestConcurrentUse(t *testing.T) {
	k := start(t, clients.Config{})
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 50 {
				c := &channel{id: fmt.Sprint(worker, "-", i)}
				beat(t, k, c, c.id, "g", sub("T", "*", 1))
				if k.Consumers("g").Client(c.id) == nil {
					t.Errorf("%s is not registered", c.id)
				}
				produce(t, k, c, c.id, "p", fmt.Sprint("p", i%4))
				if got := k.Producer(c.id); got == nil || got.Channel != messages.ClientChannel(c) {
					t.Errorf("%s is not found", c.id)
				}
				k.NextProducer("p")
				k.AllProducers()
				k.Subscribers("T")
				if len(c.news()) == 0 {
					t.Errorf("%s was not told that it came", c.id)
				}
				k.Gone(c)
			}
		})
	}
	all.Wait()
	flush(t, k)
	require.Nil(t, k.Consumers("g"))
	require.Empty(t, k.AllProducers())
}

func BenchmarkKeeper(b *testing.B) {
	k := start(b, clients.Config{})
	for i := range 1000 {
		beat(b, k, &channel{id: fmt.Sprint(i)}, fmt.Sprint(i), fmt.Sprint("g", i), sub("T", "*", 1))
	}
	c := &channel{id: "c"}
	beat(b, k, c, "c", "g0", sub("T", "*", 1))
	b.Run("op=lookup", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			groupSink = k.Consumers("g0")
		}
	})
	b.Run("op=renew", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			beat(b, k, c, "c", "g0", sub("T", "*", 1))
		}
	})
}

var groupSink *messages.ConsumerGroup
