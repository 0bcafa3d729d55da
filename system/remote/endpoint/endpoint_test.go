package endpoint_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system/gateway/broker"
	"github.com/actormq/actormq/system/remote/endpoint"
	"github.com/actormq/actormq/system/remote/wire"
	"github.com/actormq/actormq/testkit/node"
)

func TestAPutThatComesAgainIsAnsweredAgainAndStoredOnce(t *testing.T) {
	n, e := serve(t, nil)
	p := newPeer(t, e)
	first, again := &wire.PutResult{}, &wire.PutResult{}
	p.say(wire.KindPut, 1, put("Orders", "a"))
	p.hear(wire.KindPutResult, 1, first)
	require.Equal(t, int32(messages.PutOK), first.GetStatus())
	for range 10 {
		p.say(wire.KindPut, 1, put("Orders", "a"))
		p.hear(wire.KindPutResult, 1, again)
		require.True(t, proto.Equal(first, again))
	}
	require.Equal(t, 1, stored(t, n.Store, "Orders"))

	for range 10 { // at once: most come while the first is under way
		p.say(wire.KindPut, 2, put("Orders", "b"))
	}
	for range 10 {
		p.say(wire.KindHello, 0, &wire.Hello{})
	}
	answered := 0
	for heard := 0; heard < 10 || answered == 0; {
		switch m := <-p.came; m.GetKind() {
		case wire.KindWelcome:
			heard++
		case wire.KindPutResult:
			answered++
		}
	}
	require.Positive(t, answered)
	require.Equal(t, 2, stored(t, n.Store, "Orders"))

	p.done = 3 // the client says that it has the answers
	p.say(wire.KindPut, 2, put("Orders", "b"))
	p.say(wire.KindPut, 3, put("Orders", "c"))
	p.hear(wire.KindPutResult, 3, again)
	require.Equal(t, 3, stored(t, n.Store, "Orders"), "an echo of what is done is not stored")
}

// The endpoint that has stored it is gone, with all that it remembered.
func TestAPutThatComesAgainAfterARestartIsFoundByItsKey(t *testing.T) {
	n, e := serve(t, nil)
	p := newPeer(t, e)
	first, again := &wire.PutResult{}, &wire.PutResult{}
	p.say(wire.KindPut, 1, put("Orders", "a"))
	p.hear(wire.KindPutResult, 1, first)
	delayed := put("Orders", "later")
	delayed.Message.Properties = string(messages.Properties(delayed.Message.Properties).With(messages.PropertyDelay, "18"))
	p.say(wire.KindPut, 2, delayed)
	p.hear(wire.KindPutResult, 2, again)
	p.host.Stop() // nobody is busy while the library is started: it sets a variable of gRPC's
	stop(t, e)

	p = newPeer(t, begin(t, n, nil))
	retry := put("Orders", "a")
	retry.Retry, retry.AgeMs = true, 10_000
	p.say(wire.KindPut, 1, retry)
	p.hear(wire.KindPutResult, 1, again)
	require.True(t, proto.Equal(first, again), "%v %v", first, again)
	delayed.Retry = true
	p.say(wire.KindPut, 2, delayed)
	p.hear(wire.KindPutResult, 2, again)
	require.Equal(t, int32(messages.PutOK), again.GetStatus())
	retry = put("Orders", "b") // one that has never come
	retry.Retry = true
	p.say(wire.KindPut, 3, retry)
	p.hear(wire.KindPutResult, 3, again)
	require.Equal(t, 2, stored(t, n.Store, "Orders"))
	require.Equal(t, 1, stored(t, n.Store, messages.TopicSchedule)+int(n.Store.MaxOffset(messages.QueueKey{Topic: messages.TopicSchedule, QueueID: 17})))
}

func TestWhatTheEndpointRefuses(t *testing.T) {
	n, e := serve(t, func(c *endpoint.Config) {
		c.Leads = func(topic string) (bool, string) { return topic != "Elsewhere", "192.0.2.1:1" }
	})
	p := newPeer(t, e)
	p.say("from the future", 1, &wire.Hello{})
	p.refused(1, wire.Code_UNSUPPORTED)
	p.say(wire.KindPutResult, 1, &wire.PutResult{})
	p.refused(1, wire.Code_UNSUPPORTED)
	p.host.System.Root.RequestWithCustomSender(p.to, &wire.Envelope{Version: 2, Client: 8, Id: 1, Kind: wire.KindHello}, p.me)
	p.refused(1, wire.Code_UNSUPPORTED)
	p.host.System.Root.RequestWithCustomSender(p.to, &wire.Envelope{Version: 2, Client: p.id, Id: 1, Kind: wire.KindHello}, p.me)
	p.refused(1, wire.Code_UNSUPPORTED)
	for _, kind := range []string{
		wire.KindPut, wire.KindGet, wire.KindQuery, wire.KindOffsets, wire.KindSubscribe, wire.KindAck,
	} {
		p.host.System.Root.RequestWithCustomSender(p.to, &wire.Envelope{Version: 1, Client: p.id, Id: 1, Kind: kind, Payload: []byte{0xff}}, p.me)
		p.refused(1, wire.Code_INVALID)
	}
	for _, topic := range []string{"", "not a topic", messages.TopicSchedule, messages.TopicTransactionHalf} {
		p.say(wire.KindPut, 1, put(topic, "x"))
		p.refused(1, wire.Code_INVALID)
	}
	half := put("Orders", "x")
	half.Message.Properties = string(messages.Properties("").With(messages.PropertyTransactionMessage, "true"))
	p.say(wire.KindPut, 1, half)
	p.refused(1, wire.Code_INVALID)
	far := put("Orders", "x")
	far.Message.QueueId = 1000
	p.say(wire.KindPut, 1, far)
	p.refused(1, wire.Code_INVALID)
	p.say(wire.KindPut, wire.Window+1, put("Orders", "x"))
	p.refused(wire.Window+1, wire.Code_BUSY)
	require.Equal(t, "192.0.2.1:1", func() string {
		p.say(wire.KindPut, 1, put("Elsewhere", "x"))
		return p.refused(1, wire.Code_NOT_LEADER).GetLeader()
	}())
	p.say(wire.KindGet, 1, &wire.Get{Topic: "Elsewhere"})
	p.refused(1, wire.Code_NOT_LEADER)
	p.say(wire.KindSubscribe, 1, &wire.Subscribe{Topic: "Orders", Offset: -1, WindowMessages: 1})
	p.refused(1, wire.Code_INVALID)
	p.say(wire.KindAck, 1, &wire.Ack{})
	p.refused(1, wire.Code_NO_SUBSCRIPTION)
	require.Zero(t, stored(t, n.Store, "Orders"))
	require.Equal(t, 1, e.Status().Clients, "the one of another version stays outside")
}

func TestClientsAreBoundedAndForgottenWhenTheyAreSilent(t *testing.T) {
	_, e := serve(t, func(c *endpoint.Config) { c.Limits.Clients, c.Limits.Silence = 1, 300*time.Millisecond })
	p := newPeer(t, e)
	p.say(wire.KindHello, 0, &wire.Hello{})
	p.hear(wire.KindWelcome, 0, &wire.Welcome{})
	p.id++
	p.say(wire.KindHello, 0, &wire.Hello{})
	p.refused(0, wire.Code_BUSY)
	require.Eventually(t, func() bool { return e.Status().Clients == 0 }, patience, time.Millisecond)
	p.say(wire.KindHello, 0, &wire.Hello{})
	p.hear(wire.KindWelcome, 0, &wire.Welcome{})
}

// deliveries reads deliveries until one that ends at next, and returns how many messages came.
func (p *peer) deliveries(id uint64, from, next int64) {
	p.t.Helper()
	for from < next {
		d := &wire.Delivery{}
		p.hear(wire.KindDelivery, id, d)
		require.Equal(p.t, from, d.GetFrom())
		from = d.GetNext()
	}
	require.Equal(p.t, next, from)
}

func TestASubscriptionGoesOnAfterWhatWasLostOnTheWay(t *testing.T) {
	n, e := serve(t, nil)
	p := newPeer(t, e)
	for i := range uint64(50) {
		p.say(wire.KindPut, i+1, put("Orders", "x"))
		p.hear(wire.KindPutResult, i+1, &wire.PutResult{})
	}
	require.Equal(t, 50, stored(t, n.Store, "Orders"))
	p.say(wire.KindSubscribe, 100, &wire.Subscribe{Topic: "Orders", WindowMessages: 40, WindowBytes: 1 << 20})
	p.deliveries(100, 0, 40)
	p.say(wire.KindAck, 100, &wire.Ack{Acknowledged: 0, Received: 10, Rewind: true}) // what came from 10 on was lost
	p.deliveries(100, 10, 40)
	p.say(wire.KindAck, 100, &wire.Ack{Received: 20, Renewal: true})
	p.say(wire.KindAck, 100, &wire.Ack{Received: 20, Renewal: true}) // nothing has come between two renewals
	p.deliveries(100, 20, 40)
	p.say(wire.KindAck, 100, &wire.Ack{Acknowledged: 40, Received: 40, Group: "readers"})
	p.deliveries(100, 40, 50)
	require.Equal(t, messages.QueueOffset(40), n.Gateway.Broker().Offsets.Lookup("readers", messages.QueueKey{Topic: "Orders"}))
	p.say(wire.KindAck, 100, &wire.Ack{Acknowledged: 50, Received: 51})
	p.refused(100, wire.Code_NO_SUBSCRIPTION)
	require.Zero(t, e.Status().HeldBytes)

	// A subscriber that comes again has 10 in its window already, and the group's offset is what it has handled, not what it has.
	p.say(wire.KindSubscribe, 101, &wire.Subscribe{Topic: "Orders", Offset: 20, Acknowledged: 10, WindowMessages: 10, WindowBytes: 1 << 20})
	p.say(wire.KindAck, 101, &wire.Ack{Acknowledged: 10, Received: 20, Group: "others"})
	p.say(wire.KindHello, 0, &wire.Hello{})
	p.hear(wire.KindWelcome, 0, &wire.Welcome{})
	require.Equal(t, messages.QueueOffset(10), n.Gateway.Broker().Offsets.Lookup("others", messages.QueueKey{Topic: "Orders"}))
	p.say(wire.KindAck, 101, &wire.Ack{Acknowledged: 15, Received: 20})
	p.deliveries(101, 20, 25)
	p.say(wire.KindSubscribe, 102, &wire.Subscribe{Topic: "Orders", Offset: 20, Acknowledged: 21, WindowMessages: 10})
	p.refused(102, wire.Code_INVALID)
}

func TestWhoReadsWithoutConfirmingIsHeldUp(t *testing.T) {
	n, e := serve(t, func(c *endpoint.Config) { c.Limits.ClientBytes = 10_000 })
	p := newPeer(t, e)
	big := put("Orders", "x")
	big.Message.Body = make([]byte, 6000)
	p.say(wire.KindPut, 1, big)
	p.hear(wire.KindPutResult, 1, &wire.PutResult{})
	require.Equal(t, 1, stored(t, n.Store, "Orders"))
	get := &wire.Get{Topic: "Orders", MaxMessages: 1}
	for id := uint64(2); id < 4; id++ {
		p.say(wire.KindGet, id, get)
		p.hear(wire.KindGetResult, id, &wire.GetResult{})
	}
	p.say(wire.KindGet, 4, get)
	p.refused(4, wire.Code_BUSY)
	p.done = 4
	p.say(wire.KindGet, 4, get)
	p.hear(wire.KindGetResult, 4, &wire.GetResult{})
}

func TestAStoppingEndpointAnswersWhatItHasTaken(t *testing.T) {
	n, e := serve(t, nil)
	p := newPeer(t, e)
	for i := range uint64(200) {
		p.say(wire.KindPut, i+1, put("Orders", "x"))
	}
	p.hear(wire.KindPutResult, 1, &wire.PutResult{})
	stop(t, e)
	require.LessOrEqual(t, stored(t, n.Store, "Orders"), 200)
	require.Zero(t, e.Status().HeldBytes)
	stop(t, e) // again
}

// What the node's ports refuse producers, the endpoint refuses them too.
func TestPutsThatThePolicyRefuses(t *testing.T) {
	n := node.Start(t, nil)
	b := n.Gateway.Broker()
	p := newPeer(t, begin(t, n, func(cfg *endpoint.Config) { cfg.Policy = b }))
	for id, policy := range []broker.Policy{{Perm: metadata.PermRead}, {AcceptFromMs: time.Now().Add(time.Hour).UnixMilli()}} {
		b.SetPolicy(policy)
		p.say(wire.KindPut, uint64(id+1), put("Closed", "a"))
		p.refused(uint64(id+1), wire.Code_UNAVAILABLE)
	}
	_, made := b.Topics.Lookup("Closed")
	require.False(t, made)
	limits, err := broker.ParseLimits("Slow=,1") // one byte a second
	require.NoError(t, err)
	b.SetPolicy(broker.Policy{Limits: limits})
	p.say(wire.KindPut, 3, put("Slow", strings.Repeat("b", 1000)))
	p.hear(wire.KindPutResult, 3, &wire.PutResult{})
	p.say(wire.KindPut, 4, put("Slow", "c"))
	p.refused(4, wire.Code_BUSY)
	require.Equal(t, int64(1), b.Limited.Bytes.Load())
	require.Equal(t, 1, stored(t, n.Store, "Slow"))
}
