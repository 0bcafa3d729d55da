package gateway

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"slices"

	edge "github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway/vouch"
)

// between are the requests that nodes of a group make for themselves: they register at each other's name servers, and a follower takes over what
// the leader has. Whoever has proved to be one needs no account for these, and for no others.
var between = []int{
	remoting.RequestRegisterBroker, remoting.RequestUnregisterBroker,
	remoting.RequestGetAllTopicConfig, remoting.RequestGetAllConsumerOffset, remoting.RequestGetAllSubscriptionGroupConfig,
}

// ofNode tells whether a request is one that nodes of a group make, and comes from one.
func ofNode(r *edge.Request) bool {
	return slices.Contains(between, r.Code) && r.Conn.Node() != "" && !r.Conn.Relayed()
}

// Greet proves to another node of the group, by a connection of this one's own, that this is one too. It is done when that node believes it, or
// does not need to know, as it has no rules or is of an earlier version; until both of them know the secret it is to be tried again. A plain name server is not
// greeted: RocketMQ's leaves unanswered what it does not know. A nil Group has nothing to prove. Safe for any goroutine.
func (g *Group) Greet(
	ctx context.Context, address string, state *tls.ConnectionState, ask func(context.Context, *remoting.Command) (*remoting.Command, error),
) (done bool, err error) {
	if g == nil || slices.Contains(g.Plain, address) {
		return true, nil
	}
	secret := g.secret()
	if secret == nil {
		return false, nil
	}
	answer, err := ask(ctx, remoting.NewRequest(remoting.RequestNodeHello, nil))
	if err != nil {
		return false, fmt.Errorf("greet a node: %w", err)
	}
	if answer.Code != remoting.ResponseSuccess {
		return true, nil
	}
	var asked remoting.RelayAnswer
	if err := remoting.FromExt(answer.ExtFields, &asked); err != nil || asked.Nonce == "" {
		return false, err
	}
	channel, err := edge.ChannelOf(state)
	if err != nil {
		return false, err
	}
	claim := vouch.Claim{Cluster: g.Name, Leader: address, Node: g.ID, Self: true, Client: vouch.Nobody, TLS: state != nil, Channel: channel}
	hello, err := prove(secret, claim, asked.Nonce, remoting.RequestNodeHello)
	if err != nil {
		return false, err
	}
	if answer, err = ask(ctx, hello); err == nil && answer.Code != remoting.ResponseSuccess {
		err = fmt.Errorf("%s: %s", remoting.ResponseName(answer.Code), answer.Remark)
	}
	if err != nil {
		return false, fmt.Errorf("prove to a node that this is one of its group: %w", err)
	}
	return true, nil
}

// nodeRequest answers NODE_HELLO: without a body it asks for the proof, if this node can tell a right one, and with one that is right it knows from
// now on which node asks by this connection. Where it is wrong the connection ends, as with RELAY_HELLO.
func (n *Node) nodeRequest(r *edge.Request) {
	if n.access == nil {
		r.Fail(remoting.ResponseRequestCodeNotSupported, "this node has no rules: it needs to know of nobody who asks")
		return
	}
	own := n.broker.Address
	if r.Conn.Port() == namesrvPort {
		own = n.cfg.Group.NameServer
	}
	wanted := own != "" && !r.Conn.Relayed()
	if len(r.Body) == 0 {
		if !wanted || n.cfg.Group.secret() == nil {
			r.OK(nil)
			return
		}
		nonce := r.Conn.Challenge()
		r.OK(&remoting.RelayAnswer{Nonce: hex.EncodeToString(nonce[:])})
		return
	}
	h, err := n.proved(r, vouch.Claim{Leader: own, Self: true}, wanted)
	if err != nil {
		n.disbelieve(r, err, "whoever says that it is a node of this group does not prove it: its connection is closed")
		return
	}
	r.Conn.SetNode(h.Node)
	n.broker.Logger.Debug().Str("connection", r.Conn.ID()).Str("node", h.Node).Msg("a node of the group asks for itself")
	r.OK(nil)
}
