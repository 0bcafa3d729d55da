package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/gateway/certs"
	"github.com/actormq/actormq/system/gateway/vouch"
)

// Node is one of the cluster's, as all others reach it. Its ports follow each other, from Base on.
type Node struct {
	ID   string
	Base string // host:port
}

// The ports of a node behind its first one.
const (
	PortPeer        = 0 // of etcd, to the other nodes
	PortClient      = 1 // of etcd, to tools
	PortReplication = 2
	PortNameServer  = 3
	PortAdmin       = 4
	PortBroker      = 7 // two behind it is RocketMQ's second port
)

// Port is the address of one of a node's ports.
func (n Node) Port(number int) string {
	host, port, err := net.SplitHostPort(n.Base)
	first, bad := strconv.Atoi(port)
	if errors.Join(err, bad) != nil {
		return n.Base // Validate has refused it
	}
	return net.JoinHostPort(host, strconv.Itoa(first+number))
}

// Config is what a member is made of. The zero value of a field is its default, where one is named.
type Config struct {
	Name  string // of the cluster
	ID    string // of this node
	Nodes []Node // all of them, this one too; the same on every node

	Broker string // host:port at which clients reach this node; told to others
	Remote string // host:port at which actors of other processes reach its store endpoint, if it has one; told to others

	// Etcd are the endpoints of an external etcd; empty: the nodes run one of their own, in EtcdDir.
	Etcd    []string
	EtcdDir string // default <store>/etcd

	// Files are a certificate, its key, and who signs those of the other nodes, and TLS is made of them, as server and as client: then
	// the nodes speak TLS with each other, and both sides show certificates, which must name the hosts of Nodes. Nil: in the clear.
	Files certs.Files
	TLS   func() (server, client *tls.Config)

	// Store are the options of the store; role and group are the member's.
	Store system.Options
	// Serve starts what serves clients with a store, and returns what ends it; it is called each time the role has changed. It must not
	// keep the store behind its end, which is soon when it is a change of roles. Topics, groups and offsets are to be read and written by files: then the next leader has them.
	Serve func(store *system.Store, role Role, files vfs.Disk) (stop func(context.Context) error, err error)

	MinInSync int           // nodes that must have a message before it is acknowledged; default: a majority
	Lease     time.Duration // whole seconds; default 2 s
	Lag       time.Duration // a replica that lacks something for so long is no longer in sync; default the lease

	Logger zerolog.Logger
}

// Role is what a node does at the moment.
type Role struct {
	Leads  bool
	Epoch  int64
	Leader string // id of the node that leads; empty: nobody is known
	// Alone tells that the node has been cut off from etcd a moment ago: what it knows of the group may be old. After a minute it is not told
	// any more, since then there may be no others. Any goroutine may call it.
	Alone func() bool
	// Leading tells where clients reach whoever leads, empty while nobody else is known to; changed is closed when that is over. Any
	// goroutine may call it.
	Leading func() (address string, changed <-chan struct{})
	// Leaderless tells that nobody has led for so long that readers should be given what this node has. Any goroutine may call it.
	Leaderless func() bool
	// Secret is what all nodes of the group know and nobody else, nil while this node does not. Any goroutine may call it.
	Secret func() *vouch.Secret
}

const (
	defaultLease = 2 * time.Second
	// askTimeout bounds a request to etcd.
	askTimeout = 2 * time.Second
	// sayInterval is between two times at which a node says how far it is.
	sayInterval = time.Second
	// passInterval is between two attempts to have etcd led by another node: while one goes on etcd takes nothing.
	passInterval = 5 * time.Second
	// stopTimeout bounds a change of roles: what hangs is cut off, as by a crash.
	stopTimeout = 5 * time.Second
	// changeGrace is what clients have of it: the group waits for its next leader, and some of them can't be reached.
	changeGrace = 250 * time.Millisecond
)

// ErrConfig: something required is missing or odd; the message lists every problem.
var ErrConfig = errors.New("bad cluster configuration")

func (c Config) withDefaults() Config {
	if c.MinInSync == 0 {
		c.MinInSync = len(c.Nodes)/2 + 1
	}
	if c.Lease == 0 {
		c.Lease = defaultLease
	}
	if c.Lag == 0 {
		c.Lag = c.Lease
	}
	c.Store = c.Store.Defaults()
	if c.EtcdDir == "" {
		c.EtcdDir = path.Join(c.Store.Dir, "etcd")
	}
	return c
}

// Validate returns all problems at once, or nil.
func (c Config) Validate() error {
	var bad []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			bad = append(bad, fmt.Errorf(format, args...))
		}
	}
	check(c.Name != "" && path.Base(c.Name) == c.Name, "the cluster's name is %q", c.Name)
	check(c.Serve != nil, "Serve is missing")
	ids := map[string]bool{}
	for _, n := range c.Nodes {
		check(n.ID != "" && !ids[n.ID], "two nodes, or one without, have the id %q", n.ID)
		ids[n.ID] = true
		_, port, err := net.SplitHostPort(n.Base)
		number, odd := strconv.Atoi(port)
		check(err == nil && odd == nil && number > 0 && number+PortBroker < 1<<16, "node %s is at %q: want HOST:PORT", n.ID, n.Base)
	}
	check(ids[c.ID], "node %s is not one of the cluster's", c.ID)
	check(c.MinInSync >= 0 && c.MinInSync <= len(c.Nodes), "MinInSync is %d of %d nodes", c.MinInSync, len(c.Nodes))
	check(c.Lease%time.Second == 0, "Lease is %v: whole seconds", c.Lease)
	if len(bad) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrConfig, errors.Join(bad...))
}

// client is the configuration of connections to etcd, nil in the clear.
func (c Config) client() *tls.Config {
	if c.TLS == nil {
		return nil
	}
	_, client := c.TLS()
	return client
}

func (c Config) node(id string) Node {
	i := slices.IndexFunc(c.Nodes, func(n Node) bool { return n.ID == id })
	if i < 0 {
		return Node{}
	}
	return c.Nodes[i]
}
