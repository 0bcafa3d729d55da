package cluster

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/process"
)

// networkVar is set for a test that runs in a network of its own: the program that it is to start, which can't be built in there.
const networkVar = "ACTORMQ_CLUSTER_NETWORK"

// Network joins hosts by a router that can drop what one of them sends to another, without a word, as a broken cable does. Router and
// hosts are network namespaces of Linux, which end with the processes in them. The test's process is at the router: it reaches all hosts,
// whatever is dropped between them. It belongs to the test's goroutine.
type Network struct {
	t     testing.TB
	hosts map[string]host
	cuts  []string // rules of the router
}

// host is one of the network's.
type host struct {
	address   string
	namespace string // a file that stands for it
}

// router makes what a namespace has to have before hosts are joined to it.
const router = "ip link set lo up && echo 1 > /proc/sys/net/ipv4/ip_forward"

// Apart runs the test again, in a network of its own, and returns true; where there can be none, and in there, it returns false. It needs
// Linux, iproute2, util-linux, and to be root or to be allowed to have a user namespace.
func Apart(t *testing.T) bool {
	t.Helper()
	if os.Getenv(networkVar) != "" {
		return false
	}
	enter := []string{"--net", "--"}
	if os.Geteuid() != 0 {
		enter = append([]string{"--user", "--map-root-user"}, enter...)
	}
	trial := router + " && ip link add host0 type veth peer name uplink && ip rule add from 10.77.1.2 blackhole && nsenter --net=/proc/self/ns/net true"
	if out, err := exec.Command("unshare", append(enter, "sh", "-c", trial)...).CombinedOutput(); err != nil {
		t.Logf("there is no network to cut: %v: %s", err, out)
		return false
	}
	program, err := process.Build(t.TempDir())
	require.NoError(t, err)
	fixture.Again(t, networkVar+"="+program, append([]string{"unshare"}, enter...)...)
	return true
}

// newNetwork joins hosts to the namespace that Apart has made; they are there until the test ends.
func newNetwork(t testing.TB, ids ...string) *Network {
	t.Helper()
	n := &Network{t: t, hosts: map[string]host{}}
	n.run("", router)
	for i, id := range ids {
		// It holds the namespace until its input ends.
		holder := exec.Command("unshare", "--net", "--", "sh", "-ec", "ip link set lo up; echo there; exec cat")
		in, err := holder.StdinPipe()
		require.NoError(t, err)
		out, err := holder.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, holder.Start())
		t.Cleanup(func() { _, _ = in.Close(), holder.Wait() })
		_, err = bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		subnet, pid := fmt.Sprint("10.77.", i+1), holder.Process.Pid
		h := host{address: subnet + ".2", namespace: fmt.Sprintf("/proc/%d/ns/net", pid)}
		n.run("", fmt.Sprintf("ip link add host%d type veth peer name uplink netns %d", i, pid))
		n.run("", fmt.Sprintf("ip address add %s.1/30 dev host%d && ip link set host%[2]d up", subnet, i))
		n.run(h.namespace, fmt.Sprintf("ip address add %s/30 dev uplink && ip link set uplink up && ip route add default via %s.1", h.address, subnet))
		n.hosts[id] = h
	}
	return n
}

// run runs commands of a shell in a namespace, without a name in the test's own.
func (n *Network) run(namespace, commands string) {
	n.t.Helper()
	cmd := exec.Command("sh", "-c", commands)
	if namespace != "" {
		cmd = exec.Command("nsenter", "--net="+namespace, "--", "sh", "-c", commands)
	}
	out, err := cmd.CombinedOutput()
	require.NoError(n.t, err, "%s: %s", commands, out)
}

// command starts a program at a host; without a network it is the machine.
func (n *Network) command(id, program string, args ...string) *exec.Cmd {
	if n == nil {
		return exec.Command(program, args...)
	}
	return exec.Command("nsenter", append([]string{"--net=" + n.hosts[id].namespace, "--", program}, args...)...)
}

// Cut drops whatever a host sends to others from now on, until Heal.
func (n *Network) Cut(from string, to ...string) {
	n.t.Helper()
	for _, id := range to {
		n.cuts = append(n.cuts, fmt.Sprintf("from %s to %s blackhole", n.hosts[from].address, n.hosts[id].address))
		n.run("", "ip rule add "+n.cuts[len(n.cuts)-1])
	}
}

// Heal ends all that was cut.
func (n *Network) Heal() {
	n.t.Helper()
	n.run("", "ip rule delete "+strings.Join(n.cuts, " && ip rule delete "))
	n.cuts = nil
}

// apart gives each node a host.
func (g *Group) apart() {
	g.t.Helper()
	var ids []string
	for _, n := range g.Nodes {
		ids = append(ids, n.ID)
	}
	g.network = newNetwork(g.t, ids...)
	for i, id := range ids {
		g.Nodes[i].Base = net.JoinHostPort(g.network.hosts[id].address, "21000")
	}
}

// others are the nodes but for one.
func (g *Group) others(id string) (ids []string) {
	for _, n := range g.Nodes {
		if n.ID != id {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

// CutOff cuts a node off from the others; clients still reach it.
func (g *Group) CutOff(id string) {
	g.t.Helper()
	g.Mute(id)
	g.Deafen(id)
}

// Mute drops what a node sends to the others.
func (g *Group) Mute(id string) {
	g.t.Helper()
	g.network.Cut(id, g.others(id)...)
}

// Deafen drops what the others send to a node.
func (g *Group) Deafen(id string) {
	g.t.Helper()
	for _, other := range g.others(id) {
		g.network.Cut(other, id)
	}
}
