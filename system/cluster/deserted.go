package cluster

import "time"

// company is what a node that is not to lead any more knows of the others. The elector's, but for deserted.
type company struct {
	met      time.Time     // when another node last lived, or this one could not know
	heard    time.Time     // when this node's own lease last did
	deserted chan struct{} // closed once nobody is there to hand over or relay to
	over     time.Time     // when it was closed, zero: it is not
	handed   chan struct{} // closed once this node has led and does not any more, after Yield
	gave     bool          // it is closed
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

// Deserted is closed when, after Yield, no other node has lived for a lease, or when nobody has led, or etcd has not answered this node, for
// 10 s: there is nobody to hand over or to relay to, and nobody is waited for. A node that leads again itself then, as only it can, is not deserted.
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
	if now.Sub(c.met) >= e.cfg.Lease || now.Sub(c.heard) >= leaderlessAfter || e.forsaken() {
		c.over = now
		close(c.deserted)
	}
}

// forsaken tells that nobody has led for long, and that this node is not the only one that can. Another one that could and did not is being
// stopped too.
func (e *elector) forsaken() bool {
	leads := e.asking || e.won > 0 || e.term != nil && e.term.leads // or is about to
	return !leads && e.leaderless() && (e.view.elected(e.cfg.ID) == nil || e.able(func(NodeState) bool { return true }))
}

// stays tells whether a node that yields may lead again. Just after it was deserted it may not, for it is about to end: a record that names it
// alone would leave the others without a leader. One that is drained is still there a lease later.
func (e *elector) stays() bool {
	over := e.company.over
	return e.leaderless() && (over.IsZero() || time.Since(over) >= e.cfg.Lease)
}

// others tells whether another node lives.
func (e *elector) others() bool {
	_, here := e.view.nodes[e.cfg.ID]
	return len(e.view.nodes) > 1 || len(e.view.nodes) == 1 && !here
}
