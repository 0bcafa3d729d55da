package client

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/system/remote/wire"
)

// node is a node as the client sees it. Requests are sent to one that is up: it has said who it is since it was connected to, or doubted.
type node struct {
	address string
	pid     *actor.PID
	up      bool
	life    uint64    // of its endpoint
	asked   time.Time // when it was asked who it is; zero: it was not
	silent  int       // times in a row that it did not say
	heard   time.Time // when it said something last
}

// nodeOf is the node that leads a topic, nil as long as that is not known or the node is not up.
func (k *core) nodeOf(topic string, now time.Time) *node {
	r := k.routes[topic]
	if r == nil {
		r = &route{}
		k.routes[topic] = r
	}
	if r.address == "" {
		k.ask(topic, r, now)
		return nil
	}
	n := k.nodes[r.address]
	if n == nil {
		n = &node{address: r.address, pid: actor.NewPID(r.address, wire.EndpointName)}
		k.nodes[r.address] = n
	}
	if n.up {
		return n
	}
	k.hello(n, now)
	return nil
}

// ask asks the resolver, on a goroutine of its own.
func (k *core) ask(topic string, r *route, now time.Time) {
	if r.asking {
		return
	}
	if now.Before(r.again) {
		k.arm(r.again)
		return
	}
	r.asking = true
	r.tried++
	r.again = now.Add(grown(firstPause, maxPause, r.tried))
	c, failed := k.c, r.failed
	c.resolving.Go(func() {
		m := resolved{topic: topic}
		m.err = actors.Protect("find a topic", func() (err error) {
			ctx, cancel := context.WithTimeout(c.alive, c.opt.Timeout)
			defer cancel()
			m.address, err = c.opt.Resolver.Leader(ctx, topic, failed)
			return err
		})
		c.root.Send(c.pid, m)
	})
}

func (k *core) resolved(m resolved) {
	r := k.routes[m.topic]
	r.asking = false
	now := time.Now()
	if m.err != nil {
		k.c.opt.Logger.Warn().Err(m.err).Str("topic", m.topic).Msg("where a topic lives is not known")
		for _, p := range k.calls {
			if p.topic == m.topic && p.node == nil {
				p.cause, p.due = m.err, r.again
			}
		}
		k.arm(r.again)
		return
	}
	r.address = m.address
	k.placeWaiting(now)
}

// reroute asks where a topic lives, after a node has said that it does not live there, or that it can't be served there.
func (k *core) reroute(topic, failed, hint string, now time.Time) {
	r := k.routes[topic]
	if r == nil || r.address != failed {
		return // somebody else has noticed
	}
	r.failed = failed
	if r.address = hint; hint == "" || hint == failed {
		r.address = ""
		k.ask(topic, r, now)
	}
}

// hello asks a node who it is.
func (k *core) hello(n *node, now time.Time) {
	if n.asked.IsZero() {
		n.asked = now
		k.send(n, wire.KindHello, 0, &wire.Hello{})
	}
	k.arm(n.asked.Add(helloTimeout))
}

// lookAfter asks a node again that has not said who it is. Meanwhile the topics that were to be there are looked for.
func (k *core) lookAfter(n *node, now time.Time) {
	if n.up || n.asked.IsZero() {
		return
	}
	if now.Before(n.asked.Add(helloTimeout)) {
		k.arm(n.asked.Add(helloTimeout))
		return
	}
	n.asked = time.Time{}
	n.silent++
	wanted := false
	for topic, r := range k.routes {
		if r.address == n.address {
			wanted = true
			k.reroute(topic, n.address, "", now)
		}
	}
	if wanted {
		k.c.opt.Logger.Debug().Str("node", n.address).Int("times", n.silent).Msg("a node does not answer")
		return
	}
	delete(k.nodes, n.address)
	k.c.host.Forget(n.address)
}

// welcome: a node is up. One with another life remembers nothing.
func (k *core) welcome(n *node, e *wire.Envelope, now time.Time) {
	w := &wire.Welcome{}
	if err := wire.Unpack(e, w); err != nil {
		k.c.opt.Logger.Warn().Err(err).Str("node", n.address).Msg("a node's welcome can't be read")
		return
	}
	if n.life != w.GetLife() {
		k.c.opt.Logger.Info().Str("node", n.address).Bool("restarted", n.life != 0).Msg("connected to a node")
		k.homelessOf(n)
	}
	n.life, n.up, n.silent, n.asked = w.GetLife(), true, 0, time.Time{}
	for _, r := range k.routes {
		if r.address == n.address {
			r.tried = 0
		}
	}
	k.placeWaiting(now)
}

// lost: the connection to a node has ended. What was under way there is asked again.
func (k *core) lost(address string) {
	if n := k.nodes[address]; n != nil {
		k.c.opt.Logger.Debug().Str("node", address).Msg("the connection to a node was lost")
		k.doubt(n, time.Now())
	}
}

// doubt asks a node who it is, before anything more is sent there.
func (k *core) doubt(n *node, now time.Time) {
	n.up, n.asked = false, time.Time{}
	for _, p := range k.calls {
		if p.node == n {
			p.node, p.due = nil, p.deadline
		}
	}
	k.homelessOf(n)
	k.placeWaiting(now)
}

// placeWaiting places what waits for a node, the oldest first.
func (k *core) placeWaiting(now time.Time) {
	for id := k.low; id < k.next; id++ {
		if p := k.calls[id]; p != nil && p.node == nil && (p.refusals == 0 || !now.Before(p.due) || p.due.Equal(p.deadline)) {
			k.place(p, now)
		}
	}
	for _, r := range append([]*reader(nil), k.homeless...) {
		k.settle(r)
	}
}
