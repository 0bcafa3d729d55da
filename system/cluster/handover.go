package cluster

import (
	"context"
	"time"

	"github.com/actormq/actormq/actors"
)

// leaderlessAfter is how long readers are told to wait for the next leader.
const leaderlessAfter = 10 * time.Second

// lead is who leads, as this node knows it.
type lead struct {
	address string // of the leader's broker; empty: nobody, or this node
	since   time.Time
	changed chan struct{} // closed when there is a newer one
}

// tellLead publishes who leads, when that has changed.
func (e *elector) tellLead() {
	address := ""
	if id := e.view.leader(); id != e.cfg.ID {
		address = e.view.nodes[id].Broker
	}
	if before := e.lead.Load(); before.address != address {
		e.lead.Store(&lead{address: address, since: time.Now(), changed: make(chan struct{})})
		close(before.changed)
	}
}

func (e *elector) leading() (string, <-chan struct{}) {
	l := e.lead.Load()
	return l.address, l.changed
}

func (e *elector) leaderless() bool {
	l := e.lead.Load()
	return l.address == "" && time.Since(l.since) >= leaderlessAfter
}

// led begins anew to count for how long nobody has led: until now this node has.
func (e *elector) led() {
	now := *e.lead.Load()
	now.since = time.Now()
	e.lead.Store(&now)
}

// successor tells whether another node can take over, and is to: one that yields too would wait for this one.
func (e *elector) successor() bool {
	return e.able(func(n NodeState) bool { return !n.Yields })
}

// able tells whether another node is in sync and alive, and of a kind.
func (e *elector) able(is func(NodeState) bool) bool {
	if e.view.record == nil {
		return false
	}
	for _, id := range e.view.record.others(e.cfg.ID) {
		if n, lives := e.view.nodes[id]; lives && is(n) {
			return true
		}
	}
	return false
}

// handOver ends a leader's term in peace: clients' requests are answered while this node leads, then the lead is given up, and then the store
// is closed, while the next leader opens its own.
func (e *elector) handOver() {
	t := e.term
	e.cfg.Logger.Info().Int64("epoch", t.epoch).Msg("this node gives up the lead")
	e.won, e.changing = 0, true
	e.shown.Store(nil)
	self, ctl := e.self, e.ctl
	if !e.successor() {
		ctl = nil // nobody waits for it, and etcd may be gone: it ends with this node's lease
	}
	go func() {
		self.Send(ended{term: t, err: actors.Protect("hand over", func() error { return t.handOver(ctl) })})
	}()
}

// resign has the others elect the next leader, however long the clients took; a nil control is not asked.
func (t *term) resign(ctl *control) {
	if ctl == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	if err := ctl.resign(ctx, t.epoch); err != nil {
		t.cfg.Logger.Warn().Err(err).Msg("the lead is not given up: its lease passes")
	}
}

func (t *term) handOver(ctl *control) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout/2)
	defer cancel()
	var err error
	if t.serving != nil {
		err = t.serving(ctx)
		t.serving = nil
	}
	t.over.Store(true)
	t.stop()
	if b := t.begun.Load(); b != nil {
		b.store.EndPuts(ErrDeposed) // what is put from now on would be cut off
	}
	t.resign(ctl)
	if ended := t.end(changeGrace); err == nil {
		err = ended
	}
	return err
}
