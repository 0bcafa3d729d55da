package cluster

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
)

// ErrNotEnoughInSync: fewer nodes are in sync than a message has to be on.
var ErrNotEnoughInSync = errors.New("too few nodes are in sync")

// measure looks how far the nodes are, takes those that lag out of the record, and one that has everything into it.
func (e *elector) measure(store *system.Store) {
	record, has := e.view.record, map[string]messages.PhysicalOffset{}
	for _, r := range store.Replicas() {
		has[r.Node] = r.Acked
	}
	before := e.end
	lags := e.lagging(store, record, has)
	e.writable(store, len(record.InSync) >= e.cfg.MinInSync)
	switch {
	case e.asking:
	case e.joining != "":
		// Nothing was heard of a change; the node that was to join counts until it is known what has become of it. Writing the record as
		// it is makes sure that a change that is still on its way comes to nothing.
		e.write(store, record, nil)
	case len(lags) > 0:
		e.odd().Strs("nodes", lags).Msg("these nodes are not in sync any more")
		e.write(store, record.without(lags), nil)
	default:
		for n, at := range has { // under load a node never has everything at once, but it has what was there at the last look
			if at >= before && !slices.Contains(record.InSync, n) {
				e.join(store, record, n)
				return
			}
		}
	}
}

// lagging are the nodes in sync that have lacked something for too long: what the log had at the last look. One that has left in order,
// which has no lease any more, is not waited for where the others are enough.
func (e *elector) lagging(store *system.Store, record *Record, has map[string]messages.PhysicalOffset) (lags []string) {
	now, before := time.Now(), e.end
	_, e.end = store.LogRange()
	for _, n := range record.others(e.cfg.ID) {
		at, connected := has[n]
		if since, known := e.caught[n]; connected && at >= before || !known {
			e.caught[n] = now
		} else if _, lives := e.view.nodes[n]; now.Sub(since) > e.cfg.Lag || !connected && !lives && len(record.InSync)-len(lags) > e.cfg.MinInSync {
			lags = append(lags, n)
		}
	}
	return lags
}

// writable refuses puts while a message can't be on as many nodes as it has to.
func (e *elector) writable(store *system.Store, enough bool) {
	switch {
	case !enough && !e.short:
		store.SetFlag(messages.FlagNotWriteable, ErrNotEnoughInSync)
	case enough && e.short:
		store.ClearFlag(messages.FlagNotWriteable)
	}
	e.short = !enough
}

// tell tells the store who is in sync, and waits until those that join have what was acknowledged before. Else it fails only when the store
// is being closed.
func (e *elector) tell(ctx context.Context, store *system.Store, r *Record, joining ...string) error {
	_, err := store.SetInSync(ctx, messages.InSync{Nodes: r.others(e.cfg.ID), Joining: joining, Min: e.cfg.MinInSync})
	return err
}

// write changes the record, if it may, and then tells the store: nodes that are taken out count for acknowledgements until then.
func (e *elector) write(store *system.Store, next *Record, may func(context.Context) (bool, error)) {
	rev := e.view.rev
	e.ask(false, func(ctx context.Context) (*Record, int64, error) {
		if may != nil {
			if ok, err := may(ctx); !ok {
				return nil, 0, err
			}
		}
		rev, err := e.ctl.change(ctx, rev, next, 0)
		if err == nil {
			_ = e.tell(ctx, store, next)
		}
		return next, rev, err
	})
}

// join takes a node in: first for acknowledgements, and then, when it has all that was acknowledged before, in the record.
func (e *elector) join(store *system.Store, record *Record, node string) {
	e.joining = node
	delete(e.caught, node)
	e.write(store, record.with(node), func(ctx context.Context) (bool, error) {
		soon, cancel := context.WithTimeout(ctx, askTimeout/2)
		defer cancel()
		err := e.tell(soon, store, record, node)
		if soon.Err() != nil {
			return false, e.tell(ctx, store, record)
		}
		return err == nil, err
	})
}

// passOn has etcd led by another node in sync. Were both leaders one node, they would die together: etcd first finds another leader, which
// begins all leases anew, so that the group's would go on for twice as long.
func (e *elector) passOn() {
	others := e.view.record.others(e.cfg.ID)
	if !e.ctl.leads() || e.passing || len(others) == 0 || time.Since(e.passedAt) < passInterval {
		return
	}
	e.passing, e.passedAt = true, time.Now()
	self, to := e.self, others[rand.IntN(len(others))]
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
		defer cancel()
		self.Send(passedOn{err: actors.Protect("pass etcd's lead on", func() error { return e.ctl.passOn(ctx, to) })})
	}()
}
