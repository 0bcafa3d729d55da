package endpoint_test

import (
	"context"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/remote"
	"github.com/actormq/actormq/system/remote/endpoint"
	"github.com/actormq/actormq/system/remote/wire"
	"github.com/actormq/actormq/testkit/node"
)

// patience is how long a test waits for what has to come.
const patience = 20 * time.Second

// serve starts a node and its endpoint.
func serve(t *testing.T, change func(*endpoint.Config)) (*node.Node, *endpoint.Endpoint) {
	t.Helper()
	n := node.Start(t, nil)
	return n, begin(t, n, change)
}

// begin starts an endpoint of a node; it stops with the test, or before.
func begin(t *testing.T, n *node.Node, change func(*endpoint.Config)) *endpoint.Endpoint {
	t.Helper()
	cfg := endpoint.Config{
		Remote: remote.Config{Listen: "127.0.0.1:0"}, Store: n.Store, Topics: n.Gateway.Broker().Topics, Offsets: n.Gateway.Broker().Offsets,
		Logger: zerolog.Nop(),
	}
	if change != nil {
		change(&cfg)
	}
	e, err := endpoint.Start(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { stop(t, e) })
	return e
}

func stop(t *testing.T, e *endpoint.Endpoint) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, e.Stop(ctx))
}

// peer speaks the protocol, envelope by envelope.
type peer struct {
	t    *testing.T
	host *remote.Host
	me   *actor.PID
	to   *actor.PID
	came chan *wire.Envelope
	id   uint64 // of the client
	done uint64
}

func newPeer(t *testing.T, e *endpoint.Endpoint) *peer {
	t.Helper()
	p := &peer{t: t, to: actor.NewPID(e.Address(), wire.EndpointName), came: make(chan *wire.Envelope, 10_000), id: 7, done: 1}
	var err error
	p.host, err = remote.Start(remote.Config{Listen: "127.0.0.1:0", Open: []string{"peer"}, Logger: zerolog.Nop()})
	require.NoError(t, err)
	t.Cleanup(p.host.Stop)
	p.me, err = p.host.System.Root.SpawnNamed(actor.PropsFromFunc(func(c actor.Context) {
		if m, ok := c.Message().(*wire.Envelope); ok {
			p.came <- m
			p.host.Handled(c.Sender().GetAddress(), 1, proto.Size(m))
		}
	}), "peer")
	require.NoError(t, err)
	return p
}

func (p *peer) say(kind string, id uint64, payload proto.Message) {
	p.t.Helper()
	e, err := wire.Pack(kind, p.id, id, payload)
	require.NoError(p.t, err)
	e.Done = p.done
	p.host.System.Root.RequestWithCustomSender(p.to, e, p.me)
}

// hear waits for the next envelope, which must be of a kind, and reads it.
func (p *peer) hear(kind string, id uint64, into proto.Message) {
	p.t.Helper()
	select {
	case e := <-p.came:
		if e.GetKind() == wire.KindRefused && kind != wire.KindRefused {
			r := &wire.Refused{}
			require.NoError(p.t, wire.Unpack(e, r))
			require.Fail(p.t, "refused", "%v", r)
		}
		require.Equal(p.t, kind, e.GetKind())
		require.Equal(p.t, id, e.GetId())
		require.NoError(p.t, wire.Unpack(e, into))
	case <-time.After(patience):
		require.FailNow(p.t, "nothing came", "want %s", kind)
	}
}

// refused waits for a refusal.
func (p *peer) refused(id uint64, code wire.Code) *wire.Refused {
	p.t.Helper()
	r := &wire.Refused{}
	p.hear(wire.KindRefused, id, r)
	require.Equal(p.t, code, r.GetCode(), r.GetText())
	return r
}

// put is a put of a message with a unique key.
func put(topic, key string) *wire.Put {
	return &wire.Put{TimeoutMs: 10_000, Message: &wire.Message{
		Topic: topic, Body: []byte(key), Properties: string(messages.Properties("").With(messages.PropertyUniqKey, key)),
	}}
}

// stored is how many messages queue 0 of a topic has.
func stored(t *testing.T, s *system.Store, topic string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, s.AwaitDispatched(ctx))
	return int(s.MaxOffset(messages.QueueKey{Topic: topic}))
}
