package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	edge "github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/cmd/actormq/internal/nodeconf"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/admin"
	members "github.com/actormq/actormq/system/cluster"
	"github.com/actormq/actormq/system/ext/scrub"
	"github.com/actormq/actormq/system/ext/tracing"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/system/gateway/certs"
)

// clusterFlags say of which cluster a node is.
type clusterFlags struct {
	cluster, nodeID, join, etcd string
	minInSync                   int
	lease, stopGrace            time.Duration
}

func (f *clusterFlags) bind(c *cobra.Command) {
	c.Flags().StringVar(&f.cluster, "cluster", "", "name of the cluster that the node is one of; with --node-id and --join")
	c.Flags().StringVar(&f.nodeID, "node-id", "", "which of the addresses of --join is this node's, from 1")
	c.Flags().StringVar(&f.join, "join", "", "HOST:PORT,... of all nodes, the same on each: the first of the ports that a node uses, PORT to PORT+7")
	c.Flags().StringVar(&f.etcd, "etcd", "", "HOST:PORT,... of an external etcd; without, the nodes run their own")
	c.Flags().IntVar(&f.minInSync, "min-in-sync", 0, "nodes that must have a message before it is acknowledged; 0: a majority")
	c.Flags().DurationVar(&f.lease, "lease", 2*time.Second, "silence after which another node leads; whole seconds, the same on each")
	c.Flags().DurationVar(&f.stopGrace, "stop-grace", stopTimeout, "how long a node that led serves its clients on, by the next leader, after SIGTERM; 0: not at all")
}

var errCluster = errors.New("--cluster, --node-id and --join belong together")

// nodesOf are the nodes of --join, with ids from 1.
func nodesOf(join string) (nodes []members.Node) {
	for i, base := range strings.Split(join, ",") {
		nodes = append(nodes, members.Node{ID: strconv.Itoa(i + 1), Base: strings.TrimSpace(base)})
	}
	return nodes
}

// me is this node.
func (f *clusterFlags) me() (members.Node, error) {
	for _, n := range nodesOf(f.join) {
		if n.ID == f.nodeID {
			return n, nil
		}
	}
	return members.Node{}, fmt.Errorf("%w: node %q is none of %s", errCluster, f.nodeID, f.join)
}

// defaults gives the node the ports that it has in its cluster. What is set by name afterwards counts more.
func (f *clusterFlags) defaults(c *nodeconf.Config) error {
	if f.cluster == "" {
		if f.nodeID+f.join+f.etcd != "" {
			return errCluster
		}
		return nil
	}
	me, err := f.me()
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(me.Port(members.PortBroker))
	return errors.Join(err,
		c.Set("bindAddress", host, "--join"), c.Set("listenPort", port, "--join"),
		c.Set("namesrvListen", me.Port(members.PortNameServer), "--join"), c.Set("adminListen", me.Port(members.PortAdmin), "--join"))
}

// clusterNode is a node of a cluster: what serves clients comes and goes with its role.
type clusterNode struct {
	flags clusterFlags
	conf  *nodeconf.Config // as changed at run time, over all roles
	scrub *scrub.Scrub     // nil: there is none
	trace *tracing.Tracer  // nil: nothing is traced
	admin *admin.Server    // stays while the role changes; nil: there is none
	drain chan time.Duration
	log   zerolog.Logger
	door  *gateway.Door                       // its ports stay open while the role changes
	tls   func() (server, client *tls.Config) // of the nodes among themselves; nil: none
	over  atomic.Bool                         // the process ends
	ready func(*node)
	first sync.Once
}

// memberConfig is what the flags and the settings make of this node as a member of the cluster; its store is not in it.
func (n *clusterNode) memberConfig() (c members.Config, err error) {
	f, conf := n.flags, n.conf
	if conf.Store.Role != messages.AsyncMaster {
		return c, fmt.Errorf("%w: in a cluster the role is elected, brokerRole is %v", errCluster, conf.Store.Role)
	}
	if conf.Bridge.On() {
		return c, fmt.Errorf("%w: its nodes have no bridge: set bridgeNamesrvAddr at a node of its own", errCluster)
	}
	c = members.Config{
		Name: f.cluster, ID: f.nodeID, Nodes: nodesOf(f.join), Broker: conf.Gateway.Broker.Address,
		Serve: n.serve, MinInSync: f.minInSync, Lease: f.lease, Logger: n.log.With().Str("part", "cluster").Logger(),
	}
	if c.Remote = conf.Remote.Advertise; c.Remote == "" {
		c.Remote = conf.Remote.Listen
	}
	if f.etcd != "" {
		c.Etcd, err = etcdEndpoints(f.etcd)
	}
	return c, err
}

// runClusterNode runs a node of a cluster until the context ends; it cancels it then.
func runClusterNode(ctx context.Context, cancel func(), out io.Writer, f clusterFlags, conf *nodeconf.Config, log zerolog.Logger) error {
	n := &clusterNode{flags: f, conf: conf, drain: make(chan time.Duration, 1), log: log}
	n.ready = func(x *node) { fmt.Fprintf(out, "%s cluster=%s node=%s\n", x.ready(), f.cluster, f.nodeID) }
	c, err := n.memberConfig()
	if err != nil {
		return err
	}
	c.Store, n.scrub = storeOptions(conf, log)
	if n.trace, err = plugTracer(conf, &c.Store, log); err != nil {
		return err
	}
	defer closeTracer(context.WithoutCancel(ctx), n.trace, log)
	c.Store.HAListen = ""
	root := actor.NewActorSystem(system.ActorLogging(log), actor.WithDeadLetterThrottleInterval(10*time.Millisecond))
	defer root.Shutdown()
	if files := conf.Gateway.TLSFiles; files.Cert != "" && files.Key != "" && files.Trust != "" {
		files.ClientAuth = certs.ClientAuthRequire
		keeper, err := certs.Start(root.Root, certs.Config{Disk: conf.Gateway.Disk, Files: files, Logger: c.Logger})
		if err != nil {
			return err
		}
		defer func() { _ = keeper.Close() }()
		c.Files, c.TLS = files, keeper.Mutual
	}
	n.tls, n.door = c.TLS, gateway.NewDoor(root.Root)
	defer n.closeDoor()
	if err := n.openAdmin(); err != nil {
		return err
	}
	defer n.closeAdmin()
	member, err := members.Start(root.Root, c)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		cancel() // a second signal ends the process at once
		n.makeWay(member)
	case grace := <-n.drain: // another node leads, and is relayed to until clients have learned that
		log.Info().Stringer("grace", grace).Msg("asked to drain: another node is to lead")
		n.drained(member, grace, ctx.Done())
	}
	cancel()
	log.Info().Msg("stopping")
	n.over.Store(true)
	return member.Close()
}

// yielder is a member that may lead.
type yielder interface {
	Yield() bool
	HandedOver() <-chan struct{}
}

// drained serves on for the grace, which begins with the hand-over where there is one, or until the process is told to end.
func (n *clusterNode) drained(member yielder, grace time.Duration, ended <-chan struct{}) {
	var handed <-chan struct{}
	if member.Yield() {
		handed = member.HandedOver()
	}
	n.relay(grace, true, handed, nil, ended)
}

// makeWay has another node lead, if this one does and another can, and relays to it for a while: by then some clients have learned where it is,
// and those who ask often all of them. Whoever wants more drains the node. When all nodes are stopped at once, none waits for another.
func (n *clusterNode) makeWay(member *members.Member) {
	if n.flags.stopGrace <= 0 || !member.Yield() {
		return
	}
	n.log.Info().Stringer("grace", n.flags.stopGrace).Msg("stopping: another node is to lead, and clients are relayed to it")
	n.relay(n.flags.stopGrace, false, member.HandedOver(), member.Deserted(), nil)
}

// relay waits until the grace is over, which begins when the lead is handed over: before, there is nobody to relay to. For that it waits no longer
// than a hand-over has for its clients, so that whoever ends the process in the end can tell when. With handed nil there is none, and it begins at once.
// Whoever drains a node that is being stopped says for how long; of two who drain it the shorter grace counts, and none begins anew (drains: the first has come).
func (n *clusterNode) relay(grace time.Duration, drains bool, handed, deserted, ended <-chan struct{}) {
	var over <-chan time.Time
	var end time.Time // of the grace, once it has begun
	late := time.After(stopTimeout / 2)
	begin := func() { handed, late, over, end = nil, nil, time.After(grace), time.Now().Add(grace) }
	if handed == nil {
		begin()
	}
	for {
		select {
		case <-ended:
			return
		case <-handed:
			begin()
		case <-late:
			begin()
		case <-over:
			return
		case <-deserted:
			n.log.Info().Msg("stopping: no other node leads, nor will")
			return
		case asked := <-n.drain:
			left := grace
			if over != nil {
				left = time.Until(end)
			}
			if drains && asked >= left {
				continue
			}
			if grace, drains = asked, true; over != nil {
				begin()
			}
		}
	}
}

// openAdmin opens the admin port, if there is to be one.
func (n *clusterNode) openAdmin() (err error) {
	if listen := n.conf.AdminListen; listen != "" {
		n.admin, err = adminPort(n.conf, n.log, func() (*admin.Server, error) { return admin.Open(listen, n.log) })
	}
	return err
}

func (n *clusterNode) closeDoor() {
	now, cancel := context.WithTimeout(context.Background(), stopTimeout/2)
	defer cancel()
	if err := n.door.Close(now); err != nil {
		n.log.Warn().Err(err).Msg("clients that did not take their answers were cut off")
	}
}

// dialer connects to whoever leads, as clients do: with TLS where the ports have that, and always where the client has it.
func (n *clusterNode) dialer(g gateway.Config) func(ctx context.Context, address string, secret bool) (net.Conn, error) {
	return func(ctx context.Context, address string, secret bool) (net.Conn, error) {
		if g.TLSMode == edge.TLSDisabled || !secret && g.TLSMode == edge.TLSPermissive && g.TLSFiles.Cert == "" {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", address)
		}
		d := tls.Dialer{Config: nodeconf.InsecureTLS()}
		if n.tls != nil {
			_, d.Config = n.tls()
		}
		return d.DialContext(ctx, "tcp", address)
	}
}

func (n *clusterNode) closeAdmin() {
	if n.admin == nil {
		return
	}
	now, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := n.admin.Stop(now); err != nil {
		n.log.Warn().Err(err).Msg("stopping")
	}
}

// serve is the member's Serve.
func (n *clusterNode) serve(store *system.Store, role members.Role, files vfs.Disk) (func(context.Context) error, error) {
	x := &node{log: n.log, drain: n.drain, store: store, scrub: n.scrub, tracer: n.trace, admin: n.admin, keeps: true}
	x.conf.Store(n.conf)
	if err := store.SetRetention(n.conf.Running().Retention); err != nil {
		return nil, err
	}
	g := n.conf.Gateway
	if g.Broker.BrokerID = 0; !role.Leads {
		g.Broker.BrokerID, _ = strconv.ParseInt(n.flags.nodeID, 10, 64) // Validate has looked at it
	}
	g.Master, g.Files, g.Alone = "", files, role.Alone
	g.Door, g.Group = n.door, &gateway.Group{
		Leader: role.Leading, Leaderless: role.Leaderless, Dial: n.dialer(g), Name: n.flags.cluster, ID: n.flags.nodeID, Epoch: role.Epoch, Secret: role.Secret,
	}
	const often = time.Second // clients go on once the name servers know who leads
	g.Join.Interval, g.SyncFirst, g.SyncInterval, g.OffsetInterval = often, often/4, often, often
	g.Group.Plain = slices.Clone(g.Join.NameServers)
	for _, other := range nodesOf(n.flags.join) {
		names := other.Port(members.PortNameServer)
		if other.ID == n.flags.nodeID {
			g.Group.NameServer = names
			continue
		}
		g.Group.Nodes = append(g.Group.Nodes, other.ID)
		g.Group.Plain = slices.DeleteFunc(g.Group.Plain, func(named string) bool { return named == names }) // namesrvAddr may name the nodes' too
		g.Join.NameServers = append(g.Join.NameServers, names)
	}
	if err := x.serve(g); err != nil {
		return nil, err
	}
	n.first.Do(func() { n.ready(x) })
	return func(ctx context.Context) error {
		err := x.leave(ctx)
		if n.over.Load() {
			go n.closeDoor() // no client waits for the rest; whoever ends the process waits for this
		}
		n.conf = x.conf.Load() // the next role has what this one was told
		return err
	}, nil
}
