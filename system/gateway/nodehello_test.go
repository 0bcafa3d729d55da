package gateway_test

import (
	"context"
	"encoding/hex"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	edge "github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	remote "github.com/actormq/actormq/system/client"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/system/gateway/vouch"
	"github.com/actormq/actormq/testkit/fixture"
)

// namesAt is where the others reach the name server of node 1.
const namesAt = "127.0.0.1:9876"

// askedNode is a node of a group, and its rules name nobody who is here.
func askedNode(t *testing.T, secret *vouch.Secret, change ...func(*gateway.Config)) *world {
	t.Helper()
	w := run(t, append([]func(*gateway.Config){
		inGroup("1", secret, nil), admitting(t, white("10.1.2.3")), func(c *gateway.Config) { c.Group.NameServer = namesAt },
	}, change...)...)
	w.topic("T", 1)
	return w
}

// asking is what a node asks another one by.
func (w *world) asking(g *gateway.Group, change ...func(*remote.Options)) *remote.Client {
	ports, d := map[string]string{leaderAt: "broker", namesAt: "namesrv"}, net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(followerHost)}}
	opt := remote.Options{Greet: g.Greet, Dial: func(ctx context.Context, address string) (net.Conn, error) {
		return d.DialContext(ctx, "tcp", w.node.Addr(ports[address]).String())
	}}
	for _, f := range change {
		f(&opt)
	}
	c := remote.New(opt)
	w.t.Cleanup(c.Close)
	return c
}

// code is that of the answer.
func (w *world) code(c *remote.Client, address string, request *remoting.Command) int {
	w.t.Helper()
	answer, err := c.Call(w.t.Context(), address, request)
	require.NoError(w.t, err)
	return answer.Code
}

func other(id string, secret func() *vouch.Secret) *gateway.Group {
	return &gateway.Group{Name: "group", ID: id, Nodes: []string{"1"}, Secret: secret}
}

func always(s *vouch.Secret) func() *vouch.Secret { return func() *vouch.Secret { return s } }

// ownRequests are those that a node of a group makes for itself, by where it makes them.
func ownRequests(t *testing.T) map[string][]*remoting.Command {
	broker := remoting.BrokerHeader{BrokerName: "broker-b", BrokerAddr: "10.0.0.2:10911", ClusterName: "c", BrokerID: 2}
	h := remoting.RegisterBrokerHeader{BrokerName: "broker-b", BrokerAddr: broker.BrokerAddr, ClusterName: "c", BrokerID: 2}
	body, err := (&remoting.RegisterBrokerBody{FilterServerList: []string{}}).Encode(&h, false)
	require.NoError(t, err)
	register := remoting.NewRequest(remoting.RequestRegisterBroker, &h)
	register.Body = body
	return map[string][]*remoting.Command{
		namesAt: {register, remoting.NewRequest(remoting.RequestUnregisterBroker, &broker)},
		leaderAt: {
			req(remoting.RequestGetAllTopicConfig), req(remoting.RequestGetAllConsumerOffset), req(remoting.RequestGetAllSubscriptionGroupConfig),
		},
	}
}

// Rules of access do not name the nodes, which have no accounts: what they ask of each other they are allowed, and nothing else.
func TestNodesOfAGroupNeedNoRulesForWhatTheyAskOfEachOther(t *testing.T) {
	for what, tls := range map[string]bool{"in the clear": false, "under TLS": true} {
		t.Run(what, func(t *testing.T) {
			secret := vouch.NewSecret()
			w := askedNode(t, secret, func(c *gateway.Config) { c.TLSMode = edge.TLSPermissive })
			secure := func(o *remote.Options) {
				if tls {
					o.TLS = trusting
				}
			}
			node, stranger := w.asking(other("2", always(secret)), secure), w.asking(nil, secure)
			for address, all := range ownRequests(t) {
				for _, r := range all {
					require.Equal(t, remoting.ResponseSystemError, w.code(stranger, address, r), "%v", r)
					require.Equal(t, remoting.ResponseSuccess, w.code(node, address, r), "%v", r)
				}
			}
			for address, r := range map[string]*remoting.Command{
				leaderAt: sending("T", "m"), namesAt: req(remoting.RequestWipeWritePermOfBroker, "brokerName", "broker-a"),
			} {
				require.Equal(t, remoting.ResponseSystemError, w.code(node, address, r), "%v", r)
			}
			require.Equal(t, remoting.ResponseSystemError, w.code(node, leaderAt, req(remoting.RequestDrainBroker, "graceMillis", "0")))
			require.EqualValues(t, 0, w.node.Broker().Relayed.Refused.Load())
		})
	}
}

// A node goes on asking by the connection that it has, and proves who it is once both know how.
func TestANodeThatLearnsTheSecretLaterProvesItThen(t *testing.T) {
	secret := vouch.NewSecret()
	var theirs, ours atomic.Pointer[vouch.Secret]
	w := askedNode(t, nil, func(c *gateway.Config) { c.Group.Secret = theirs.Load })
	node := w.asking(other("2", ours.Load))
	ask := func() int { return w.code(node, leaderAt, req(remoting.RequestGetAllTopicConfig)) }
	require.Equal(t, remoting.ResponseSystemError, ask())
	ours.Store(secret)
	require.Equal(t, remoting.ResponseSystemError, ask(), "nobody asks for the proof")
	theirs.Store(secret)
	require.Equal(t, remoting.ResponseSuccess, ask())
	require.Equal(t, 1, w.node.Connections())
}

// A node of an earlier version is asked as before, and a name server that is none of the group's is told nothing: RocketMQ's would not answer.
func TestWhoIsNotOfTheGroupIsAskedAsBefore(t *testing.T) {
	group := other("2", always(vouch.NewSecret()))
	w := run(t, admitting(t, white(followerHost)))
	require.Equal(t, remoting.ResponseSuccess, w.code(w.asking(group), leaderAt, req(remoting.RequestGetAllTopicConfig)))

	open := run(t, inGroup("1", vouch.NewSecret(), nil)) // and it has another secret
	require.Equal(t, remoting.ResponseSuccess, open.code(open.asking(group), leaderAt, req(remoting.RequestGetAllTopicConfig)), "who has no rules asks for no proof")

	group.Plain = []string{namesAt}
	done, err := group.Greet(t.Context(), namesAt, nil, func(context.Context, *remoting.Command) (*remoting.Command, error) {
		require.Fail(t, "it is asked")
		return nil, nil
	})
	require.True(t, done)
	require.NoError(t, err)
}

// challenged begins a hello of node 2 by hand.
func (w *world) challenged(port, address string) *relay {
	w.t.Helper()
	c := w.dial(port)
	a := c.ask(req(remoting.RequestNodeHello))
	require.Equal(w.t, remoting.ResponseSuccess, a.Code)
	r := &relay{c, vouch.Claim{Cluster: "group", Leader: address, Node: "2", Self: true, Client: vouch.Nobody}}
	n, err := hex.Decode(r.claim.Nonce[:], []byte(ext(a, "nonce")))
	require.NoError(w.t, err)
	require.Equal(w.t, len(r.claim.Nonce), n)
	return r
}

// as is a hello by another request.
func as(code int, hello *remoting.Command) *remoting.Command {
	r := req(code)
	r.Body = hello.Body
	return r
}

// Whoever does not prove that it is a node loses its connection, and what it asks behind comes to nothing.
func TestANodeHelloThatProvesNothingHasNoEffect(t *testing.T) {
	secret := vouch.NewSecret()
	var said fixture.Said
	w := askedNode(t, secret, func(c *gateway.Config) { c.Broker.Logger = zerolog.New(&said) })
	for range 20 { // what clients cause leaves these lines alone
		w.node.Broker().Noise.Warn().Msg("a client's")
	}
	var refused int64
	refuse := func(what string, c *client, hello *remoting.Command) {
		t.Helper()
		both, err := hello.Append(nil)
		require.NoError(t, err)
		both, err = req(remoting.RequestGetAllTopicConfig).Append(both)
		require.NoError(t, err)
		_, err = c.sock.Write(both)
		require.NoError(t, err)
		c.gone()
		refused++
		require.Equal(t, refused, w.node.Broker().Relayed.Refused.Load(), what)
	}
	good := func() *relay { return w.challenged("broker", leaderAt) }
	proof := func(c vouch.Claim) *remoting.Command { return as(remoting.RequestNodeHello, hello(secret, c)) }
	for what, change := range map[string]func(*vouch.Claim){
		"another cluster": func(c *vouch.Claim) { c.Cluster = "other" }, "another node's": func(c *vouch.Claim) { c.Leader = "10.0.0.9:10911" },
		"another port's": func(c *vouch.Claim) { c.Leader = namesAt }, "an epoch": func(c *vouch.Claim) { c.Epoch = epoch },
		"a node that is none": func(c *vouch.Claim) { c.Node = "9" }, "this node": func(c *vouch.Claim) { c.Node = "1" },
		"another nonce": func(c *vouch.Claim) { c.Nonce[0]++ }, "a client's": func(c *vouch.Claim) { c.Self = false },
		"a channel that is none": func(c *vouch.Claim) { c.Channel = make([]byte, 32) }, "encrypted in the clear": func(c *vouch.Claim) { c.TLS = true },
	} {
		r := good()
		change(&r.claim)
		refuse(what, r.client, proof(r.claim))
	}
	r := good()
	refuse("another secret", r.client, as(remoting.RequestNodeHello, hello(vouch.NewSecret(), r.claim)))
	for what, body := range map[string][]byte{"garbage": []byte("garbage"), "a megabyte": make([]byte, 1<<20)} {
		h := req(remoting.RequestNodeHello)
		h.Body = body
		refuse(what, good().client, h)
	}
	first, second := good(), good()
	require.Equal(t, remoting.ResponseSuccess, first.ask(proof(first.claim)).Code)
	require.Equal(t, remoting.ResponseSuccess, first.ask(req(remoting.RequestGetAllTopicConfig)).Code)
	refuse("another connection's", second.client, proof(first.claim))
	refuse("a second time", first.client, proof(first.claim))
	refuse("one that nobody has asked for", w.dial("broker"), proof(first.claim))
	names := w.challenged("namesrv", leaderAt)
	refuse("the broker's at the name server", names.client, proof(names.claim))
	require.NotContains(t, said.String(), secret.Text())
	require.Contains(t, said.String(), "says that it is a node of this group")
}

// What is proved of a client makes nobody a node, and the reverse: neither by the other's request, nor on the other's connection.
func TestAProofOfANodeIsNoneOfAClientAndTheReverse(t *testing.T) {
	secret := vouch.NewSecret()
	w := askedNode(t, secret)
	relays := w.asked(w.dial("broker"))
	relays.claim.Client = netip.MustParseAddrPort("10.9.9.9:1")
	relays.send(as(remoting.RequestNodeHello, hello(secret, relays.claim)))
	relays.gone()

	node := w.challenged("broker", leaderAt)
	node.send(hello(secret, node.claim))
	node.gone()

	relays = w.asked(w.dial("broker"))
	relays.claim.Client = netip.MustParseAddrPort("10.9.9.9:1")
	require.Equal(t, remoting.ResponseSuccess, relays.ask(hello(secret, relays.claim)).Code)
	require.Empty(t, ext(relays.ask(req(remoting.RequestNodeHello)), "nonce"), "whoever relays does not ask for itself")
	require.Equal(t, remoting.ResponseSystemError, relays.ask(req(remoting.RequestGetAllTopicConfig)).Code)

	node = w.challenged("broker", leaderAt)
	require.Equal(t, remoting.ResponseSuccess, node.ask(as(remoting.RequestNodeHello, hello(secret, node.claim))).Code)
	relays = w.asked(node.client)
	relays.claim.Client = netip.MustParseAddrPort("10.9.9.9:1")
	require.Equal(t, remoting.ResponseSuccess, relays.ask(hello(secret, relays.claim)).Code)
	require.Equal(t, remoting.ResponseSystemError, relays.ask(req(remoting.RequestGetAllTopicConfig)).Code, "its client is no node")
}

// A node whom the leader does not believe for whom it relays says so itself, once, however often it tries.
func TestANodeThatIsNotBelievedSaysSoOnce(t *testing.T) {
	var said fixture.Said
	leader := askedNode(t, vouch.NewSecret())
	follower := run(t, inGroup("2", vouch.NewSecret(), func() *world { return leader }), func(c *gateway.Config) {
		c.Limits.Logger = zerolog.New(&said)
	})
	for range 20 { // lines that anybody can cause, more than there are in a minute
		c := follower.dial("broker")
		_, err := c.sock.Write([]byte{0xff, 0xff, 0xff, 0xff})
		require.NoError(t, err)
		c.gone()
	}
	for range 2 {
		follower.dialFrom(clientHost).send(sending("T", "m"))
	}
	refused := &leader.node.Broker().Relayed.Refused
	leader.eventually(func() bool { return refused.Load() >= 6 })
	require.Equal(t, 1, strings.Count(said.String(), "does not believe"))
}

// What was sent behind a hello that proves nothing is not done, also where the peer's own address would be enough for it.
func TestWhatComesBehindAWrongNodeHelloIsNotDone(t *testing.T) {
	secret := vouch.NewSecret()
	w := run(t, inGroup("1", secret, nil), admitting(t, white("127.0.0.1")))
	w.topic("T", 1)
	r := w.challenged("broker", leaderAt)
	all, err := as(remoting.RequestNodeHello, hello(vouch.NewSecret(), r.claim)).Append(nil)
	require.NoError(t, err)
	all, err = sending("T", "m").Append(all)
	require.NoError(t, err)
	_, err = r.sock.Write(all)
	require.NoError(t, err)
	r.gone()
	w.eventually(func() bool { return w.node.Connections() == 0 }) // its reader has ended
	require.EqualValues(t, 0, w.store.MaxOffset(messages.QueueKey{Topic: "T"}))
}
