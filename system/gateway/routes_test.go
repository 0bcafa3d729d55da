package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	edge "github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway"
)

func TestRequestsOfTheUsersOwn(t *testing.T) {
	const echo, broken = 20_001, 20_002
	w := run(t, func(cfg *gateway.Config) {
		cfg.Routes = edge.Routes{
			echo:   {Lane: edge.Quick, Handle: func(r *edge.Request) { r.OKBody(map[string]string{"you sent": string(r.Body)}) }},
			broken: {Lane: edge.Slow, Handle: func(*edge.Request) { panic("a bug") }},
		}
	})
	for _, port := range []string{"broker", "vip"} {
		c := w.dial(port)
		request := remoting.NewRequest(echo, nil)
		request.Body = []byte("hello")
		answer := c.ask(request)
		require.Equal(t, remoting.ResponseSuccess, answer.Code)
		require.JSONEq(t, `{"you sent":"hello"}`, string(answer.Body))
		require.Equal(t, remoting.ResponseSystemError, c.ask(remoting.NewRequest(broken, nil)).Code)
		require.Equal(t, remoting.ResponseSuccess, c.ask(remoting.NewRequest(echo, nil)).Code, "the connection goes on")
	}
}

func TestCodesOfRocketMQStayRocketMQs(t *testing.T) {
	w := run(t)
	cfg := gateway.Config{
		Store: w.store, Disk: w.disk, ConfigDir: "elsewhere", Listen: "127.0.0.1:0",
		Routes: edge.Routes{remoting.RequestSendMessage: {Handle: func(*edge.Request) {}}},
	}
	_, err := gateway.Start(actorSystem().Root, cfg)
	require.ErrorIs(t, err, gateway.ErrConfig)
}
