package gateway

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/registrar"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/metadata"
)

// Join says at which name servers the node registers, beside its own. Names in parentheses are RocketMQ's options.
type Join struct {
	NameServers []string // host:port (namesrvAddr); empty: none
	// Connect returns what calls a name server, and what ends its connections; lost is called when one of them has ended.
	// Required with NameServers.
	Connect func(lost func(address string)) (call Caller, end func())

	Interval   time.Duration // registerNameServerPeriod; default 30 s
	Timeout    time.Duration // registerBrokerTimeoutMills; default 6 s
	IfChanged  bool          // forceRegister=false
	Compressed bool          // compressedRegister
}

// Caller sends a request to an address and returns its answer, whatever its code.
type Caller func(ctx context.Context, address string, request *remoting.Command) (*remoting.Command, error)

// startRegistrar makes the registrar ready; it begins once the node listens.
func (n *Node) startRegistrar() (err error) {
	join := n.cfg.Join
	if len(join.NameServers) == 0 {
		return nil
	}
	call, end := join.Connect(func(address string) {
		if r := n.registrar; r != nil {
			r.Lost(address)
		}
	})
	n.registrar, err = registrar.Start(n.root, "registrar", registrar.Config{
		NameServers: join.NameServers, Call: call, Broker: n.registration, Answered: n.answered,
		Interval: join.Interval, Timeout: join.Timeout, IfChanged: join.IfChanged, Compressed: join.Compressed, Logger: n.broker.Logger,
	})
	if err != nil {
		end()
		return err
	}
	n.broker.OnPolicy = n.registrar.Changed
	n.stopping(nil, func() error {
		defer end()
		return n.registrar.Close()
	})
	return nil
}

// beginRegistrar registers for the first time.
func (n *Node) beginRegistrar() error {
	if n.registrar != nil {
		n.registrar.Begin()
	}
	return nil
}

// topicListener is told of changed topics.
func (n *Node) topicListener() actors.Peer {
	if n.registrar == nil {
		return actors.Peer{}
	}
	return n.registrar.Peer()
}

// registration is what the node registers now: all its topics, without write permission once it drains.
func (n *Node) registration() registrar.Broker {
	b := registrar.Broker{RegisterBrokerHeader: remoting.RegisterBrokerHeader{
		BrokerName: n.broker.BrokerName, BrokerAddr: n.broker.Address, ClusterName: n.broker.ClusterName,
		HAServerAddr: n.haAddress(), BrokerID: n.broker.BrokerID,
	}}
	table := n.broker.Topics.Table()
	version := remoting.DataVersion{Counter: table.DataVersion.Counter, TimestampMs: table.DataVersion.TimestampMs}
	perm := n.broker.Policy().Perm
	if n.draining.Load() {
		perm &^= metadata.PermWrite
	}
	if all := metadata.PermRead | metadata.PermWrite; perm != all {
		// Name servers look at the topics only when their version is another one.
		version.Counter, version.TimestampMs = version.Counter+1, version.TimestampMs+int64(all-perm)
	}
	topics := make(map[string]remoting.TopicConfig, len(table.Topics))
	for name, t := range table.Topics {
		topics[name] = registered(name, &t, perm)
	}
	b.Body = remoting.RegisterBrokerBody{
		FilterServerList:            []string{},
		TopicConfigSerializeWrapper: remoting.TopicConfigTable{DataVersion: version, TopicConfigTable: topics},
	}
	return b
}

// registered is a topic as it is registered: one of a broker that may not read, or not write, has the broker's permission and
// little else (spec/remoting.md §6.2).
func registered(name string, t *metadata.TopicConfig, perm int) remoting.TopicConfig {
	c := remoting.TopicConfig{
		TopicName: name, ReadQueueNums: int32(t.ReadQueueNums), WriteQueueNums: int32(t.WriteQueueNums), Perm: int32(t.Perm),
		TopicFilterType: t.TopicFilterType, TopicSysFlag: int32(t.TopicSysFlag), Order: t.Order,
	}
	if perm&metadata.PermRead == 0 || perm&metadata.PermWrite == 0 {
		c.Perm, c.TopicSysFlag, c.Order = int32(perm), 0, false
	}
	if c.TopicFilterType == "" {
		c.TopicFilterType = "SINGLE_TAG"
	}
	return c
}

// haAddress is where replicas are told to come; RocketMQ's port is the broker's and one.
func (n *Node) haAddress() string {
	if n.cfg.HAAddress != "" {
		return n.cfg.HAAddress
	}
	host, port, err := net.SplitHostPort(n.broker.Address)
	number, bad := strconv.Atoi(port)
	if errors.Join(err, bad) != nil {
		return n.broker.Address
	}
	return net.JoinHostPort(host, strconv.Itoa(number+1))
}

// answered takes over which topics are order topics, from the first name server only: two of them may differ.
func (n *Node) answered(first bool, answer *remoting.Command) {
	n.promoted(answer)
	if !first || len(answer.Body) == 0 {
		return
	}
	var order remoting.KVTable
	err := answer.DecodeBody(&order)
	if err == nil && order.Table != nil {
		ctx, cancel := n.broker.Context()
		defer cancel()
		err = n.broker.Topics.ApplyOrder(ctx, slices.Sorted(maps.Keys(order.Table)))
	}
	if err != nil {
		n.broker.Noise.Warn().Err(err).Msg("the order topics of the name server could not be taken over")
	}
}

// unregister takes the node out of the routes of its name servers.
func (n *Node) unregister(ctx context.Context) {
	if n.registrar == nil {
		return
	}
	most := time.Second
	if end, bounded := ctx.Deadline(); bounded {
		most = min(most, time.Until(end)/2) // of what a stop has
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if err := n.registrar.Leave(ctx); err != nil {
		n.broker.Logger.Warn().Err(err).Msg("a name server goes on naming this broker until its connection is seen to be closed")
	}
}
