package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	members "github.com/actormq/actormq/system/cluster"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/process"
)

// A node of a cluster takes what tools have changed from one role to the next, as one that is alone keeps it until it ends.
func TestOptionsChangedAtRunTimeOutliveAChangeOfRoles(t *testing.T) {
	n := serve(t) // its ports and its configuration are those of the node of the cluster
	conf := n.conf.Load()
	n.end()
	c := &clusterNode{flags: clusterFlags{nodeID: "1", join: n.broker}, conf: conf, log: zerolog.Nop(), drain: make(chan time.Duration, 1), ready: func(*node) {}}
	role := func(r members.Role, test func(s *system.Store)) {
		opt, _ := storeOptions(conf, zerolog.Nop())
		s, err := system.Open(opt)
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

// said hands what a node prints to a test.
type said chan string

func (s said) Write(b []byte) (int, error) {
	s <- string(b)
	return len(b), nil
}

func TestANodeOfAClusterScrubsItsStore(t *testing.T) {
	base := process.Port(t, members.PortBroker+1)
	f := nodeFlags{storeDir: t.TempDir(), set: []string{"mappedFileSizeCommitLog=1048576", "maxHashSlotNum=500", "maxIndexNum=2000"},
		clusterFlags: clusterFlags{cluster: "c", nodeID: "1", join: base.String(), lease: time.Second}}
	conf, err := f.configuration(newNodeCommand())
	require.NoError(t, err)
	opt, _ := storeOptions(conf, zerolog.Nop())
	opt.Services = nil
	s, err := system.Open(opt)
	require.NoError(t, err)
	_, err = s.Put(t.Context(), &messages.Message{Topic: "orders", Body: []byte("one tea")})
	require.NoError(t, errors.Join(err, s.Close(t.Context())))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, ended := make(said, 1), make(chan error, 1)
	go func() { ended <- runClusterNode(ctx, cancel, out, f.clusterFlags, conf, zerolog.Nop()) }()
	select {
	case line := <-out:
		require.Contains(t, line, "cluster=c node=1")
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		require.FailNow(t, "the node does not serve")
	}
	var metrics string
	away := 0
	scrubbed := func() bool { // the port stays while the node's role changes: it is a follower first
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+base.Beside(members.PortAdmin).String()+"/metrics", nil)
		if err != nil {
			return false
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			away++
			return false
		}
		text, err := io.ReadAll(answer.Body)
		metrics = string(text)
		return errors.Join(err, answer.Body.Close()) == nil && regexp.MustCompile(`(?m)^actormq_scrubbed_bytes_total [1-9]`).Match(text)
	}
	require.Eventually(t, scrubbed, time.Minute, 10*time.Millisecond)
	require.Zero(t, away)
	require.Contains(t, metrics, "\nactormq_scrub_damaged_messages 0\n")
	fixture.Linted(t, metrics)
	http.DefaultClient.CloseIdleConnections()
	status, _, err := run("cluster", "status", "--etcd", "http://"+base.Beside(members.PortClient).String()+"/", "--wait", "1m")
	require.NoError(t, err)
	require.Contains(t, status, "cluster=c epoch=")
	cancel()
	require.NoError(t, <-ended)
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

func TestClusterStatusRefusesWhatIsNoAddress(t *testing.T) {
	for _, args := range [][]string{{"--join", "nonsense"}, {"--join", "127.0.0.1:21100,127.0.0.1:99999"}, {"--etcd", "127.0.0.1"}, {"--etcd", "http://127.0.0.1:x"},
		{"--etcd", "http://127.0.0.1:2379/x"}, {"--etcd", "127.0.0.1:2379/"}, {}} {
		_, _, err := run(append([]string{"cluster", "status"}, args...)...)
		require.Error(t, err, "%v", args)
		require.Equal(t, 1, exitStatus(err), "nobody was asked: %v", err)
	}
}

// etcd's client logs the address that it was given: a password would be in the log.
func TestANodeTakesNoPasswordForEtcd(t *testing.T) {
	base := process.Port(t, members.PortBroker+1)
	for _, etcd := range []string{"http://root:secret@127.0.0.1:2379", "127.0.0.1:2379,root:secret@127.0.0.1:2379", "http://127.0.0.1:2379/secret@x", "http://127.0.0.1:2379/x"} {
		f := nodeFlags{storeDir: t.TempDir(), clusterFlags: clusterFlags{cluster: "c", nodeID: "1", join: base.String(), etcd: etcd, lease: time.Second}}
		conf, err := f.configuration(newNodeCommand())
		require.NoError(t, err)
		err = runClusterNode(t.Context(), func() {}, io.Discard, f.clusterFlags, conf, zerolog.Nop())
		require.ErrorContains(t, err, "want HOST:PORT", etcd)
		_, _, status := run("cluster", "status", "--etcd", etcd)
		require.ErrorContains(t, status, "want HOST:PORT", etcd)
		require.NotContains(t, err.Error()+status.Error(), "secret")
	}
}
