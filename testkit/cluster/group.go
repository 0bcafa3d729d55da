package cluster

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	members "github.com/actormq/actormq/system/cluster"
	programs "github.com/actormq/actormq/testkit/process"
)

// Group is a replica group of processes. It belongs to the test's goroutine.
type Group struct {
	t       testing.TB
	program string
	dir     string
	Nodes   []members.Node
	Args    map[string][]string // further arguments of nodes, by id
	Secure  *tls.Config         // by which their etcd is asked; nil: in the clear
	running map[string]*process
	network *Network // nil: all nodes are on the machine's loopback
}

// process is a node that has been started.
type process struct {
	cmd   *exec.Cmd
	ready chan struct{} // closed when it serves for the first time
	ended chan error
}

// Build makes the program, and a group of n nodes of which none runs; in a test that has been run Apart, each at a host of its own.
func Build(t testing.TB, n int) *Group {
	t.Helper()
	g := &Group{t: t, program: os.Getenv(networkVar), dir: t.TempDir(), running: map[string]*process{}}
	for i := range n {
		g.Nodes = append(g.Nodes, members.Node{ID: strconv.Itoa(i + 1), Base: programs.Port(t, members.PortBroker+1).String()})
	}
	if g.program != "" {
		g.apart()
	} else {
		var err error
		g.program, err = programs.Build(t.TempDir())
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
		p := &process{ready: make(chan struct{}), ended: make(chan error, 1)}
		p.cmd = g.network.command(id, g.program, "node", "--cluster", "test", "--node-id", id, "--join", g.Join(), "--store-dir", g.Dir(id),
			"--set", "mappedFileSizeCommitLog=16777216", "--set", "maxHashSlotNum=1000", "--set", "maxIndexNum=10000",
			"--set", "transactionTimeOut=1000", "--set", "transactionCheckInterval=1000", "--set", "transactionCheckMax=1000000")
		p.cmd.Args = append(p.cmd.Args, g.Args[id]...)
		p.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "ACTORMQ_CLUSTER_") }) // no keys of a node
		log, err := os.OpenFile(g.Dir(id)+".log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		require.NoError(g.t, err)
		p.cmd.Stderr = log
		out, err := p.cmd.StdoutPipe()
		require.NoError(g.t, err)
		require.NoError(g.t, p.cmd.Start())
		go func() {
			lines := bufio.NewScanner(out)
			if lines.Scan() {
				close(p.ready)
			}
			for lines.Scan() {
			}
			p.ended <- p.cmd.Wait()
			_ = log.Close()
		}()
		g.running[id] = p
	}
}

// Ready waits until nodes serve for the first time since they were started.
func (g *Group) Ready(ids ...string) {
	g.t.Helper()
	for _, id := range ids {
		select {
		case <-g.running[id].ready:
		case err := <-g.running[id].ended:
			delete(g.running, id)
			require.Fail(g.t, "a node has ended", "node %s: %v: %s", id, err, g.Log(id))
		case <-time.After(3 * time.Minute):
			require.Fail(g.t, "a node does not serve", "node %s: %s", id, g.Log(id))
		}
	}
}

// Log is the end of what a node has said.
func (g *Group) Log(id string) string {
	b, _ := os.ReadFile(g.Dir(id) + ".log")
	return string(b[max(0, len(b)-8<<10):])
}

// Kill ends a node at once (SIGKILL), paused or not.
func (g *Group) Kill(id string) {
	p := g.running[id]
	delete(g.running, id)
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.ended
}

// Terminate tells a node to end in order (SIGTERM).
func (g *Group) Terminate(id string) {
	g.t.Helper()
	require.NoError(g.t, g.running[id].cmd.Process.Signal(syscall.SIGTERM))
}

// Ended waits until a node that was told to has ended.
func (g *Group) Ended(id string) {
	g.t.Helper()
	p := g.running[id]
	delete(g.running, id)
	select {
	case err := <-p.ended:
		require.NoError(g.t, err, "node %s: %s", id, g.Log(id))
	case <-time.After(3 * time.Minute):
		require.Fail(g.t, "a node does not stop", "node %s: %s", id, g.Log(id))
	}
}

// Pause stops a node where it is (SIGSTOP).
func (g *Group) Pause(id string) {
	require.NoError(g.t, g.running[id].cmd.Process.Signal(syscall.SIGSTOP))
}

// Resume lets it go on.
func (g *Group) Resume(id string) {
	require.NoError(g.t, g.running[id].cmd.Process.Signal(syscall.SIGCONT))
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
