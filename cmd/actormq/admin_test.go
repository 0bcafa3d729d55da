package main

import (
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/cmd/actormq/internal/nodeconf"
	"github.com/actormq/actormq/testkit/fixture"
)

// metricsOf is what an admin port says at /metrics.
func metricsOf(t *testing.T, port net.Addr) string {
	t.Helper()
	answer, err := http.Get("http://" + port.String() + "/metrics")
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(text)
}

func TestTheAdminPortOfANode(t *testing.T) {
	n := serve(t, "adminListen=127.0.0.1:0")
	n.produce("orders", "x")
	text := metricsOf(t, n.admin.Addr())
	require.Contains(t, text, `actormq_puts_total{status="PUT_OK"} 1`)
	require.Contains(t, text, `actormq_build_info{flush="ASYNC_FLUSH",version="dev`)
	http.DefaultClient.CloseIdleConnections()
	address := n.admin.Addr().String()
	n.end()
	_, err := http.Get("http://" + address + "/healthz")
	require.Error(t, err, "the port is closed")
}

// Extensions that a node is made with, its remote port and its limits have metrics, too.
func TestMetricsOfANodeWithAllItsParts(t *testing.T) {
	other := serve(t)
	n := serve(t, "adminListen=127.0.0.1:0", "remoteListen="+freePort(t), "scrubBytesPerSecond=1048576", "topicLimits=orders=1000,100000",
		"bridgeNamesrvAddr="+other.names, "bridgeTarget=paris", "brokerName=berlin", "transientStorePoolEnable=true")
	n.produce("orders", "x")
	text := metricsOf(t, n.admin.Addr())
	http.DefaultClient.CloseIdleConnections()
	for _, part := range []string{`extension="scrub`, `extension="bridge-paris`, "actormq_limited_sends_total"} {
		require.Contains(t, text, part)
	}
	fixture.Linted(t, text)
}

func TestTheAdminPortStandsAboveTheBrokers(t *testing.T) {
	for want, set := range map[string][]string{
		"127.0.0.1:10914": nil, "127.0.0.1:20003": {"listenPort", "20000"}, "": {"adminListen", ""}, "0.0.0.0:1": {"adminListen", "0.0.0.0:1"},
	} {
		c := nodeconf.Default()
		if set != nil {
			require.NoError(t, c.Set(set[0], set[1], "test"))
		}
		require.NoError(t, c.Finish())
		require.Equal(t, want, c.AdminListen)
		require.Equal(t, want == "0.0.0.0:1", len(c.Reach()) > 0, "%v", c.Reach())
	}
}

// Two nodes on one machine need no admin port of their own; one that was asked for must be there.
func TestAnAdminPortThatIsTaken(t *testing.T) {
	n := serve(t, "adminListen=127.0.0.1:0")
	other := &testNode{t: t, dir: t.TempDir(), broker: freePort(t), names: freePort(t), set: []string{"adminListen=" + n.admin.Addr().String()}}
	require.ErrorContains(t, other.start(), "open the admin port")
}

func TestVersion(t *testing.T) {
	out, _, err := run("version", "--json")
	require.NoError(t, err)
	require.Equal(t, versionText(), jsonLines[versionLine](t, out)[0].Version)
}
