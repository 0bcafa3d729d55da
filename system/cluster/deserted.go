package cluster

import (
	"slices"
	"time"

	"github.com/actormq/actormq/messages"
)

// company is what a node that is not to lead any more knows of the others. The elector's, but for deserted.
type company struct {
	met      time.Time     // when another node last lived, or this one could not know
	heard    time.Time     // when this node's own lease last did
	deserted chan struct{} // closed once nobody is there to hand over or relay to
	over     time.Time     // when it was closed, zero: it is not
	handed   chan struct{} // closed once this node has led and does not any more, after Yield
	gave     bool          // it is closed

	seenAt  int64                    // revision of etcd from which on the others see that this node yields; 0: none yet
	waiting []*messages.Answer[bool] // who wants to know whether it hands over
	yielded map[string]bool          // by node: whether it yielded when it was last seen
}

// know notes who yields, for when they have gone.
func (c *company) know(nodes map[string]NodeState) {
	if c.yielded == nil {
		c.yielded = map[string]bool{}
	}
	for id, n := range nodes {
		c.yielded[id] = n.Yields
	}
}

// yield begins to look for another node that can lead.
func (e *elector) yield(answer *messages.Answer[bool]) {
	e.calm.Store(true)
	if !e.yields {
		e.yields, e.company.met, e.company.heard = true, time.Now(), time.Now()
	}
	e.company.waiting = append(e.company.waiting, answer)
}

// seen tells whether this node knows of all who yielded before it did. A node first says that it yields, and then looks for a successor: of two that
// are stopped at the same moment one at least knows of the other.
func (e *elector) seen() bool { return e.company.seenAt > 0 && e.view.at >= e.company.seenAt }

// passesOver tells whether this node, if it leads, hands over.
func (e *elector) passesOver() bool { return e.yields && e.seen() && e.successor() }

// conclude answers who wants to know whether this node hands over, once it does: at the latest when its lead has ended otherwise.
func (e *elector) conclude() {
	leads := e.term != nil && e.term.leads && !e.term.fenced()
	if len(e.company.waiting) == 0 || leads && !e.seen() {
		return
	}
	hands := leads && e.passesOver()
	switch {
	case hands:
	case leads:
		e.cfg.Logger.Info().Msg("no other node can take over the lead: none in sync lives that is not being stopped too")
	case e.term != nil && e.term.leads:
		e.cfg.Logger.Info().Msg("no other node can take over the lead: etcd does not answer, and this node's lease is over")
	}
	for _, answer := range e.company.waiting {
		answer.Complete(hands, nil)
	}
	e.company.waiting = nil
}

// HandedOver is closed when, after Yield, this node has ended its lead: another one may lead from now on, and is relayed to.
func (m *Member) HandedOver() <-chan struct{} { return m.elector.company.handed }

// gaveUp tells that this node, which led, leads no more.
func (e *elector) gaveUp() {
	if e.yields && !e.company.gave {
		e.company.gave = true
		close(e.company.handed)
	}
}

// Deserted is closed when, after Yield, there is nobody to hand over or to relay to, and nobody is waited for: no other node has lived for a lease,
// or nobody leads and all that could yield too, or nobody has led for 10 s. So it is when etcd does not answer this node for 10 s, or for a lease
// behind its own one where it knows of nobody who leads: without etcd nobody is elected. A node that leads again itself, as only it can, is not deserted.
func (m *Member) Deserted() <-chan struct{} { return m.elector.company.deserted }

// seek looks for the other nodes.
func (e *elector) seek() {
	c := &e.company
	if !e.yields || !c.over.IsZero() {
		return
	}
	now, lives := time.Now(), e.holder.alive(e.lease)
	if lives {
		c.heard = now
	}
	if !lives || e.others() { // leases that pass while etcd stalls come back one after the other
		c.met = now
	}
	patience := leaderlessAfter
	if address, _ := e.leading(); address == "" {
		patience = min(patience, e.cfg.Lease)
	}
	why := ""
	switch {
	case now.Sub(c.heard) >= patience:
		why = "etcd does not answer: nobody can be elected"
	case now.Sub(c.met) >= e.cfg.Lease:
		why = "no other node lives"
	case e.forsaken():
		why = "nobody leads: the nodes that could are being stopped too"
	default:
		return
	}
	e.cfg.Logger.Info().Str("why", why).Msg("no other node takes over, and none is waited for")
	c.over = now
	close(c.deserted)
}

// forsaken tells that nobody has led for long, and that this node is not the only one that can. Another one that could and did not is being
// stopped too.
func (e *elector) forsaken() bool {
	leads := e.asking || e.won > 0 || e.term != nil && e.term.leads // or is about to
	return !leads && (e.forlorn() || e.leaderless() && (e.view.elected(e.cfg.ID) == nil || e.able(func(NodeState) bool { return true })))
}

// forlorn tells that nobody leads, and that the others that could yield too, or did before they went.
func (e *elector) forlorn() bool {
	return e.seen() && e.view.record != nil && e.view.leader() == "" && !e.successor() &&
		slices.ContainsFunc(e.view.record.others(e.cfg.ID), func(id string) bool { return e.company.yielded[id] })
}

// stays tells whether a node that yields may lead again. Just after it was deserted it may not, for it is about to end: a record that names it
// alone would leave the others without a leader. One that is drained is still there a lease later.
func (e *elector) stays() bool {
	over := e.company.over
	return (e.leaderless() || !over.IsZero() && e.forlorn()) && (over.IsZero() || time.Since(over) >= e.cfg.Lease)
}

// others tells whether another node lives.
func (e *elector) others() bool {
	_, here := e.view.nodes[e.cfg.ID]
	return len(e.view.nodes) > 1 || len(e.view.nodes) == 1 && !here
}
