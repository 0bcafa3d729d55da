package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	members "github.com/actormq/actormq/system/cluster"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/process"
)

// Group is a replica group of processes. It belongs to the test's goroutine.
type Group struct {
	t       testing.TB
	program string
	dir     string
	Nodes   []members.Node
	Args    map[string][]string // further arguments of nodes, by id
	Secure  *tls.Config         // by which their etcd is asked; nil: in the clear
	// Programs, by id, of nodes that are of another version than this one; of those that are started from now on.
	Programs map[string]string
	running  map[string]*process.Process
	said     map[string]*fixture.Said // by nodes, over all their lives
	network  *Network                 // nil: all nodes are on the machine's loopback
}

// Build makes the program, and a group of n nodes of which none runs; in a test that has been run Apart, each at a host of its own.
func Build(t testing.TB, n int) *Group {
	t.Helper()
	g := &Group{t: t, program: os.Getenv(networkVar), dir: t.TempDir(), running: map[string]*process.Process{}, said: map[string]*fixture.Said{}}
	for i := range n {
		g.said[strconv.Itoa(i+1)] = new(fixture.Said)
		g.Nodes = append(g.Nodes, members.Node{ID: strconv.Itoa(i + 1), Base: process.Port(t, members.PortBroker+1).String()})
	}
	if g.program != "" {
		g.apart()
	} else {
		var err error
		g.program, err = process.Build(t.TempDir())
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		for id := range g.running {
			g.Kill(id)
		}
	})
	return g
}

// Join is the list of all nodes.
func (g *Group) Join() string {
	var all []string
	for _, n := range g.Nodes {
		all = append(all, n.Base)
	}
	return strings.Join(all, ",")
}

// Dir is a node's folder.
func (g *Group) Dir(id string) string { return filepath.Join(g.dir, id) }

// Start starts nodes and does not wait for them.
func (g *Group) Start(ids ...string) {
	g.t.Helper()
	for _, id := range ids {
		cmd := g.network.command(id, cmp.Or(g.Programs[id], g.program), "node", "--cluster", "test", "--node-id", id, "--join", g.Join(), "--store-dir", g.Dir(id),
			"--set", "mappedFileSizeCommitLog=16777216", "--set", "maxHashSlotNum=1000", "--set", "maxIndexNum=10000",
			"--set", "transactionTimeOut=1000", "--set", "transactionCheckInterval=1000", "--set", "transactionCheckMax=1000000")
		cmd.Args = append(cmd.Args, g.Args[id]...)
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "ACTORMQ_CLUSTER_") }) // no keys of a node
		g.running[id] = process.Begin(g.t, g.said[id], cmd)
	}
}

// Ready waits until nodes serve for the first time since they were started.
func (g *Group) Ready(ids ...string) {
	g.t.Helper()
	for _, id := range ids {
		g.running[id].Ready()
	}
}

// gone takes a node out of those that run.
func (g *Group) gone(id string) *process.Process {
	p := g.running[id]
	delete(g.running, id)
	return p
}

// Kill ends a node at once (SIGKILL), paused or not.
func (g *Group) Kill(id string) {
	g.t.Helper()
	g.gone(id).Kill()
}

// Terminate tells a node to end in order (SIGTERM).
func (g *Group) Terminate(id string) {
	g.t.Helper()
	g.running[id].Signal(syscall.SIGTERM)
}

// Ended waits until a node that was told to has ended.
func (g *Group) Ended(id string) {
	g.t.Helper()
	require.NoError(g.t, g.gone(id).Await(), "node %s: %s", id, g.said[id])
}

// Pause stops a node where it is (SIGSTOP).
func (g *Group) Pause(id string) {
	g.t.Helper()
	g.running[id].Signal(syscall.SIGSTOP)
}

// Resume lets it go on.
func (g *Group) Resume(id string) {
	g.t.Helper()
	g.running[id].Signal(syscall.SIGCONT)
}

// Status asks the nodes' etcd, but for those that are named.
func (g *Group) Status(but ...string) (members.Status, error) {
	var endpoints []string
	for _, n := range g.Nodes {
		if n.ID != strings.Join(but, "") {
			endpoints = append(endpoints, n.Port(members.PortClient))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	all, err := members.Read(ctx, endpoints, g.Secure)
	if err != nil {
		return members.Status{}, err
	}
	if len(all) != 1 {
		return members.Status{}, fmt.Errorf("%d clusters", len(all))
	}
	return all[0], nil
}

// Until waits for a state that others bring about.
func (g *Group) Until(what string, reached func() bool) {
	g.t.Helper()
	require.Eventually(g.t, reached, 3*time.Minute, 20*time.Millisecond, what)
}

// Leader waits until somebody leads and every node is in sync.
func (g *Group) Leader() (id string) {
	g.t.Helper()
	g.Until("all nodes in sync", func() bool {
		s, err := g.Status()
		id = s.Leader
		return err == nil && s.Leads && len(s.InSync) == len(g.Nodes)
	})
	return id
}
