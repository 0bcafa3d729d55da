package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
)

// Member is a node's part in its cluster.
type Member struct {
	elector *elector
	root    *actor.RootContext
	pid     *actor.PID
	cancel  context.CancelFunc
	running sync.WaitGroup // holder and watcher
	end     func()         // of etcd
	closing sync.Once
	closed  error
}

// Start joins the cluster. It returns before the others are there: what the node does is told by Config.Serve.
func Start(root *actor.RootContext, cfg Config) (*Member, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	client, own, end, err := connect(cfg)
	if err != nil {
		return nil, err
	}
	m, err := start(root, cfg, client, own)
	if err != nil {
		end()
		return nil, err
	}
	m.end = end
	return m, nil
}

// start is Start with a client of an etcd, and the node's own one, if it has one.
func start(root *actor.RootContext, cfg Config, client *clientv3.Client, own *etcdserver.EtcdServer) (*Member, error) {
	e := &elector{cfg: cfg, ctl: newControl(client, cfg.Name), cutAt: -1, caught: map[string]time.Time{}}
	e.ctl.own = own
	e.company.deserted, e.company.handed = make(chan struct{}), make(chan struct{})
	port := mailbox.New(mailbox.Options{OnPanic: func(reason any, stack []byte) {
		cfg.Logger.Error().Interface("panic", reason).Bytes("stack", stack).Msg("BUG: the elector panicked")
	}})
	pid, err := root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return e }, actor.WithMailbox(port.Producer())), "elector-"+cfg.ID)
	if err != nil {
		return nil, fmt.Errorf("start the elector: %w", err)
	}
	m := &Member{elector: e, root: root, pid: pid, end: func() {}}
	e.self = actors.NewPeer(root, pid)
	e.lead.Store(&lead{since: time.Now(), changed: make(chan struct{})})
	e.holder = newHolder(e.ctl, cfg.Lease, e.self)
	var ctx context.Context
	ctx, m.cancel = context.WithCancel(context.Background())
	w := &watcher{ctl: e.ctl, owner: e.self, pause: cfg.Lease / 4, calm: &e.calm, log: cfg.Logger}
	m.running.Go(func() { e.holder.run(ctx) })
	m.running.Go(func() { w.run(ctx) })
	e.self.Send(tick{})
	return m, nil
}

// Store is the open store, nil while there is none: a role is being changed.
func (m *Member) Store() *system.Store {
	if t := m.elector.shown.Load(); t != nil {
		if b := t.begun.Load(); b != nil {
			return b.store
		}
	}
	return nil
}

// Yield has another node lead from now on, once all that this one has begun is answered, and tells whether this one leads and another one can;
// a group without another node in sync goes on as it is.
func (m *Member) Yield() bool {
	answer := messages.NewAnswer[bool]()
	m.root.Send(m.pid, yield{answer: answer})
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	yields, err := answer.Wait(ctx)
	return yields && err == nil
}

// Close ends what the node does, gives its lease back so that another one can lead at once, and leaves.
func (m *Member) Close() error {
	m.closing.Do(func() {
		answer := messages.NewAnswer[struct{}]()
		m.root.Send(m.pid, leave{answer: answer})
		ctx, cancel := context.WithTimeout(context.Background(), 2*stopTimeout)
		defer cancel()
		_, m.closed = answer.Wait(ctx)
		m.cancel()
		m.running.Wait()
		_ = m.root.StopFuture(m.pid).Wait()
		m.end()
	})
	return m.closed
}
