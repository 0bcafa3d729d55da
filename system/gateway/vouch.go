package gateway

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"

	edge "github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway/broker"
	"github.com/actormq/actormq/system/gateway/vouch"
)

// vouch makes RELAY_HELLO for a leader that has asked for it; nil: it has not, as it is of an earlier version or does not know the secret.
func (g *Group) vouch(v edge.Vouching) (*remoting.Command, error) {
	var asked remoting.RelayAnswer
	if err := remoting.FromExt(v.Answer.ExtFields, &asked); err != nil {
		return nil, err
	}
	secret, client := g.secret(), v.Client.Remote()
	if asked.Nonce == "" || secret == nil {
		return nil, nil
	}
	client = netip.AddrPortFrom(client.Addr().WithZone(""), client.Port()) // a zone is this machine's
	claim := vouch.Claim{Cluster: g.Name, Epoch: asked.Epoch, Leader: v.Leader, Node: g.ID, Client: client, TLS: v.Client.Encrypted(), Channel: v.Channel}
	return prove(secret, claim, asked.Nonce, remoting.RequestRelayHello)
}

// prove makes the request that proves a claim, once it has the nonce that was asked.
func prove(secret *vouch.Secret, claim vouch.Claim, nonce string, code int) (*remoting.Command, error) {
	if hex.DecodedLen(len(nonce)) != len(claim.Nonce) {
		return nil, fmt.Errorf("%w: it is asked with %d digits", vouch.ErrHello, len(nonce))
	}
	if _, err := hex.Decode(claim.Nonce[:], []byte(nonce)); err != nil {
		return nil, fmt.Errorf("%w: it is asked with no number: %w", vouch.ErrHello, err)
	}
	hello := vouch.Hello{Node: claim.Node, Client: claim.Client, TLS: claim.TLS, Proof: secret.Prove(claim)}
	if err := hello.Valid(); err != nil {
		return nil, err
	}
	request := remoting.NewRequest(code, nil)
	request.Body = hello.Append(nil)
	return request, nil
}

// relayRequest answers RELAY_BROKER: what comes on the connection is for the leader, and is not relayed again. Who can prove for which client it
// relays is asked to, once.
func (n *Node) relayRequest(r *edge.Request) {
	if n.broker.BrokerID != 0 {
		r.Fail(remoting.ResponseServiceNotAvailable, "this node does not lead its group")
		return
	}
	var h remoting.RelayHeader
	if !broker.Header(r, &h) {
		return
	}
	r.Conn.SetRelayed()
	if !h.Vouch || n.cfg.Group.secret() == nil || r.Conn.Remote() != r.Conn.Sock() {
		r.OK(nil)
		return
	}
	nonce := r.Conn.Challenge()
	r.OK(&remoting.RelayAnswer{Nonce: hex.EncodeToString(nonce[:]), Epoch: n.cfg.Group.Epoch})
}

// helloRequest answers RELAY_HELLO: from now on the client's address counts for what comes on the connection. Where that is not proved the
// connection ends, and nothing that comes behind is handled.
func (n *Node) helloRequest(r *edge.Request) {
	r.Conn.SetRelayed()
	h, err := n.proved(r, vouch.Claim{Epoch: n.cfg.Group.Epoch, Leader: n.broker.Address}, n.broker.BrokerID == 0)
	if err != nil {
		n.disbelieve(r, err, "whoever says for whom it relays does not prove it: its connection is closed")
		return
	}
	r.Conn.SetClient(vouch.Seen(h.Client, r.Conn.Sock()))
	n.broker.Relayed.Proved.Add(1)
	n.broker.Logger.Debug().Str("connection", r.Conn.ID()).Str("node", h.Node).Str("client", r.Conn.RemoteAddr()).Bool("tls", h.TLS).
		Msg("a node relays for a client")
	r.OK(nil)
}

// disbelieve ends the connection of whoever does not prove what it says.
func (n *Node) disbelieve(r *edge.Request, err error, what string) {
	n.broker.Relayed.Refused.Add(1)
	n.broker.Doubts.Warn().Err(err).Stringer("peer", r.Conn.Sock()).Msg(what)
	r.Conn.SetRelayed() // of such a connection what has been read behind is not handled once it is closed
	r.Conn.Close(err)
	r.Fail(remoting.ResponseNoPermission, err.Error()) // nothing is sent
}

// proved reads a hello, and what it claims is so: c is what this node knows of that itself. Wanted tells whether there is to be one.
func (n *Node) proved(r *edge.Request, c vouch.Claim, wanted bool) (vouch.Hello, error) {
	nonce, asked := r.Conn.Challenged()
	h, err := vouch.Parse(r.Body)
	if err != nil {
		return h, err
	}
	group := n.cfg.Group
	secret := group.secret()
	channel, err := r.Conn.Channel()
	switch {
	case err != nil:
		return h, err
	case !asked || secret == nil || !wanted:
		return h, fmt.Errorf("%w: it was not asked for", vouch.ErrHello)
	case h.Node == group.ID || !slices.Contains(group.Nodes, h.Node):
		return h, fmt.Errorf("%w: %q is none of the other nodes", vouch.ErrHello, h.Node)
	case h.TLS && channel == nil:
		return h, fmt.Errorf("%w: what its client has encrypted comes in the clear", vouch.ErrHello)
	}
	c.Cluster, c.Node, c.Client, c.TLS, c.Channel, c.Nonce = group.Name, h.Node, h.Client, h.TLS, channel, nonce
	if !secret.Proves(c, h.Proof) {
		return h, fmt.Errorf("%w: the proof is wrong: of another secret, or made for another address than %s", vouch.ErrHello, c.Leader)
	}
	return h, nil
}
