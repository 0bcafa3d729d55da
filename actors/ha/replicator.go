package ha

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/commitlog"
)

// ReplicatorConfig is what a master's side is made of.
type ReplicatorConfig struct {
	Log    *commitlog.Log
	Listen string         // host:port of haListenPort; empty: nobody can connect
	Allow  []netip.Prefix // who may connect; empty: everybody. Others are closed before anything is read
	// Grown is rung by the writer when the log has grown; its message is LogGrown, to this actor.
	Grown *actors.Bell

	Heartbeat     time.Duration // haSendHeartbeatInterval: to a replica that nothing has been sent to
	Housekeeping  time.Duration // haHousekeepingInterval: a replica that is silent for so long is dropped
	BatchBytes    int           // haTransferBatchSize: of a frame
	FallbehindMax int64         // haSlaveFallbehindMax: a replica that lacks more does not count for puts that wait
	Timeout       time.Duration // slaveTimeout: the longest that a put waits for a replica

	Group     *Group                        // nil: the protocol is RocketMQ's
	Confirmed func(messages.PhysicalOffset) // of a group: is told what is confirmed whenever it has grown; must not block

	Logger zerolog.Logger
}

const (
	maxReplicas = 64
	// expiryStep is how exactly deadlines are kept: so many puts that expire one after the other cost one look.
	expiryStep = 5 * time.Millisecond
	// acceptPause is how long nobody is accepted after an error (no more descriptors, say).
	acceptPause = 100 * time.Millisecond
)

// Replicator is the actor of a master.
type Replicator struct {
	cfg  ReplicatorConfig
	self actors.Peer
	port *mailbox.Combining

	listener net.Listener  // nil: nobody can connect
	closing  chan struct{} // closed before the listener
	replicas map[int]*replica
	lastID   int
	acked    *actors.Bell // rung by the readers
	answers  func()       // rings it on the caller's goroutine
	waiting  []*messages.ReplicaWait
	deadline *time.Timer
	expires  time.Time
	refused  *refusals // for what they have reported
	stopped  bool
	sync     inSync // of a group

	strange   *refusals    // hosts that are not allowed; of the goroutine that accepts
	strangers atomic.Int64 // their connections

	// best is the highest offset that a replica has acknowledged, -1 without a replica that has reported.
	best atomic.Int64
	// alone counts puts that one after the other found nothing waiting; the writer's.
	alone int
	// here tells that the last one went to the replicas on its sender's goroutine: its answer goes out on the acknowledgement's.
	here atomic.Bool
	// held is such a put on its way.
	held atomic.Pointer[messages.ReplicaWait]
	// list is what Replicas returns.
	list atomic.Pointer[[]*replica]
}

// replica is a connection to a slave.
type replica struct {
	id      int
	node    string // in a group: who it is, before its first report
	conn    net.Conn
	sender  actors.Peer
	pid     *actor.PID
	grown   *actors.Bell
	sends   func()       // rings it on the caller's goroutine
	reports bool         // its first report was accepted
	acked   atomic.Int64 // stored by its reader
	sent    atomic.Int64 // everything below was given to the socket; stored by the sender
}

// What the replicator is told.
type (
	accepted struct{ conn net.Conn }
	// reported: the first report of a replica was accepted.
	reported struct{ id int }
	// ended: a connection is over.
	ended struct {
		id  int
		err error
	}
	deadlineTick struct{}
	// acknowledged: a replica has acknowledged more.
	acknowledged struct{}
	// acknowledgedAlone is the same on the goroutine that has read it, which must not block.
	acknowledgedAlone struct{}
)

var errStranger = errors.New("its host is none of haAllow")

// Refuse closes a connection that nobody will serve.
func (m accepted) Refuse(error) { _ = m.conn.Close() }

// NewReplicator listens and returns the actor; spawn it with the mailbox port, whose inline budget is 0. When it stops it
// closes its socket; one that is never spawned is closed by Close.
func NewReplicator(cfg ReplicatorConfig, port *mailbox.Combining) (*Replicator, error) {
	r := &Replicator{
		cfg: cfg, port: port, replicas: map[int]*replica{}, closing: make(chan struct{}),
		refused: newRefusals(cfg.Logger), strange: newRefusals(cfg.Logger), // apart: no stranger silences the others' lines
	}
	r.best.Store(-1)
	r.sync.acked = map[string]int64{}
	r.list.Store(new([]*replica))
	if cfg.Listen == "" {
		return r, nil
	}
	var err error
	if r.listener, err = net.Listen("tcp", cfg.Listen); err != nil {
		return nil, fmt.Errorf("listen for slaves: %w", err)
	}
	return r, nil
}

// Address is where slaves connect, as host:port; empty where nobody can.
func (r *Replicator) Address() string {
	if r.listener == nil {
		return ""
	}
	return r.listener.Addr().String()
}

// Close closes the socket.
func (r *Replicator) Close() error {
	if r.listener == nil {
		return nil
	}
	close(r.closing)
	if err := r.listener.Close(); err != nil {
		return fmt.Errorf("close the replication port: %w", err)
	}
	return nil
}

// Await is the Replicate of the writer: the put waits for a replica, or is told that there is none (spec/store.md §12.6).
func (r *Replicator) Await(p *messages.PutMessage) {
	r.crowded(p)
	best := r.best.Load()
	if r.cfg.Group != nil {
		best = math.MaxInt64 // who is in sync is known where the puts wait
	}
	if best < 0 || int64(p.Result.End())-best >= r.cfg.FallbehindMax {
		p.Result.Status = messages.SlaveNotAvailable
		return
	}
	w := p.AwaitReplica(time.Now().Add(r.cfg.Timeout))
	if r.port.Post(w.MailboxLink()) != nil {
		w.Settle(messages.FlushSlaveTimeout) // no room to wait
	}
}

// Replicas returns the slaves that are connected. Safe for any goroutine.
func (r *Replicator) Replicas() []messages.Replica {
	var all []messages.Replica
	for _, x := range *r.list.Load() {
		all = append(all, messages.Replica{Address: x.conn.RemoteAddr().String(), Acked: messages.PhysicalOffset(x.acked.Load()), Node: x.node})
	}
	return all
}

// Receive implements actor.Actor.
func (r *Replicator) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *mailbox.Batch:
		r.batch(m)
	case *actor.Started:
		r.started(actors.NewPeer(ctx.ActorSystem().Root, ctx.Self()))
	case accepted:
		r.accept(ctx, m.conn)
	case reported:
		r.reported(m.id)
	case ended:
		r.ended(ctx, m)
	case deadlineTick:
		r.expire()
	case messages.SetInSync:
		r.setInSync(m)
	case *actor.Stopping:
		r.stopping()
	}
}

func (r *Replicator) started(self actors.Peer) {
	r.self = self
	r.acked = actors.NewBell(self, messages.Announce(acknowledged{}))
	r.answers = here(r.port, acknowledgedAlone{})
	if r.listener != nil {
		go r.acceptAll()
	}
}

// acceptAll ends when the listener is closed.
func (r *Replicator) acceptAll() {
	for {
		conn, err := r.listener.Accept()
		if err == nil {
			r.meet(conn)
			continue
		}
		select {
		case <-r.closing:
			return
		case <-time.After(acceptPause):
		}
	}
}

// meet hands a connection to the actor, unless its host may not connect.
func (r *Replicator) meet(conn net.Conn) {
	if r.allows(conn.RemoteAddr()) {
		r.self.Send(accepted{conn: r.cfg.Group.served(conn)})
		return
	}
	r.strange.tell(conn.RemoteAddr(), errStranger)
	r.strangers.Add(1)
	_ = conn.Close()
}

func (r *Replicator) allows(addr net.Addr) bool {
	if len(r.cfg.Allow) == 0 {
		return true
	}
	from, is := addr.(*net.TCPAddr)
	return is && slices.ContainsFunc(r.cfg.Allow, func(p netip.Prefix) bool { return p.Contains(from.AddrPort().Addr().Unmap().WithZone("")) })
}

// Strangers counts the connections that were closed since their hosts may not connect. Safe for any goroutine.
func (r *Replicator) Strangers() int64 { return r.strangers.Load() }

func (r *Replicator) batch(b *mailbox.Batch) {
	alone := false
	for m := b.Next(); m != nil; m = b.Next() {
		b.Handled()
		switch m := m.(type) {
		case *messages.ReplicaWait:
			here := m.Here()
			if r.await(m); here {
				r.wakeHere()
			}
		case messages.LogGrown:
			r.cfg.Grown.Taken()
			r.wake()
		case acknowledged:
			r.acked.Attend()
		case acknowledgedAlone:
			r.acked.Attend()
			alone = true
		}
	}
	r.settle(alone && len(r.waiting) == 1)
}

// wake tells the senders that there is more. Without a replica the announcement is left unheard: the writer rings for nobody
// then, at the price of a look.
func (r *Replicator) wake() {
	if r.best.Load() < 0 && r.cfg.Group == nil {
		return
	}
	r.cfg.Grown.Heard()
	for _, x := range r.replicas {
		if x.reports {
			x.grown.Ring()
		}
	}
}

func (r *Replicator) accept(ctx actor.Context, conn net.Conn) {
	if r.stopped || len(r.replicas) >= maxReplicas && !r.dropSilent(ctx) {
		_ = conn.Close()
		return
	}
	r.lastID++
	x := &replica{id: r.lastID, conn: conn}
	port := mailbox.New(mailbox.Options{OnPanic: func(reason any, stack []byte) {
		r.cfg.Logger.Error().Interface("panic", reason).Bytes("stack", stack).Msg("sending to a slave panicked")
		_ = conn.Close() // its reader tells of the end
	}})
	s := newSender(r.cfg, x, r.self, r.acknowledge, r.Confirmed)
	props := actor.PropsFromProducer(func() actor.Actor { return s }, actor.WithMailbox(port.Producer()))
	pid, err := ctx.SpawnNamed(props, "sender-"+strconv.Itoa(x.id))
	if err != nil {
		_ = conn.Close()
		r.cfg.Logger.Error().Err(err).Msg("a slave can't be served")
		return
	}
	x.pid, x.sender = pid, actors.NewPeer(ctx.ActorSystem().Root, pid)
	x.grown = actors.NewBell(x.sender, messages.Announce(messages.LogGrown{}))
	x.sends = here(port, grownAlone{})
	s.grown = x.grown
	r.replicas[x.id] = x
	x.sender.Send(begin{})
}

// dropSilent drops the oldest connection without a report, if there is one: a slave reports at once, so what connects and says nothing
// keeps nobody out.
func (r *Replicator) dropSilent(ctx actor.Context) bool {
	oldest := (*replica)(nil)
	for _, x := range r.replicas {
		if !x.reports && (oldest == nil || x.id < oldest.id) {
			oldest = x
		}
	}
	if oldest != nil {
		r.ended(ctx, ended{id: oldest.id})
	}
	return oldest != nil
}

func (r *Replicator) reported(id int) {
	x := r.replicas[id]
	if x == nil {
		return
	}
	x.reports = true
	if r.cfg.Group != nil {
		r.replaced(x)
	}
	r.cfg.Logger.Info().Str("slave", x.conn.RemoteAddr().String()).Int64("from", x.sent.Load()).Msg("a slave follows")
	r.publish()
	r.wake() // what was appended meanwhile
	r.settle(false)
}

func (r *Replicator) ended(ctx actor.Context, m ended) {
	x := r.replicas[m.id]
	if x == nil {
		return
	}
	delete(r.replicas, m.id)
	if _ = x.conn.Close(); x.reports && x.node != "" {
		r.sync.acked[x.node] = x.acked.Load()
	}
	ctx.Stop(x.pid)
	r.publish()
	if errors.Is(m.err, ErrReport) {
		r.refused.tell(x.conn.RemoteAddr(), m.err)
		return
	}
	if x.reports {
		r.cfg.Logger.Warn().Err(m.err).Str("slave", x.conn.RemoteAddr().String()).Int64("acked", x.acked.Load()).
			Msg("a slave has gone")
	}
}

// publish says who is there and how far the best is.
func (r *Replicator) publish() {
	list := make([]*replica, 0, len(r.replicas))
	for _, x := range r.replicas {
		if x.reports {
			list = append(list, x)
		}
	}
	r.list.Store(&list)
	r.best.Store(r.furthest())
}

func (r *Replicator) furthest() int64 {
	best := int64(-1)
	for _, x := range r.replicas {
		if x.reports {
			best = max(best, x.acked.Load())
		}
	}
	return best
}

func (r *Replicator) stopping() {
	r.stopped = true
	if err := r.Close(); err != nil {
		r.cfg.Logger.Warn().Err(err).Msg("stopping")
	}
	for _, x := range r.replicas {
		_ = x.conn.Close()
	}
	if r.deadline != nil {
		r.deadline.Stop()
	}
	r.giveUp()
	r.refuseJoining()
}
