package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	edge "github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system/gateway/admin"
	"github.com/actormq/actormq/system/gateway/broker"
	"github.com/actormq/actormq/system/gateway/certs"
)

// Config is what a node on the network is made of. The zero value of a field is its default; names in parentheses are
// RocketMQ's options.
type Config struct {
	Store     broker.Store // required
	Disk      vfs.Disk     // of the configuration files; required
	Files     vfs.Disk     // of topics, groups and offsets alone, which then come with the log, as delay offsets do: a slave asks for none; default Disk
	ConfigDir string       // of topics.json and the like; required
	KVPath    string       // of the name server's kvConfig.json; default ConfigDir/kvConfig.json

	Listen           string // host:port of the broker; required
	NameServerListen string // host:port of the name server; empty: none
	VIPListen        string // host:port of the broker's second port (listenPort − 2), which serves no pulls; empty: none

	TLSMode  edge.TLSMode // of all ports (tls.server.mode)
	TLSFiles certs.Files
	ACLFile  string // plain_acl.yml; empty: no access control (aclEnable=false)

	// Routes are requests of the user's own, on the broker's ports beside RocketMQ's; a code that is taken is refused. Take
	// codes from 20,000 on. Where access control is on, a request is signed by any account; the handler looks at more.
	Routes edge.Routes

	// OnDrain is called when a request asks the node to drain and to stop; it must not block. nil: no request may.
	OnDrain func(grace time.Duration)

	// OnPromote is called when a request asks a slave to become the master, and its log has the offset that the request expects: from then
	// on it must take nothing from its master. It returns where its log ends. nil: no request may.
	OnPromote func(ctx context.Context, expect messages.PhysicalOffset) (messages.PhysicalOffset, error)

	// Door has the ports, which stay open while one Node follows another one; nil: the node opens and closes its own.
	Door *Door
	// Group, of a node of a replica group: who leads it. A Node whose BrokerID is not 0 relays what is for the leader; nil: nothing is.
	Group *Group

	Join      Join   // other name servers that the node registers at
	HAAddress string // brokerIP2 and the port of replication, as replicas reach the broker

	// Master is the broker, as host:port, whose configuration a slave takes over (brokerId above 0); Join.Connect reaches it.
	// Empty: the one that a name server tells.
	Master string
	// Alone, of a node of a replica group, tells whether it is cut off from the group, so that other name servers know more. Nil: never.
	Alone func() bool

	SyncFirst    time.Duration // until it is first taken over; default 3 s
	SyncInterval time.Duration // between two times; default 10 s

	Broker broker.Config
	Limits edge.Options // TLSMode is the node's own
	Tools  admin.Node

	NoAutoCreateTopic bool   // autoCreateTopicEnable=false
	NoAutoCreateGroup bool   // autoCreateSubscriptionGroup=false
	NoClusterTopic    bool   // clusterTopicEnable=false
	NoBrokerTopic     bool   // brokerTopicEnable=false
	DefaultQueues     int    // defaultTopicQueueNums; default 8
	TraceTopic        string // msgTraceTopicName; empty: none is made at start

	TransactionTimeout  time.Duration // transactionTimeOut; default 6 s
	TransactionInterval time.Duration // transactionCheckInterval; default 60 s
	TransactionMaxCheck int           // transactionCheckMax; default 15

	OffsetInterval time.Duration // flushConsumerOffsetInterval; default 5 s
	RefuseBackward bool          // commits of lower offsets are refused, unless a reset is expected
	LockExpiry     time.Duration // rocketmq.broker.rebalance.lockMaxLiveTime; default 60 s
	ClientExpiry   time.Duration // without a heartbeat; default 120 s

	OrderMessages bool // the name server's orderMessageEnable
}

// ErrConfig: something required is missing; the message lists every problem.
var ErrConfig = errors.New("bad gateway configuration")

// Validate returns all problems at once, or nil.
func (c Config) Validate() error {
	var bad []error
	for _, f := range []struct {
		name string
		ok   bool
	}{
		{"Store", c.Store != nil}, {"Disk", c.Disk != nil}, {"ConfigDir", c.ConfigDir != ""}, {"Listen", c.Listen != ""},
	} {
		if !f.ok {
			bad = append(bad, fmt.Errorf("%s is missing", f.name))
		}
	}
	if len(c.Join.NameServers) > 0 && c.Join.Connect == nil {
		bad = append(bad, errors.New("Join.Connect is missing"))
	}
	if len(bad) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrConfig, errors.Join(bad...))
}
