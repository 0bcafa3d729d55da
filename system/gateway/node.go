package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actormq/actormq/actors/clients"
	edge "github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/actors/groups"
	"github.com/actormq/actormq/actors/locks"
	"github.com/actormq/actormq/actors/offsets"
	"github.com/actormq/actormq/actors/registrar"
	"github.com/actormq/actormq/actors/topics"
	"github.com/actormq/actormq/actors/transaction"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system/gateway/acl"
	"github.com/actormq/actormq/system/gateway/admin"
	"github.com/actormq/actormq/system/gateway/broker"
	"github.com/actormq/actormq/system/gateway/certs"
	"github.com/actormq/actormq/system/gateway/consume"
	"github.com/actormq/actormq/system/gateway/namesrv"
	"github.com/actormq/actormq/system/gateway/produce"
	"github.com/actormq/actormq/system/gateway/stats"
)

// Node is a running node on the network.
type Node struct {
	cfg    Config
	root   *actor.RootContext
	broker *broker.Broker
	names  *namesrv.Server
	certs  *certs.Keeper // nil: no port speaks TLS
	access *acl.Keeper   // nil: no access control
	edge   *edge.Gateway
	ports  []edge.Port

	master     atomic.Pointer[string] // of a slave: where its configuration comes from; nil while nobody knows
	configSync *actor.PID             // of a slave: takes over its master's configuration
	takesOver  atomic.Bool            // of a slave: it is being promoted
	registrar  *registrar.Registrar   // nil: there is no other name server
	draining   atomic.Bool            // producers are sent to other brokers

	stops []func() error // of what has been started, the last first
}

// Start loads the configuration files, starts the keepers and listens. On an error nothing is left running.
func Start(root *actor.RootContext, cfg Config) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, root: root, broker: broker.New(cfg.Broker, cfg.Store)}
	for _, step := range []func() error{
		n.startStats, n.startRegistrar, n.startTopics, n.startGroups, n.startClients, n.startOffsets, n.startTransactions, n.startLocks,
		n.startReaders, n.startNames, n.startCertificates, n.startAccess, n.listen, n.startFollowing, n.beginRegistrar,
	} {
		if err := step(); err != nil {
			return nil, errors.Join(err, n.undo())
		}
	}
	n.cfg.Broker.Logger.Info().Str("cluster", n.broker.ClusterName).Str("broker", n.broker.BrokerName).
		Str("advertised", n.broker.Address).Str("listen", cfg.Listen).Str("name_server", cfg.NameServerListen).
		Int("topics", n.broker.Topics.Len()).Msg("the node serves clients")
	return n, nil
}

// Broker is what the request handlers work with: the keepers, and who the broker is.
func (n *Node) Broker() *broker.Broker { return n.broker }

// Addr is where a port listens: "broker", "vip" or "namesrv"; the zero value when there is none of that name.
func (n *Node) Addr(port string) netip.AddrPort {
	for i, p := range n.ports {
		if p.Name == port {
			return n.edge.Address(i)
		}
	}
	return netip.AddrPort{}
}

// Connections is the number of open connections.
func (n *Node) Connections() int { return n.edge.Connections() }

// Stop takes the node off the network in good order (see the gateway's Stop), then saves what the keepers have and ends
// them. The store stays open; close it afterwards. When the context ends first, what is left is closed at once.
func (n *Node) Stop(ctx context.Context) error {
	if n.cfg.Door == nil {
		n.unregister(ctx)
	}
	err := n.closeEdge(ctx)
	if saving := n.broker.Offsets.Save(ctx); !errors.Is(saving, messages.ErrClosed) {
		err = errors.Join(err, saving)
	}
	return errors.Join(err, n.undo())
}

// undo ends what has been started, the last first.
func (n *Node) undo() error {
	var err error
	for i := len(n.stops) - 1; i >= 0; i-- {
		err = errors.Join(err, n.stops[i]())
	}
	n.stops = nil
	return err
}

func (n *Node) startStats() (err error) {
	n.broker.Stats, err = stats.Start(n.root, n.broker.Logger)
	n.stopping(err, func() error { return n.broker.Stats.Close() })
	return err
}

// stopping notes how to end what has just been started.
func (n *Node) stopping(err error, stop func() error) {
	if err == nil {
		n.stops = append(n.stops, stop)
	}
}

// files is the disk of topics, groups and offsets.
func (n *Node) files() vfs.Disk {
	if n.cfg.Files != nil {
		return n.cfg.Files
	}
	return n.cfg.Disk
}

func (n *Node) file(name string) string { return path.Join(n.cfg.ConfigDir, name) }

func (n *Node) startTopics() (err error) {
	n.broker.Topics, err = topics.Start(n.root, string(topics.Role), topics.Config{
		Disk: n.files(), Path: n.file("topics.json"), ClusterName: n.broker.ClusterName, BrokerName: n.broker.BrokerName,
		AutoCreate: !n.cfg.NoAutoCreateTopic, DefaultQueues: n.cfg.DefaultQueues, ClusterTopic: !n.cfg.NoClusterTopic,
		BrokerTopic: !n.cfg.NoBrokerTopic, TraceTopic: n.cfg.TraceTopic, Listener: n.topicListener(), Logger: n.broker.Logger,
	})
	n.stopping(err, func() error { return n.broker.Topics.Close() })
	return err
}

func (n *Node) startGroups() error {
	g, err := groups.Start(n.root, "group-keeper", groups.Config{
		Disk: n.files(), Path: n.file("subscriptionGroup.json"), AutoCreate: !n.cfg.NoAutoCreateGroup, Logger: n.broker.Logger,
	})
	n.broker.Groups = g
	n.stopping(err, func() error { return g.Close() })
	return err
}

func (n *Node) startClients() (err error) {
	n.broker.Clients, err = clients.Start(n.root, string(clients.Role), clients.Config{
		Expiry: n.cfg.ClientExpiry, Notifies: n.notifies, Logger: n.broker.Logger,
		Compile: func(expressionType, expression string) (any, error) {
			return broker.CompileFilter(expressionType, expression)
		},
	})
	n.stopping(err, func() error { return n.broker.Clients.Close() })
	return err
}

// notifies tells whether the members of a group are told of changes.
func (n *Node) notifies(group string) bool {
	config, ok := n.broker.Groups.Lookup(group)
	return !n.broker.Policy().NotifyOff && (!ok || config.NotifyConsumerIDsChangedEnable)
}

// closed takes a client whose connection has ended out of all groups, and tells the others; a broker out of the routes.
func (n *Node) closed(c *edge.Conn) {
	if c.Port() == namesrvPort {
		n.names.Gone(c)
		return
	}
	n.broker.Clients.Gone(c)
}

func (n *Node) startOffsets() (err error) {
	file, before := n.file("consumerOffset.json"), ""
	if n.broker.Policy().LightTopics {
		file, before = n.file("lmqConsumerOffset.json"), file
	}
	n.broker.Offsets, err = offsets.Start(n.root, string(offsets.Role), offsets.Config{
		Disk: n.files(), Path: file, Before: before, LightGroups: before != "", Interval: n.cfg.OffsetInterval,
		RefuseBackward: n.cfg.RefuseBackward, Logger: n.broker.Logger,
	})
	if err != nil {
		return err
	}
	n.stopping(err, func() error { return n.broker.Offsets.Close() })
	if damage := n.broker.Offsets.LoadErr(); damage != nil {
		n.broker.Logger.Error().Err(damage).Msg("the consumer offsets could not be read: groups begin as new ones")
	}
	return nil
}

// startTransactions starts the transactions of a master; a slave neither ends nor checks any.
func (n *Node) startTransactions() (err error) {
	if n.broker.BrokerID != 0 {
		return nil
	}
	n.broker.Transactions, err = transaction.Start(context.Background(), n.root, string(transaction.Role), transaction.Config{
		Store: n.broker.Store, Offsets: n.broker.Offsets, Host: n.broker.StoreHost, Check: produce.New(n.broker).CheckBack,
		Timeout: n.cfg.TransactionTimeout, Interval: n.cfg.TransactionInterval, MaxCheck: n.cfg.TransactionMaxCheck,
		Logger: n.broker.Logger,
	})
	n.stopping(err, func() error { return n.broker.Transactions.Close() })
	return err
}

func (n *Node) startLocks() (err error) {
	n.broker.Locks, err = locks.Start(n.root, string(locks.Role), locks.Config{Expiry: n.cfg.LockExpiry, Logger: n.broker.Logger})
	n.stopping(err, func() error { return n.broker.Locks.Close() })
	return err
}

func (n *Node) startNames() (err error) {
	kv := n.cfg.KVPath
	if kv == "" {
		kv = n.file("kvConfig.json")
	}
	n.names, err = namesrv.Start(n.root, namesrv.Config{
		Broker: n.broker, Disk: n.cfg.Disk, KVPath: kv, Draining: n.draining.Load, Relays: n.cfg.Group != nil,
		Alone: n.cfg.Alone, HAAddress: n.cfg.HAAddress, OrderMessages: n.cfg.OrderMessages, Logger: n.broker.Logger,
	})
	n.stopping(err, func() error { return n.names.Close() })
	return err
}

// listen opens the ports; from here on requests come in.
func (n *Node) listen() (err error) {
	opt := n.cfg.Limits
	opt.TLSMode = n.cfg.TLSMode
	if n.ports, err = n.portsOf(); err != nil {
		return err
	}
	n.guard(n.ports)
	n.audit(n.ports)
	s := edge.Service{Ports: n.ports, OnClosed: n.closed, OnTell: tell, Relay: n.relay()}
	if n.certs != nil {
		s.TLS = n.certs.Server()
	}
	if n.cfg.Door != nil || n.cfg.Group != nil { // else nobody is announced to another service, or to another node
		s.Beat, s.Bye = remoting.RequestHeartbeat, remoting.RequestUnregisterClient
	}
	n.edge, err = n.cfg.Door.serve(n.root, opt, s)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	n.stopping(nil, func() error { return n.closeEdge(context.Background()) })
	return nil
}

// namesrvPort is the name of the name server's port.
const namesrvPort = "namesrv"

func (n *Node) portsOf() ([]edge.Port, error) {
	all := edge.Routes{}
	maps.Copy(all, produce.New(n.broker).Routes())
	maps.Copy(all, consume.New(n.broker).Routes())
	maps.Copy(all, admin.New(n.broker, n.cfg.Tools).Routes())
	all[remoting.RequestPromoteBroker] = edge.Route{Handle: n.promoteRequest, Lane: edge.Slow}
	all[remoting.RequestDrainBroker] = edge.Route{Handle: n.drainRequest, Lane: edge.Quick}
	if n.cfg.Group != nil {
		all[remoting.RequestRelayBroker] = edge.Route{Handle: n.relayRequest, Lane: edge.Quick}
		all[remoting.RequestRelayHello] = edge.Route{Handle: n.helloRequest, Lane: edge.Quick}
		all[remoting.RequestNodeHello] = edge.Route{Handle: n.nodeRequest, Lane: edge.Quick}
	}
	for code, route := range n.cfg.Routes {
		if _, taken := all[code]; taken || route.Handle == nil {
			return nil, fmt.Errorf("%w: Routes: code %d is RocketMQ's, or has no handler", ErrConfig, code)
		}
		all[code] = route
	}
	ports := []edge.Port{{Name: "broker", Address: n.cfg.Listen, Routes: all}}
	if n.cfg.VIPListen != "" {
		vip := maps.Clone(all)
		delete(vip, remoting.RequestPullMessage)
		ports = append(ports, edge.Port{Name: "vip", Address: n.cfg.VIPListen, Routes: vip})
	}
	if n.cfg.NameServerListen != "" {
		names := n.names.Routes()
		if n.cfg.Group != nil {
			names[remoting.RequestNodeHello] = all[remoting.RequestNodeHello]
		}
		ports = append(ports, edge.Port{Name: namesrvPort, Address: n.cfg.NameServerListen, Routes: names})
	}
	return ports, nil
}

// tell turns what keepers tell a client into a request to it.
func tell(c *edge.Conn, message any) {
	if m, ok := message.(messages.ConsumerIDsChanged); ok {
		// A client that does not take it rebalances by its own timer.
		_ = c.Push(remoting.NewRequest(remoting.RequestNotifyConsumerIdsChanged, &remoting.ConsumerGroupHeader{ConsumerGroup: m.Group}))
	}
}
