package gateway

import (
	"context"
	"maps"
	"net"

	"github.com/asynkron/protoactor-go/actor"

	edge "github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway/consume"
	"github.com/actormq/actormq/system/gateway/produce"
	"github.com/actormq/actormq/system/gateway/vouch"
)

// Group is what a node of a replica group knows of whoever leads it. Any goroutine calls its functions.
type Group struct {
	// Leader is where clients reach the leader, empty while nobody else is known to lead; changed is closed when that is over.
	Leader func() (address string, changed <-chan struct{})
	// Leaderless tells that nobody has led for so long that readers are given what this node has.
	Leaderless func() bool
	// Dial connects to the leader, as a client does, one whose connection is encrypted if secret is set.
	Dial func(ctx context.Context, address string, secret bool) (net.Conn, error)

	Name  string   // of the group
	ID    string   // of this node
	Nodes []string // ids of the others, which may relay to it, and ask it for themselves
	// NameServer is where the others reach this node's name server, host:port.
	NameServer string
	// Plain are the name servers, host:port, that are none of the group's: nothing is proved to them.
	Plain []string
	Epoch int64 // of a node that leads
	// Secret is what all nodes of the group know, nil while this one does not: then no node proves for whom it relays. The function may be nil.
	Secret func() *vouch.Secret
}

// secret is the group's, nil while it is not known.
func (g *Group) secret() *vouch.Secret {
	if g.Secret == nil {
		return nil
	}
	return g.Secret()
}

// Door keeps a node's ports and connections while one Node follows another one: what clients send meanwhile waits a moment. Its methods are
// called one after the other.
type Door struct {
	root *actor.RootContext
	edge *edge.Gateway // nil: no Node has been started yet
}

// NewDoor returns a Door whose actors live under root. The first Node that is started with it opens the ports. Close it, behind the last Node.
func NewDoor(root *actor.RootContext) *Door { return &Door{root: root} }

// Close ends the connections in good order: see the gateway's Stop.
func (d *Door) Close(ctx context.Context) error {
	if d.edge == nil {
		return nil
	}
	return d.edge.Stop(ctx)
}

// serve has the ports, which are opened where there are none yet, do what a service says. A nil Door is none.
func (d *Door) serve(root *actor.RootContext, opt edge.Options, s edge.Service) (*edge.Gateway, error) {
	if d != nil && d.edge != nil {
		return d.edge, d.edge.Serve(s)
	}
	if d != nil {
		root = d.root
	}
	opened, err := edge.Start(root, opt, s)
	if d != nil && err == nil {
		d.edge = opened
	}
	return opened, err
}

// closeEdge ends what clients ask for; the ports of a Door stay.
func (n *Node) closeEdge(ctx context.Context) error {
	if n.cfg.Door != nil {
		return n.edge.Suspend(ctx)
	}
	return n.edge.Stop(ctx)
}

// relay is how requests that are for the leader are handed on; nil where this node leads, or has nobody to.
func (n *Node) relay() *edge.Relay {
	group := n.cfg.Group
	if group == nil || n.broker.BrokerID == 0 {
		return nil
	}
	all, reads := produce.New(n.broker).Routes(), consume.New(n.broker).Routes()
	maps.Copy(all, reads)
	return &edge.Relay{
		Takes: func(c *remoting.Command) bool {
			_, reads := reads[c.Code]
			if reads && !promises(c.Code) && group.Leaderless() || c.Code == remoting.RequestPullMessage && n.broker.Policy().SlaveReads {
				return false
			}
			_, takes := all[c.Code]
			return takes
		},
		Leader: group.Leader, Dial: group.Dial, Held: remoting.RequestPullMessage, Abandons: factual,
		Hello: func() *remoting.Command {
			return remoting.NewRequest(remoting.RequestRelayBroker, &remoting.RelayHeader{Vouch: group.secret() != nil})
		},
		Vouch:   group.vouch,
		Relayed: &n.broker.Relayed.All, Failed: &n.broker.Relayed.Failed,
	}
}

// factual tells of which requests clients take any error for a fact: that the group has no offset, on which they skip to the end of the queue, and
// that a message was taken back.
func factual(c *remoting.Command) bool {
	return c.Code == remoting.RequestQueryConsumerOffset || c.Code == remoting.RequestConsumerSendMsgBack && c.Language == remoting.LanguageGo
}

// promises tells which of consumers' requests only a leader can answer: a lock that two nodes grant is none, and an offset that a follower has
// taken is lost with the next leader.
func promises(code int) bool {
	return code == remoting.RequestLockBatchMQ || code == remoting.RequestUnlockBatchMQ || code == remoting.RequestUpdateConsumerOffset
}
