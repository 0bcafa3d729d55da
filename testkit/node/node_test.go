package node_test

import (
	"bufio"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	edge "github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/testkit/node"
	"github.com/actormq/actormq/testkit/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask sends a request on a connection of its own and returns the answer.
func ask(t *testing.T, to netip.AddrPort, request *remoting.Command) *remoting.Command {
	t.Helper()
	sock, err := net.Dial("tcp", to.String())
	require.NoError(t, err)
	defer func() { require.NoError(t, sock.Close()) }()
	require.NoError(t, sock.SetDeadline(time.Now().Add(10*time.Second)))
	b, err := request.Append(nil)
	require.NoError(t, err)
	_, err = sock.Write(b)
	require.NoError(t, err)
	answer, err := remoting.ReadCommand(bufio.NewReader(sock), remoting.Limits{})
	require.NoError(t, err)
	return answer
}

func TestANodeOnFreePortsWithExtensions(t *testing.T) {
	const own = 20_001
	n := node.Start(t, func(opt *system.Options, cfg *gateway.Config) {
		opt.PutHooks = []system.PutHook{{Name: "stamp", Func: func(m *messages.Message) error {
			m.Body = append([]byte("stamped "), m.Body...)
			return nil
		}}}
		cfg.Routes = edge.Routes{own: {Lane: edge.Quick, Handle: func(r *edge.Request) { r.OKBody("hello") }}}
	})
	require.JSONEq(t, `"hello"`, string(ask(t, n.Broker, remoting.NewRequest(own, nil)).Body))
	route := ask(t, n.NameServer, remoting.NewRequest(remoting.RequestGetRouteInfoByTopic, &remoting.TopicHeader{Topic: "TBW102"}))
	require.Equal(t, remoting.ResponseSuccess, route.Code, route.Remark)
	require.Contains(t, string(route.Body), n.Broker.String(), "clients find the broker")
	_, err := n.Store.Put(t.Context(), &messages.Message{Topic: "T", Body: []byte("x")})
	require.NoError(t, err)
	probe.Follow(t, n.Store, "T", 0).Expect(t.Context(), "stamped x")
}
