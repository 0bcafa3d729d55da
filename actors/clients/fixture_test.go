package clients_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/actors/clients"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/testkit/fixture"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// channel is a client's connection: it notes what it is told.
type channel struct {
	id string

	mu     sync.Mutex
	told   []string // groups
	closed error
}

func (c *channel) ID() string { return c.id }

func (c *channel) RemoteAddr() string { return c.id + ":1" }

func (c *channel) Tell(message any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, message.(messages.ConsumerIDsChanged).Group)
}

func (c *channel) Close(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = cause
}

// news returns what the connection has been told since it was asked last.
func (c *channel) news() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	told := c.told
	c.told = nil
	return told
}

func (c *channel) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func start(t testing.TB, cfg clients.Config) *clients.Keeper {
	t.Helper()
	k, err := clients.Start(fixture.System(t).Root, "clients", cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, k.Close()) })
	return k
}

// sub is a subscription to a topic by tag.
func sub(topic, tags string, version int64) messages.Subscription {
	return messages.Subscription{Topic: topic, SubString: tags, SubVersion: version, ExpressionType: "TAG"}
}

// beat sends a heartbeat of a consumer.
func beat(t testing.TB, k *clients.Keeper, c *channel, id, group string, subs ...messages.Subscription) {
	t.Helper()
	require.NoError(t, k.Heartbeat(t.Context(), &messages.Heartbeat{
		Channel: c, ClientID: id, Language: "JAVA", Version: 407,
		Consumers: []messages.ConsumerRegistration{{
			Group: group, ConsumeType: messages.ConsumePassively, MessageModel: messages.Clustering,
			ConsumeFromWhere: "CONSUME_FROM_LAST_OFFSET", Subscriptions: subs,
		}},
	}))
}

// produce sends a heartbeat of a producer.
func produce(t testing.TB, k *clients.Keeper, c *channel, id string, groups ...string) {
	t.Helper()
	require.NoError(t, k.Heartbeat(t.Context(), &messages.Heartbeat{
		Channel: c, ClientID: id, Language: "GO", Version: 317, Producers: groups,
	}))
}

// flush waits until the actor has handled all that was sent before.
func flush(t testing.TB, k *clients.Keeper) {
	t.Helper()
	require.NoError(t, k.Unregister(t.Context(), &messages.UnregisterClient{Channel: &channel{}}))
}

// pass lets time pass in a bubble of synctest.
func pass(d time.Duration) { <-time.After(d) }
