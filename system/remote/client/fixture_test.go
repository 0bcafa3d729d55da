package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/system/remote"
	"github.com/actormq/actormq/system/remote/client"
	"github.com/actormq/actormq/system/remote/endpoint"
	"github.com/actormq/actormq/testkit/node"
)

// serving is a node with a store endpoint, and a client of it.
type serving struct {
	*node.Node
	*endpoint.Endpoint
	client *client.Client
}

// serve starts both; change, when not nil, may alter what the endpoint is made of.
func serve(t *testing.T, change func(*endpoint.Config)) *serving {
	t.Helper()
	s := &serving{Node: node.Start(t, func(o *system.Options, g *gateway.Config) {})}
	cfg := endpoint.Config{
		Remote: remote.Config{Listen: "127.0.0.1:0"}, Store: s.Store, Topics: s.Gateway.Broker().Topics, Offsets: s.Gateway.Broker().Offsets,
		Logger: zerolog.Nop(),
	}
	if change != nil {
		change(&cfg)
	}
	var err error
	s.Endpoint, err = endpoint.Start(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		require.NoError(t, s.Endpoint.Stop(ctx))
	})
	s.client = dial(t, client.Options{Resolver: client.Static{s.Address()}})
	return s
}

func dial(t *testing.T, opt client.Options) *client.Client {
	t.Helper()
	opt.Logger = zerolog.Nop()
	c, err := client.Dial(opt)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// within is a context that ends long after what a test waits for should have come.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func message(topic, body string) *messages.Message {
	return &messages.Message{Topic: topic, Body: []byte(body)}
}
