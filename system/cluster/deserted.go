package cluster

import "time"

// company is what a node that is not to lead any more knows of the others. The elector's, but for deserted.
type company struct {
	met      time.Time     // when another node last lived, for certain
	heard    time.Time     // when this node's own lease last did
	deserted chan struct{} // closed once nobody is there to hand over or relay to
	over     bool          // it is closed
}

// Deserted is closed when, after Yield, no other node has lived for a lease, or when nobody has led, or etcd has not answered this node, for
// 10 s: there is nobody to hand over or to relay to, and nobody is waited for.
func (m *Member) Deserted() <-chan struct{} { return m.elector.company.deserted }

// seek looks for the other nodes.
func (e *elector) seek() {
	c := &e.company
	if !e.yields || c.over {
		return
	}
	now, lives := time.Now(), e.holder.alive(e.lease)
	if lives {
		c.heard = now
	}
	if lives && e.others() {
		c.met = now
	}
	leads := e.term != nil && e.term.leads
	if lives && now.Sub(c.met) >= e.cfg.Lease || now.Sub(c.heard) >= leaderlessAfter || !leads && e.leaderless() {
		c.over = true
		close(c.deserted)
	}
}

// others tells whether another node lives.
func (e *elector) others() bool {
	_, here := e.view.nodes[e.cfg.ID]
	return len(e.view.nodes) > 1 || len(e.view.nodes) == 1 && !here
}
