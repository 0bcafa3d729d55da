package gateway_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/system/gateway/broker"
	"github.com/actormq/actormq/testkit/fixture"
)

// parking is a store at which something happens between a pull's look and its parking.
type parking struct {
	broker.Store

	between func()
}

func (p parking) Park(m *messages.ParkPull) {
	p.between()
	p.Store.Park(m)
}

// L74: the message comes after the pull has found nothing and before it is parked. It is answered with it, not when its time is over.
func TestAMessageThatArrivesWhileThePullIsBeingParked(t *testing.T) {
	var w *world
	var once sync.Once
	w = run(t, func(c *gateway.Config) {
		store := c.Store
		c.Store = parking{Store: store, between: func() {
			once.Do(func() {
				_, err := store.Put(t.Context(), &messages.Message{
					Topic: "T", Body: []byte("just now"), BornHost: c.Broker.StoreHost, StoreHost: c.Broker.StoreHost,
				})
				require.NoError(t, err)
				w.eventually(func() bool { return store.MaxOffset(messages.QueueKey{Topic: "T"}) == 1 }) // and its arrival has been told
			})
		}}
	})
	w.topic("T", 1)
	c := w.dial("broker")
	a := c.ask(pulling("T", 0, "sysFlag", "6", "suspendTimeoutMillis", "300000", "subscription", "*"))
	require.Equal(t, remoting.ResponseSuccess, a.Code, a.Remark)
	require.Equal(t, []string{"just now"}, bodies(t, a))
}

// L76: who asks far behind the end, again and again, is told where it goes on; that fills neither the log nor a topic.
func TestOffsetsFarBeyondTheEndDoNotFillTheDisk(t *testing.T) {
	var log fixture.Said
	w := run(t, func(c *gateway.Config) { c.Broker.Logger, c.Limits.Logger = zerolog.New(&log), zerolog.New(&log) })
	w.topic("T", 1)
	w.fill("T", 5)
	c := w.dial("broker")
	written := len(log.String())
	for range 2000 {
		a := c.ask(pulling("T", 100_000))
		require.Equal(t, remoting.ResponsePullOffsetMoved, a.Code)
		require.Equal(t, "5", ext(a, "nextBeginOffset"))
	}
	require.Less(t, len(log.String())-written, 10<<10)
}

// L75: a reader that wants one message of very many is told how far it has got, and goes on at once.
func TestARareTagIsReachedWithoutWaiting(t *testing.T) {
	w := run(t)
	w.topic("T", 1)
	c := w.dial("broker")
	const others = 3000
	for range others {
		r := sending("T", "x", "i", "TAGS\x01other")
		r.Flag |= remoting.FlagOneWay
		c.send(r)
	}
	w.settle(c.ask(sending("T", "wanted", "i", "TAGS\x01rare")))
	at, asked := 0, 0
	for ; ; asked++ {
		require.Less(t, asked, 100)
		a := c.ask(pulling("T", at, "sysFlag", "6", "suspendTimeoutMillis", "300000", "subscription", "rare"))
		if a.Code == remoting.ResponseSuccess {
			require.Equal(t, []string{"wanted"}, bodies(t, a))
			return
		}
		require.Equal(t, remoting.ResponsePullRetryImmediately, a.Code, a.Remark)
		next, err := strconv.Atoi(ext(a, "nextBeginOffset"))
		require.NoError(t, err)
		require.Greater(t, next, at, "it gets on")
		at = next
	}
}

// L77, L112: a committed offset and the end of a queue never go back over a restart of the node.
func TestOffsetsDoNotGoBackOverARestart(t *testing.T) {
	var cfg *gateway.Config
	w := run(t, func(c *gateway.Config) { cfg = c })
	w.topic("T", 1)
	w.fill("T", 5)
	low := 0
	for round := range 3 {
		c := w.dial("broker")
		a := c.ask(req(remoting.RequestQueryConsumerOffset, "consumerGroup", "g", "topic", "T", "queueId", "0"))
		if round > 0 {
			require.Equal(t, fmt.Sprint(low), ext(a, "offset"))
		}
		low = round + 3
		a = c.ask(req(remoting.RequestUpdateConsumerOffset, "consumerGroup", "g", "topic", "T", "queueId", "0", "commitOffset", fmt.Sprint(low)))
		require.Equal(t, remoting.ResponseSuccess, a.Code)
		require.Equal(t, "5", ext(c.ask(req(remoting.RequestGetMaxOffset, "topic", "T", "queueId", "0")), "offset"))
		require.NoError(t, w.node.Stop(t.Context()))
		again := actorSystem()
		var err error
		w.node, err = gateway.Start(again.Root, *cfg)
		require.NoError(t, err)
		t.Cleanup(again.Shutdown)
	}
}
