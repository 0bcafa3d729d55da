package gateway_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	edge "github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/system/gateway/vouch"
	"github.com/actormq/actormq/testkit/fixture"
)

// Who is where: all on one machine, so that no address is another machine's own.
const (
	clientHost   = "127.0.0.5"
	followerHost = "127.0.0.3"
	leaderAt     = "127.0.0.1:10911" // as the leader tells the group
	epoch        = 7
)

var trusting = &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}

// inGroup makes a node one of a group; secret nil: it is of a version that knows none.
func inGroup(id string, secret *vouch.Secret, leader func() *world) func(*gateway.Config) {
	return func(c *gateway.Config) {
		c.Group = &gateway.Group{
			Name: "group", ID: id, Nodes: []string{"1", "2"}, Leaderless: func() bool { return false },
			Leader: func() (string, <-chan struct{}) { return leaderAt, make(chan struct{}) },
			Dial: func(ctx context.Context, _ string, secure bool) (net.Conn, error) {
				at, d := leader().node.Addr("broker").String(), net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(followerHost)}}
				if secure {
					return (&tls.Dialer{NetDialer: &d, Config: trusting}).DialContext(ctx, "tcp", at)
				}
				return d.DialContext(ctx, "tcp", at)
			},
		}
		if c.Group.Epoch = epoch; secret != nil {
			c.Group.Secret = func() *vouch.Secret { return secret }
		}
		if c.Broker.BrokerID = 0; id != "1" {
			c.Group.Epoch, c.Broker.BrokerID = 0, 2
		}
	}
}

// admitting gives a node access rules.
func admitting(t *testing.T, rules string) func(*gateway.Config) {
	return func(c *gateway.Config) {
		c.ACLFile = "conf/plain_acl.yml"
		require.NoError(t, metadata.WriteText(c.Disk, c.ACLFile, []byte(rules)))
	}
}

func white(host string) string { return "globalWhiteRemoteAddresses: [" + host + "]\n" }

// couple is a leader and a node that relays to it, each with a secret and rules of its own.
func couple(t *testing.T, leads, relays *vouch.Secret, leaderRules, relayRules string) (leader, follower *world) {
	t.Helper()
	at := func() *world { return leader }
	leader = run(t, inGroup("1", leads, at), admitting(t, leaderRules))
	follower = run(t, inGroup("2", relays, at), admitting(t, relayRules))
	leader.topic("T", 1)
	return leader, follower
}

// dialFrom connects from an address of this machine.
func (w *world) dialFrom(host string) *client {
	w.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}}
	sock, err := d.Dial("tcp", w.node.Addr("broker").String())
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = sock.Close() })
	return &client{t: w.t, sock: sock, in: bufio.NewReader(sock)}
}

// born is where the last message of the topic was born.
func (w *world) born(answer *remoting.Command) netip.AddrPort {
	w.t.Helper()
	require.Equal(w.t, remoting.ResponseSuccess, answer.Code, answer.Remark)
	_, at, err := messages.ParseOffsetMessageID(ext(answer, "msgId"))
	require.NoError(w.t, err)
	m, err := w.store.MessageAt(at)
	require.NoError(w.t, err)
	return m.BornHost
}

func (c *client) local() netip.AddrPort { return c.sock.LocalAddr().(*net.TCPAddr).AddrPort() }

func TestAClientThatComesByAFollowerHasItsOwnAddressAtTheLeader(t *testing.T) {
	secret := vouch.NewSecret()
	rules := white(clientHost) + "accounts:\n- accessKey: Relayed01\n  secretKey: Relayed0001\n  whiteRemoteAddress: 127.0.0.6\n"
	leader, follower := couple(t, secret, secret, rules, rules)
	c := follower.dialFrom(clientHost)
	require.Equal(t, c.local(), leader.born(c.ask(sending("T", "m"))))
	require.Equal(t, remoting.ResponseSuccess, c.ask(beating("id", "g", "T", 1)).Code)
	online := leader.node.Broker().Clients
	leader.eventually(func() bool { g := online.Consumers("g"); return g != nil && len(g.Clients) == 1 })
	require.Equal(t, c.local().String(), online.Consumers("g").Clients[0].Channel.RemoteAddr())

	byAccount := func(host string) *remoting.Command {
		r := sending("T", "m")
		r.Sign("Relayed01", "not its secret")
		return follower.dialFrom(host).ask(r)
	}
	require.Equal(t, remoting.ResponseSuccess, byAccount("127.0.0.6").Code, "from its address an account is not asked any further")
	require.Equal(t, remoting.ResponseSystemError, byAccount("127.0.0.7").Code)
	require.EqualValues(t, 2, leader.node.Broker().Relayed.Proved.Load(), "once a connection; what the follower refuses does not come")
	require.EqualValues(t, 0, leader.node.Broker().Relayed.Refused.Load())
}

// Where the nodes of a group are named by the rules, as before nodes could prove for whom they relay, that lets nobody in any more.
func TestTheAddressOfAFollowerIsNotEnough(t *testing.T) {
	secret := vouch.NewSecret()
	leader, follower := couple(t, secret, secret, white(followerHost), white(clientHost))
	a := follower.dialFrom(clientHost).ask(sending("T", "m"))
	require.Equal(t, remoting.ResponseSystemError, a.Code)
	require.Contains(t, a.Remark, "No accessKey is configured")
	require.EqualValues(t, 0, leader.store.MaxOffset(messages.QueueKey{Topic: "T"}))
}

// In a rolling upgrade one of the two is of a version before: then the follower's address counts, as it did.
func TestWithoutAProofTheFollowersAddressCounts(t *testing.T) {
	for what, of := range map[string][2]*vouch.Secret{
		"an old follower": {vouch.NewSecret(), nil}, "an old leader": {nil, vouch.NewSecret()}, "both": {nil, nil},
	} {
		t.Run(what, func(t *testing.T) {
			leader, follower := couple(t, of[0], of[1], white(followerHost), white(clientHost))
			require.Equal(t, followerHost, leader.born(follower.dialFrom(clientHost).ask(sending("T", "m"))).Addr().String())
			require.EqualValues(t, 0, leader.node.Broker().Relayed.Proved.Load()+leader.node.Broker().Relayed.Refused.Load())
		})
	}
}

// A leader that knows nothing of relaying at all.
func TestALeaderThatRefusesTheHelloIsRelayedToAllTheSame(t *testing.T) {
	leader := run(t)
	leader.topic("T", 1)
	follower := run(t, inGroup("2", vouch.NewSecret(), func() *world { return leader }))
	require.Equal(t, followerHost, leader.born(follower.dialFrom(clientHost).ask(sending("T", "m"))).Addr().String())
}

// relay is a connection to a leader as a node that relays makes it, by hand.
type relay struct {
	*client
	claim vouch.Claim
}

// asked begins a connection that the leader has asked for a proof.
func (w *world) asked(c *client) *relay {
	w.t.Helper()
	a := c.ask(req(remoting.RequestRelayBroker, "vouch", "true"))
	require.Equal(w.t, remoting.ResponseSuccess, a.Code)
	r := &relay{c, vouch.Claim{Cluster: "group", Epoch: epoch, Leader: leaderAt, Node: "2", Client: netip.MustParseAddrPort("10.1.2.3:4567")}}
	require.Equal(w.t, strconv.Itoa(epoch), ext(a, "epoch"))
	n, err := hex.Decode(r.claim.Nonce[:], []byte(ext(a, "nonce")))
	require.NoError(w.t, err)
	require.Equal(w.t, len(r.claim.Nonce), n)
	return r
}

// hello is what claims and proves a claim.
func hello(s *vouch.Secret, c vouch.Claim) *remoting.Command {
	h := vouch.Hello{Node: c.Node, Client: c.Client, TLS: c.TLS, Proof: s.Prove(c)}
	r := req(remoting.RequestRelayHello)
	r.Body = h.Append(nil)
	return r
}

// Whoever does not prove what it says loses its connection, and what it sends behind comes to nothing, whatever address it claims.
func TestAHelloThatProvesNothingHasNoEffect(t *testing.T) {
	secret := vouch.NewSecret()
	var said fixture.Said
	leader := run(t, inGroup("1", secret, nil), admitting(t, white("10.1.2.3, 127.0.0.1")), func(c *gateway.Config) { // both could send
		c.Broker.Logger = zerolog.New(&said)
	})
	leader.topic("T", 1)
	var refused int64
	refuse := func(what string, c *client, hello *remoting.Command) {
		t.Helper()
		both, err := hello.Append(nil)
		require.NoError(t, err)
		both, err = sending("T", "m").Append(both)
		require.NoError(t, err)
		_, err = c.sock.Write(both)
		require.NoError(t, err)
		c.gone()
		refused++
		require.Equal(t, refused, leader.node.Broker().Relayed.Refused.Load(), what)
		require.EqualValues(t, 0, leader.store.MaxOffset(messages.QueueKey{Topic: "T"}), what)
	}
	good := func() *relay { return leader.asked(leader.dial("broker")) }
	for what, change := range map[string]func(*vouch.Claim){
		"another cluster": func(c *vouch.Claim) { c.Cluster = "other" }, "another epoch": func(c *vouch.Claim) { c.Epoch++ },
		"another leader": func(c *vouch.Claim) { c.Leader = "10.0.0.9:10911" }, "a node that is none": func(c *vouch.Claim) { c.Node = "9" },
		"another nonce": func(c *vouch.Claim) { c.Nonce[0]++ }, "a channel that is none": func(c *vouch.Claim) { c.Channel = make([]byte, 32) },
		"an encrypted client in the clear": func(c *vouch.Claim) { c.TLS = true },
	} {
		r := good()
		change(&r.claim)
		refuse(what, r.client, hello(secret, r.claim))
	}
	r := good()
	refuse("another secret", r.client, hello(vouch.NewSecret(), r.claim))
	r = good()
	h := hello(secret, r.claim)
	const address = 4 // behind the version, the node and the two lengths
	h.Body[address] ^= 1
	refuse("an address that was changed on the way", r.client, h)
	for what, body := range map[string][]byte{"nothing": nil, "garbage": []byte("garbage"), "a megabyte": make([]byte, 1<<20)} {
		h := req(remoting.RequestRelayHello)
		h.Body = body
		refuse(what, good().client, h)
	}
	first, second := good(), good()
	replayed := hello(secret, first.claim)
	require.Equal(t, remoting.ResponseSuccess, first.ask(hello(secret, first.claim)).Code)
	refuse("another connection's", second.client, replayed)
	refuse("one that nobody has asked for", leader.dial("broker"), hello(secret, first.claim))
	require.NotContains(t, said.String(), secret.Text())
	require.Contains(t, said.String(), "its connection is closed")
}

// A nonce serves once, and so does a hello: the connection is that of one client.
func TestAHelloIsSaidOnce(t *testing.T) {
	secret := vouch.NewSecret()
	leader := run(t, inGroup("1", secret, nil), admitting(t, white("10.1.2.3")))
	leader.topic("T", 1)
	r := leader.asked(leader.dial("broker"))
	require.Equal(t, remoting.ResponseSuccess, r.ask(hello(secret, r.claim)).Code)
	require.Equal(t, r.claim.Client, leader.born(r.ask(sending("T", "m"))))
	again := r.ask(req(remoting.RequestRelayBroker, "vouch", "true"))
	require.Equal(t, []any{remoting.ResponseSuccess, ""}, []any{again.Code, ext(again, "nonce")}, "nothing is asked any more")
	r.send(hello(secret, r.claim))
	r.gone()
	require.EqualValues(t, 1, leader.node.Broker().Relayed.Refused.Load())

	r = leader.asked(leader.dial("broker"))
	old := r.claim
	r = leader.asked(r.client)
	require.NotEqual(t, old.Nonce, r.claim.Nonce)
	r.send(hello(secret, old))
	r.gone()
}

func TestAClientInIPv6HasItsOwnAddressAtTheLeader(t *testing.T) {
	secret := vouch.NewSecret()
	leader := run(t, inGroup("1", secret, nil), admitting(t, white("2001:db8::*")))
	leader.topic("T", 1)
	r := leader.asked(leader.dial("broker"))
	r.claim.Client = netip.MustParseAddrPort("[2001:db8::5]:4567")
	require.Equal(t, remoting.ResponseSuccess, r.ask(hello(secret, r.claim)).Code)
	require.Equal(t, r.claim.Client, leader.born(r.ask(sending("T", "m"))))
}

// Under TLS a proof is between the two ends of one connection: whoever stands between them, with a certificate that nobody verifies, can't take
// it from the one to the other.
func TestAProofIsOfItsTLS(t *testing.T) {
	secret := vouch.NewSecret()
	var leader *world
	at := func() *world { return leader }
	secure := func(c *gateway.Config) { c.TLSMode = edge.TLSPermissive }
	leader = run(t, inGroup("1", secret, at), admitting(t, white(clientHost)), secure)
	leader.topic("T", 1)
	follower := run(t, inGroup("2", secret, at), admitting(t, white(clientHost)), secure)
	d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(clientHost)}}
	sock, err := tls.DialWithDialer(d, "tcp", follower.node.Addr("broker").String(), trusting)
	require.NoError(t, err)
	defer func() { _ = sock.Close() }()
	c := &client{t: t, sock: sock, in: bufio.NewReader(sock)}
	require.Equal(t, c.local(), leader.born(c.ask(sending("T", "m"))))

	channel := func(c *client) []byte {
		state := c.sock.(*tls.Conn).ConnectionState()
		known, err := state.ExportKeyingMaterial("EXPORTER-actormq-relay", nil, 32)
		require.NoError(t, err)
		return known
	}
	between, node := leader.asked(leader.dialTLS("broker", trusting)), leader.dialTLS("broker", trusting)
	between.claim.TLS, between.claim.Channel = true, channel(between.client)
	require.Equal(t, remoting.ResponseSuccess, between.ask(hello(secret, between.claim)).Code)
	for what, other := range map[string][]byte{"another connection": channel(node), "in the clear": nil} {
		between = leader.asked(leader.dialTLS("broker", trusting))
		between.claim.TLS, between.claim.Channel = true, other
		between.send(hello(secret, between.claim))
		between.gone()
		require.NotZero(t, leader.node.Broker().Relayed.Refused.Load(), what)
	}
}

// What a client sends costs no more by a connection that has proved whose it is: the proof is one of the connection.
func TestAProofIsAskedForOnceAConnection(t *testing.T) {
	secret := vouch.NewSecret()
	leader, follower := couple(t, secret, secret, white(clientHost), white(clientHost))
	c := follower.dialFrom(clientHost)
	for range 100 {
		require.Equal(t, remoting.ResponseSuccess, c.ask(sending("T", "m")).Code)
	}
	require.EqualValues(t, 1, leader.node.Broker().Relayed.Proved.Load())
	require.Equal(t, "100", fmt.Sprint(follower.node.Broker().Relayed.All.Load()))
}
