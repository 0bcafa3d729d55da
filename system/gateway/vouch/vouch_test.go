package vouch_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/system/gateway/vouch"
)

// clients are addresses that a node may tell of.
var clients = []string{"10.1.2.3:4567", "[2001:db8::5]:65535", "127.0.0.1:1", "[::1]:0"}

func hello(client string) vouch.Hello {
	h := vouch.Hello{Node: "2", Client: netip.MustParseAddrPort(client), TLS: true}
	h.Proof[0], h.Proof[31] = 1, 2
	return h
}

func TestAHelloIsReadAsItWasWritten(t *testing.T) {
	for _, client := range clients {
		h := hello(client)
		require.NoError(t, h.Valid())
		got, err := vouch.Parse(h.Append(nil))
		require.NoError(t, err, client)
		require.Equal(t, h, got)
	}
}

func TestWhatIsNoHelloIsRefused(t *testing.T) {
	h := hello("10.1.2.3:4567")
	good := h.Append(nil)
	for n := range good {
		_, err := vouch.Parse(good[:n])
		require.ErrorIs(t, err, vouch.ErrHello, "cut at %d", n)
	}
	change := func(at int, to byte) []byte {
		b := append([]byte(nil), good...)
		b[at] = to
		return b
	}
	for what, b := range map[string][]byte{
		"nothing": nil, "too much": append(append([]byte(nil), good...), 0), "another version": change(0, 2), "no node": change(1, 0),
		"a node that is longer than all": change(1, 255), "an address of 5 bytes": change(3, 5), "TLS is 2": change(10, 2),
	} {
		_, err := vouch.Parse(b)
		require.ErrorIs(t, err, vouch.ErrHello, what)
	}
	for _, h := range []vouch.Hello{
		{Client: h.Client}, {Node: strings.Repeat("n", 65), Client: h.Client}, {Node: "2"},
		{Node: "2", Client: netip.MustParseAddrPort("[::ffff:10.1.2.3]:1")}, {Node: "2", Client: netip.MustParseAddrPort("[fe80::1%eth0]:1")},
	} {
		require.ErrorIs(t, h.Valid(), vouch.ErrHello, "%v", h)
	}
	mapped := vouch.Hello{Node: "2", Client: netip.MustParseAddrPort("[::ffff:10.1.2.3]:1")}
	_, err := vouch.Parse(mapped.Append(nil))
	require.ErrorIs(t, err, vouch.ErrHello, "one address has one form")
}

func TestNothingIsAllocatedForWhatIsNoHello(t *testing.T) {
	h := hello("10.1.2.3:4567")
	long := append(h.Append(nil), make([]byte, 1<<20)...)
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { _, _ = vouch.Parse(long) }), 4.0, "its error")
}

// A proof is that of one claim: whatever else is said is not proved by it.
func TestAProofIsOfOneClaim(t *testing.T) {
	s := vouch.NewSecret()
	claim := vouch.Claim{
		Cluster: "c", Epoch: 7, Leader: "10.0.0.1:10911", Node: "2", Client: netip.MustParseAddrPort("10.1.2.3:4567"), TLS: true, Channel: []byte("channel"),
		Nonce: [32]byte{1},
	}
	proof := s.Prove(claim)
	require.True(t, s.Proves(claim, proof))
	for what, change := range map[string]func(*vouch.Claim){
		"cluster": func(c *vouch.Claim) { c.Cluster = "d" }, "epoch": func(c *vouch.Claim) { c.Epoch = 8 },
		"leader": func(c *vouch.Claim) { c.Leader = "10.0.0.1:1091" }, "node": func(c *vouch.Claim) { c.Node = "3" },
		"address": func(c *vouch.Claim) { c.Client = netip.MustParseAddrPort("10.1.2.4:4567") },
		"port":    func(c *vouch.Claim) { c.Client = netip.MustParseAddrPort("10.1.2.3:4568") },
		"in IPv6": func(c *vouch.Claim) { c.Client = netip.MustParseAddrPort("[::ffff:10.1.2.3]:4567") },
		"TLS":     func(c *vouch.Claim) { c.TLS = false }, "channel": func(c *vouch.Claim) { c.Channel = nil },
		"nonce": func(c *vouch.Claim) { c.Nonce[31]++ },
		"a byte that goes from one field to the next": func(c *vouch.Claim) { c.Leader, c.Node = "10.0.0.1:1091", "12" },
	} {
		other := claim
		change(&other)
		require.False(t, s.Proves(other, proof), what)
	}
	require.False(t, vouch.NewSecret().Proves(claim, proof), "another group's secret")
	for bit := range 8 * len(proof) {
		wrong := proof
		wrong[bit/8] ^= 1 << (bit % 8)
		require.False(t, s.Proves(claim, wrong))
	}
}

func TestASecretIsShownToNobody(t *testing.T) {
	s := vouch.NewSecret()
	same, err := vouch.ParseSecret([]byte(s.Text()))
	require.NoError(t, err)
	require.Equal(t, s, same)
	require.NotEqual(t, s, vouch.NewSecret())
	encoded, err := json.Marshal([]any{s})
	require.NoError(t, err)
	require.Equal(t, "[{}]", string(encoded))
	for _, how := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
		for _, what := range []any{s, *s} {
			require.Equal(t, "a group's secret", fmt.Sprintf(how, what), how)
		}
	}
	for _, text := range []string{"", "00", strings.Repeat("0", 63), strings.Repeat("0", 65), strings.Repeat("x", 64)} {
		_, err := vouch.ParseSecret([]byte(text))
		require.ErrorIs(t, err, vouch.ErrSecret)
		require.NotContains(t, err.Error(), "xx")
	}
}

func TestALoopbackAddressIsThatOfTheNodesMachine(t *testing.T) {
	at := netip.MustParseAddrPort
	for _, c := range []struct{ client, node, seen string }{
		{"10.1.2.3:5", "10.0.0.2:77", "10.1.2.3:5"}, {"127.0.0.1:5", "10.0.0.2:77", "10.0.0.2:5"}, {"[::1]:5", "[2001:db8::2]:77", "[2001:db8::2]:5"},
		{"127.0.0.5:5", "127.0.0.1:77", "127.0.0.5:5"}, {"[2001:db8::5]:5", "10.0.0.2:77", "[2001:db8::5]:5"},
	} {
		require.Equal(t, at(c.seen), vouch.Seen(at(c.client), at(c.node)))
	}
}

// What is read is written again as it was; anything else is refused, and nothing that it says is believed.
func FuzzHello(f *testing.F) {
	for _, client := range clients {
		h := hello(client)
		f.Add(h.Append(nil))
	}
	f.Add([]byte{})
	f.Add([]byte{1, 255, 'n', 16})
	s := vouch.NewSecret()
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := vouch.Parse(b)
		if err != nil {
			require.ErrorIs(t, err, vouch.ErrHello)
			require.Equal(t, vouch.Hello{}.Node, h.Node)
			return
		}
		require.NoError(t, h.Valid())
		require.Equal(t, b, h.Append(nil))
		require.False(t, s.Proves(vouch.Claim{Node: h.Node, Client: h.Client, TLS: h.TLS}, h.Proof))
	})
}
