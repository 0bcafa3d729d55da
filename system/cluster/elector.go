package cluster

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system/gateway/vouch"
)

// elector is the actor. It waits for nothing: what takes time runs on goroutines that report.
type elector struct {
	cfg    Config
	ctl    *control
	self   actors.Peer
	holder *holder

	view  view
	lease clientv3.LeaseID // 0: none yet
	won   int64            // the epoch that this process has won and not lost yet, 0 none

	term      *term                   // nil: none is open
	cutAt     messages.PhysicalOffset // where the log is cut when it is opened next: see term.open
	changing  bool                    // the term is being opened or closed
	preparing bool                    // of an open term: what serves clients is being started
	asking    bool                    // a change of the record is under way
	beaten    bool                    // the last one came to nothing: first there has to be something new, or a tick

	joining string                  // of a leader: the node that is about to be in sync
	caught  map[string]time.Time    // of a leader: when each node last had everything
	end     messages.PhysicalOffset // of a leader's log, at the last look; above everything before the first one
	short   bool                    // of a leader: puts are refused, too few nodes are in sync

	carrying  bool // what is carried with the log is being looked at
	carriedAt time.Time

	passing  bool // etcd's lead is being passed on
	passedAt time.Time

	said    NodeState
	saidAt  time.Time
	saying  bool
	ticker  *time.Timer
	leaving *leave
	yields  bool // another node is to lead
	company company
	named   map[string]string // by node: how it names itself, where this node names it otherwise; the log was told

	mint mint

	calm  atomic.Bool                  // the node is being stopped, or drained: that the others go too is no surprise
	known atomic.Pointer[vouch.Secret] // for other goroutines
	shown atomic.Pointer[term]         // the same
	lead  atomic.Pointer[lead]         // the same
}

// What the elector is told.
type (
	tick   struct{}
	opened struct {
		term *term
		err  error
	}
	// prepared: clients are served, by a leader once everything that it had is confirmed.
	prepared struct {
		term *term
		err  error
	}
	ended struct {
		term *term
		err  error
	}
	diverged struct {
		term *term
		at   messages.PhysicalOffset
	}
	// asked is the result of a change of the record.
	asked struct {
		record *Record // nil: nothing was changed
		rev    int64
		err    error
		won    bool // it is an election
		joins  bool // the joining node is decided on
	}
	// told: the others can see what this node says of itself, from a revision of etcd on.
	told struct {
		rev    int64
		yields bool
		err    error
	}
	// carriedOn: what was due is in the log.
	carriedOn struct{ err error }
	// passedOn: another node leads etcd, or does not.
	passedOn struct{ err error }
	leave    struct{ answer *messages.Answer[struct{}] }
	// yield: another node is to lead from now on, if one can. The answer is whether this one leads and will hand over.
	yield struct{ answer *messages.Answer[bool] }
)

// Refuse answers with an error.
func (m leave) Refuse(cause error) { m.answer.Refuse(cause) }

// Refuse answers with an error.
func (m yield) Refuse(cause error) { m.answer.Refuse(cause) }

// Receive implements actor.Actor.
func (e *elector) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case tick:
		e.tick()
	case observed:
		if m.view.at >= e.view.at {
			e.view, e.beaten = m.view, false
			e.company.know(m.view.nodes)
			e.compare()
		}
	case leased:
		e.lease, e.won, e.said, e.company.seenAt = m.id, 0, NodeState{}, 0
	case opened:
		e.opened(m)
	case prepared:
		e.prepared(m)
	case ended:
		e.ended(m)
	case diverged:
		e.diverged(m)
	case asked:
		e.answered(m)
	case told:
		e.told(m)
	case carriedOn:
		e.carrying = false
		if m.err != nil {
			e.cfg.Logger.Warn().Err(m.err).Msg("not all of the configuration is in the log; it is tried again")
		}
	case minted:
		e.minted(m)
	case passedOn:
		if e.passing = false; m.err != nil {
			e.cfg.Logger.Debug().Err(m.err).Msg("this node leads etcd too; another attempt follows")
		}
	case leave:
		e.leaving = &m
		e.calm.Store(true)
	case yield:
		e.yield(m.answer)
	case *actor.Stopping:
		if e.ticker != nil {
			e.ticker.Stop()
		}
		return
	default:
		return
	}
	e.decide()
}

// odd begins a line about what is to be expected of a group that is being stopped, and of no other.
func (e *elector) odd() *zerolog.Event {
	if e.calm.Load() {
		return e.cfg.Logger.Info()
	}
	return e.cfg.Logger.Warn()
}

// tick looks at what no message tells: how far replicas are, and whether the lease may have passed on.
func (e *elector) tick() {
	e.ticker = e.self.After(e.cfg.Lease/10, tick{})
	e.beaten, e.mint.tried = false, false
	e.seek()
	if t := e.term; t != nil && t.leads && !e.changing && !t.fenced() {
		e.measure(t.begun.Load().store)
		e.carry(t.carrier.Load())
		e.passOn()
	}
	if t := e.term; t != nil && !e.changing && errors.Is(t.begun.Load().store.Writable(), messages.ErrFailed) {
		e.close() // another node is to lead; this one recovers
	}
}

// decide brings the node into the role that the keys give it.
func (e *elector) decide() {
	e.tellLead()
	e.see()
	e.conclude()
	switch t := e.term; {
	case e.changing: // the others are told all the same that this node yields
	case e.leaving != nil && t == nil:
		if !e.asking && !e.saying && !e.carrying && !e.passing && !e.mint.running { // what is under way reports before the actor ends
			e.leaving.answer.Complete(struct{}{}, nil)
		}
		return
	case t == nil:
		e.open()
	case t.leads && !e.preparing && !t.fenced() && (e.leaving != nil || e.passesOver()):
		e.handOver()
	case e.leaving != nil, e.cutAt >= 0, t.leads && (t.fenced() || !e.view.of(&t.record)), !t.leads && e.won > 0:
		e.close()
	case !t.leads:
		e.follow(t)
		e.campaign()
	}
	e.say()
}

// open opens the store, as leader when an epoch was won.
func (e *elector) open() {
	t := &term{cfg: &e.cfg}
	t.ctx, t.stop = context.WithCancel(context.Background())
	t.fenced = func() bool { return true }
	if r := e.view.record; e.won > 0 && r != nil && e.won == r.Epoch && e.holder.alive(e.lease) {
		lease, holder := e.lease, e.holder
		t.leads, t.epoch, t.record = true, e.won, *r
		t.fenced = func() bool { return t.over.Load() || !holder.alive(lease) }
	}
	if !t.leads {
		e.won = 0 // its lease has passed meanwhile, or the epoch
	}
	self, cutAt := e.self, e.cutAt
	t.diverged = func(at messages.PhysicalOffset) { self.Send(diverged{term: t, at: at}) }
	e.term, e.changing, e.cutAt, e.joining, e.short, e.end = t, true, -1, "", false, math.MaxInt64
	clear(e.caught)
	go func() {
		self.Send(opened{term: t, err: actors.Protect("open the store", func() error { return t.open(cutAt) })})
	}()
}

func (e *elector) opened(m opened) {
	e.changing = false
	if m.err != nil {
		e.cfg.Logger.Error().Err(m.err).Bool("leads", m.term.leads).Msg("the store can't be opened; it is tried again")
		m.term.stop()
		e.term, e.won, e.changing = nil, 0, true
		e.self.After(e.cfg.Lease, ended{term: m.term})
		return
	}
	e.shown.Store(m.term)
	role := Role{Leads: m.term.leads, Epoch: m.term.epoch, Leader: e.view.leader(), Alone: e.holder.alone, Leading: e.leading, Leaderless: e.leaderless, Secret: e.secret}
	e.cfg.Logger.Info().Bool("leads", role.Leads).Int64("epoch", role.Epoch).Int64("log_end", int64(m.term.begun.Load().from)).
		Msg("the store is open in the cluster")
	e.preparing = true
	self := e.self
	go func() {
		self.Send(prepared{term: m.term, err: actors.Protect("serve clients", func() error { return m.term.prepare(role) })})
	}()
}

func (e *elector) prepared(m prepared) {
	e.preparing = false
	if m.err != nil && m.term.ctx.Err() == nil {
		e.cfg.Logger.Error().Err(m.err).Bool("leads", m.term.leads).Msg("clients can't be served; it is tried again")
		m.term.unserved = true
		e.close()
	}
}

// close ends the term.
func (e *elector) close() {
	t := e.term
	t.over.Store(true)
	t.stop()
	if b := t.begun.Load(); b != nil && t.leads {
		refuse := func(cause error) { b.store.SetFlag(messages.FlagNotWriteable, cause) }
		if e.calm.Load() {
			refuse = b.store.EndPuts
		}
		refuse(ErrDeposed) // what is put from now on would be cut off
	}
	if e.preparing {
		return // its end comes at once, and brings this up again
	}
	if t.leads {
		e.odd().Int64("epoch", t.epoch).Msg("this node leads no more")
		e.won = 0
	}
	e.changing = true
	e.shown.Store(nil)
	self, grace := e.self, changeGrace
	if e.leaving != nil {
		grace = stopTimeout / 2
	}
	go func() {
		self.Send(ended{term: t, err: actors.Protect("close the store", func() error { return t.end(grace) })})
	}()
}

func (e *elector) ended(m ended) {
	if m.term.leads {
		e.led()
		e.gaveUp()
	}
	if m.err != nil {
		e.cfg.Logger.Warn().Err(m.err).Msg("the store was not closed in order: it recovers")
	}
	if t := m.term; t.unserved && !t.leads { // a leader makes way at once
		t.unserved = false
		e.self.After(e.cfg.Lease, ended{term: t})
		return
	}
	e.term, e.changing = nil, false
}

func (e *elector) diverged(m diverged) {
	if m.term == e.term && !e.changing {
		e.cfg.Logger.Warn().Int64("at", int64(m.at)).Msg("the log goes on otherwise than the leader's: it is cut")
		e.cutAt = m.at
		e.close()
	}
}

// follow has the store follow whoever leads.
func (e *elector) follow(t *term) {
	if e.view.record == nil {
		return
	}
	next := &seat{group: e.view.record.Group, epoch: e.view.record.Epoch, leader: e.view.leader()}
	if next.leader == e.cfg.ID {
		next.leader = "" // of an epoch that this process does not have
	}
	if before := t.seat.Load(); before != nil && *before == *next {
		return
	}
	t.seat.Store(next)
	address := ""
	if next.leader != "" {
		address = e.cfg.node(next.leader).Port(PortReplication)
	}
	t.begun.Load().store.FollowLeader(address)
}

// campaign tries to take over where nobody leads.
func (e *elector) campaign() {
	if e.asking || e.beaten || e.cutAt >= 0 || !e.view.known || !e.holder.alive(e.lease) {
		return
	}
	v, lease, id := e.view, e.lease, e.cfg.ID
	switch next := v.elected(id); {
	case next != nil && e.yields && !e.stays(): // another one is to
	case next != nil:
		e.ask(true, func(ctx context.Context) (*Record, int64, error) {
			rev, err := e.ctl.change(ctx, v.rev, next, lease)
			return next, rev, err
		})
	case v.founder(e.cfg.Nodes) == id:
		e.ask(true, func(ctx context.Context) (*Record, int64, error) { return e.ctl.found(ctx, id, lease) })
	case v.record != nil && v.record.Leader == id && v.leading == v.record.Epoch && e.won == 0:
		// The key of an epoch that is over for this process: with it gone somebody can be elected.
		e.ask(false, func(ctx context.Context) (*Record, int64, error) { return nil, 0, e.ctl.resign(ctx, v.leading) })
	}
}

// ask changes the record on a goroutine.
func (e *elector) ask(election bool, change func(context.Context) (*Record, int64, error)) {
	e.asking = true
	self, joins := e.self, e.joining != ""
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
		defer cancel()
		m := asked{won: election, joins: joins}
		m.err = actors.Protect("change the group's record", func() (err error) {
			m.record, m.rev, err = change(ctx)
			return err
		})
		self.Send(m)
	}()
}

func (e *elector) answered(m asked) {
	e.asking, e.beaten = false, m.err != nil
	if m.joins && (m.err == nil || errors.Is(m.err, ErrChanged)) {
		e.joining = ""
	}
	switch {
	case errors.Is(m.err, ErrChanged):
		e.cfg.Logger.Debug().Err(m.err).Msg("somebody else was faster")
	case m.err != nil:
		e.odd().Err(m.err).Msg("the group's record was not changed; it is tried again")
	case m.record != nil && m.rev > e.view.rev:
		e.view.record, e.view.rev, e.view.at = m.record, m.rev, max(e.view.at, m.rev)
		e.cfg.Logger.Info().Int64("epoch", m.record.Epoch).Str("leader", m.record.Leader).Strs("in_sync", m.record.InSync).
			Msg("the group has changed")
	}
	if m.won && m.err == nil {
		e.won, e.view.leading = m.record.Epoch, m.record.Epoch
	}
}

// say writes what there is to say of the node, when something has changed.
func (e *elector) say() {
	if e.saying || !e.holder.alive(e.lease) {
		return
	}
	n := e.state()
	progress := e.said
	progress.End, progress.Confirmed = n.End, n.Confirmed
	if n == e.said || n == progress && time.Since(e.saidAt) < sayInterval {
		return
	}
	e.said, e.saidAt, e.saying = n, time.Now(), true
	self, ctl, lease := e.self, e.ctl, e.lease
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
		defer cancel()
		rev, err := ctl.say(ctx, n, lease)
		self.Send(told{rev: rev, yields: n.Yields, err: err})
	}()
}

// state is what this node has to say of itself; while it changes its role nothing else than before, but that it yields.
func (e *elector) state() NodeState {
	yields := e.yields || e.leaving != nil
	if e.term == nil || e.changing {
		n := e.said
		n.Yields = n.ID != "" && yields
		return n
	}
	b := e.term.begun.Load()
	n := NodeState{
		ID: e.cfg.ID, Broker: e.cfg.Broker, Remote: e.cfg.Remote, Base: e.cfg.node(e.cfg.ID).Base,
		Role: "follower", Epoch: e.term.history().CutTo(b.from).Last(), Yields: yields,
	}
	if e.term.leads {
		n.Role, n.Epoch = "leader", e.term.epoch
	}
	_, n.End = b.store.LogRange()
	n.Confirmed = b.store.Confirmed()
	return n
}

func (e *elector) told(m told) {
	e.saying = false
	if m.yields && m.err == nil && e.company.seenAt == 0 {
		e.company.seenAt = m.rev
	}
	if m.err != nil {
		e.said = NodeState{}
		e.saidAt = time.Time{}
		e.cfg.Logger.Debug().Err(m.err).Msg("the node's state was not written")
	}
}

// carry has what is due put into the log.
func (e *elector) carry(c *carrier) {
	if c == nil || e.carrying || time.Since(e.carriedAt) < sayInterval {
		return
	}
	e.carrying, e.carriedAt = true, time.Now()
	self := e.self
	go func() {
		self.Send(carriedOn{err: actors.Protect("carry the configuration", c.round)})
	}()
}
