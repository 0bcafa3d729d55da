package upgrade

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/system/client"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/process"
)

// topic is where the load sends to.
const topic = "load"

// cluster is three masters; node 0 to 2.
type cluster struct {
	t       *testing.T
	program string
	nodes   [3]*node
}

type node struct {
	args          []string
	broker, names string
	said          fixture.Said
	process       *process.Process
}

// begin starts the nodes and makes the topic on each.
func begin(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t}
	var err error
	c.program, err = process.Build(t.TempDir())
	require.NoError(t, err)
	for i := range c.nodes {
		base := process.Port(t, 6) // the broker's second port is two before the first one
		c.nodes[i] = &node{broker: base.Beside(2).String(), names: base.Beside(4).String()}
		c.nodes[i].args = []string{
			"--store-dir", t.TempDir(), "--listen", c.nodes[i].broker, "--namesrv-listen", c.nodes[i].names,
			"--admin-listen", base.Beside(5).String(), "--log-level", "warn", "--set", fmt.Sprint("brokerName=broker-", i),
			"--set", "mappedFileSizeCommitLog=16777216", "--set", "maxHashSlotNum=1000", "--set", "maxIndexNum=10000",
		}
	}
	for i, n := range c.nodes {
		var others []string
		for j, o := range c.nodes {
			if j != i {
				others = append(others, o.names)
			}
		}
		n.args = append(n.args, "--set", "namesrvAddr="+strings.Join(others, ";"))
	}
	for i := range c.nodes {
		c.start(i)
	}
	t.Cleanup(c.end)
	c.known("TBW102")
	c.run("topic", "create", topic, "--queues", "4", "--namesrv", c.nodes[0].names)
	c.known(topic)
	return c
}

func (c *cluster) start(i int) {
	c.t.Helper()
	n := c.nodes[i]
	n.process = process.Start(c.t, &n.said, c.program, n.args...)
}

// run runs a command of the program.
func (c *cluster) run(args ...string) {
	c.t.Helper()
	out, err := exec.Command(c.program, args...).CombinedOutput()
	require.NoError(c.t, err, "%v: %s", args, out)
}

func (c *cluster) nameServers() (all []string) {
	for _, n := range c.nodes {
		all = append(all, n.names)
	}
	return all
}

// known waits until each name server has a topic at every broker, to be written.
func (c *cluster) known(topic string) {
	c.t.Helper()
	for _, n := range c.nodes {
		names := client.New(client.Options{NameServers: []string{n.names}})
		defer names.Close()
		require.Eventually(c.t, func() bool {
			route, err := names.Route(context.Background(), topic)
			if err != nil {
				return false
			}
			queues, err := client.WriteQueues(route, topic)
			brokers := map[string]bool{}
			for _, q := range queues {
				brokers[q.Broker] = true
			}
			return err == nil && len(brokers) == len(c.nodes)
		}, time.Minute, 20*time.Millisecond, "%s knows all brokers of %s", n.names, topic)
	}
}

// replace upgrades a node: it serves on for the grace, ends, and is started again.
func (c *cluster) replace(i int, grace time.Duration) {
	c.t.Helper()
	began := time.Now()
	c.run("drain", "--grace", grace.String(), c.nodes[i].broker)
	require.NoError(c.t, c.nodes[i].process.Await(), "%s", &c.nodes[i].said)
	ended := time.Now()
	c.start(i)
	c.known(topic)
	c.t.Logf("node %d drained in %v, back after %v", i, ended.Sub(began).Round(time.Millisecond), time.Since(ended).Round(time.Millisecond))
}

// end stops all nodes.
func (c *cluster) end() {
	for _, n := range c.nodes {
		require.NoError(c.t, n.process.End(syscall.SIGTERM), "%s", &n.said)
	}
}
