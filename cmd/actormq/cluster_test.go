package main

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	members "github.com/actormq/actormq/system/cluster"
)

// A node of a cluster takes what tools have changed from one role to the next, as one that is alone keeps it until it ends.
func TestOptionsChangedAtRunTimeOutliveAChangeOfRoles(t *testing.T) {
	n := serve(t) // its ports and its configuration are those of the node of the cluster
	conf := n.conf.Load()
	n.end()
	c := &clusterNode{flags: clusterFlags{nodeID: "1", join: n.broker}, conf: conf, log: zerolog.Nop(), drain: make(chan time.Duration, 1), ready: func(*node) {}}
	role := func(r members.Role, test func(s *system.Store)) {
		s, err := system.Open(storeOptions(conf, zerolog.Nop()))
		require.NoError(t, err)
		stop, err := c.serve(s, r, vfs.New())
		require.NoError(t, err)
		test(s)
		require.NoError(t, stop(context.Background()))
		require.NoError(t, s.Close(context.Background()))
	}
	role(members.Role{}, func(*system.Store) {
		require.Equal(t, remoting.ResponseSuccess, n.ask(remoting.RequestUpdateBrokerConfig, "traceOn=false\nfileReservedTime=7\n").Code)
	})
	role(members.Role{Leads: true, Epoch: 1, Leader: "1"}, func(s *system.Store) {
		options := string(n.ask(remoting.RequestGetBrokerConfig, "").Body)
		require.Contains(t, options, "traceOn=false\n")
		require.Contains(t, options, "fileReservedTime=7\n")
		require.Equal(t, 7*time.Hour, s.Retention().FileReservedTime)
	})
}

func TestPortsOfANodeOfACluster(t *testing.T) {
	for join, want := range map[string][3]string{
		"10.0.0.1:9000,10.0.0.2:9000":           {"10.0.0.2", "10.0.0.2:9007", "10.0.0.2:9003"},
		"[2001:db8::1]:9000,[2001:db8::2]:9000": {"2001:db8::2", "[2001:db8::2]:9007", "[2001:db8::2]:9003"},
	} {
		f := nodeFlags{clusterFlags: clusterFlags{cluster: "c", nodeID: "2", join: join}}
		conf, err := f.configuration(newNodeCommand())
		require.NoError(t, err)
		require.Equal(t, want, [3]string{conf.ListenIP, conf.Gateway.Listen, conf.Gateway.NameServerListen})
	}
}
