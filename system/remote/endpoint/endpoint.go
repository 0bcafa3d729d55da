package endpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"google.golang.org/protobuf/proto"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/remote"
	"github.com/actormq/actormq/system/remote/wire"
)

// Topics are the topics of the node; its topic keeper is one.
type Topics interface {
	Lookup(topic string) (metadata.TopicConfig, bool)
	// EnsureForSend makes a topic that is not there, when the default topic allows it.
	EnsureForSend(ctx context.Context, topic, defaultTopic string, queues int, unit bool) (metadata.TopicConfig, error)
}

// Offsets are what groups have consumed; the node's offset keeper is one.
type Offsets interface {
	Lookup(group string, q messages.QueueKey) messages.QueueOffset
	Commit(group string, q messages.QueueKey, offset messages.QueueOffset) error
}

// Policy is what producers may do; the node's broker has one.
type Policy interface {
	// Admit refuses sends that are not allowed at a time; unrouted: their sender does not go by the permissions of a route.
	Admit(at time.Time, unrouted bool) error
	// Limit refuses a send of so many messages and bytes that is more than the topic's limit allows.
	Limit(topic string, count, bytes int, at time.Time, client string) error
}

// Limits bound what clients make the endpoint keep. The zero value is the defaults.
type Limits struct {
	Clients       int           // at a time; default 256
	Subscriptions int           // of a client; default 256
	ClientBytes   int           // sent to a client, and not acknowledged or confirmed yet; default 8 MiB
	TotalBytes    int64         // the same of all clients; default 256 MiB
	Silence       time.Duration // after which a client is forgotten; default 30 s
}

func (l Limits) defaults() Limits {
	l.Clients = cmp.Or(l.Clients, 256)
	l.Subscriptions = cmp.Or(l.Subscriptions, 256)
	l.ClientBytes = cmp.Or(l.ClientBytes, 8<<20)
	l.TotalBytes = cmp.Or(l.TotalBytes, 256<<20)
	l.Silence = cmp.Or(l.Silence, 30*time.Second)
	return l
}

// Config is what an endpoint is made of.
type Config struct {
	Remote  remote.Config // Open is filled in
	Store   *system.Store
	Topics  Topics  // nil: every topic is there, with one queue
	Offsets Offsets // nil: no group has any
	Policy  Policy  // nil: producers may do everything
	// Leads tells whether this node leads a topic, and if not, which address does, as far as that is known. It must not block. Nil:
	// it leads all.
	Leads  func(topic string) (leads bool, leader string)
	Limits Limits
	Logger zerolog.Logger
}

// ErrConfig: something required is missing.
var ErrConfig = errors.New("bad configuration of the store endpoint")

// Endpoint is a running store endpoint. Safe for concurrent use.
type Endpoint struct {
	cfg     Config
	host    *remote.Host
	root    *actor.RootContext
	pid     *actor.PID
	life    uint64
	alive   context.Context //nolint:containedctx // ends when the endpoint stops
	end     context.CancelFunc
	closing atomic.Bool
	held    atomic.Int64 // bytes sent, of all clients
	clients atomic.Int32
	running sync.WaitGroup // goroutines that look something up
	stopped sync.Once
}

// Start opens the port and serves the store. The store stays the caller's: it is closed after Stop.
func Start(cfg Config) (*Endpoint, error) {
	if cfg.Store == nil {
		return nil, fmt.Errorf("%w: Store is missing", ErrConfig)
	}
	cfg.Limits = cfg.Limits.defaults()
	cfg.Remote.Open, cfg.Remote.Logger = []string{wire.EndpointName}, cfg.Logger
	host, err := remote.Start(cfg.Remote)
	if err != nil {
		return nil, err
	}
	e := &Endpoint{cfg: cfg, host: host, root: host.System.Root, life: rand.Uint64()}
	e.alive, e.end = context.WithCancel(context.Background())
	r := &router{e: e, callers: map[callerKey]*actor.PID{}}
	e.pid, err = e.root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return r }, actor.WithSupervisor(supervision())), wire.EndpointName)
	if err != nil {
		host.Stop()
		return nil, fmt.Errorf("spawn the store endpoint: %w", err)
	}
	cfg.Logger.Info().Str("address", host.Address()).Bool("tls", cfg.Remote.TLS != nil).Msg("actors of other processes reach the store here")
	return e, nil
}

// supervision: a caller that panics is a bug. It is stopped, so that its client begins anew; nobody else notices.
func supervision() actor.SupervisorStrategy {
	return actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })
}

// Address is where clients reach the endpoint: HOST:PORT.
func (e *Endpoint) Address() string { return e.host.Address() }

// Status is what an endpoint does.
type Status struct {
	Clients   int   // known
	HeldBytes int64 // sent to them, not acknowledged or confirmed yet
	Refused   int64 // peers that broke the rules, since the start
}

// Status tells what the endpoint does.
func (e *Endpoint) Status() Status {
	return Status{Clients: int(e.clients.Load()), HeldBytes: e.held.Load(), Refused: e.host.Refused()}
}

// Stop refuses what comes, waits for the answers of what was taken until the context ends, and closes the port.
func (e *Endpoint) Stop(ctx context.Context) error {
	var err error
	e.stopped.Do(func() {
		e.closing.Store(true)
		drained := messages.NewAnswer[struct{}]()
		e.root.Send(e.pid, &drain{answer: drained})
		_, err = drained.Wait(ctx)
		e.end()
		if stop := e.root.StopFuture(e.pid).Wait(); stop != nil {
			err = errors.Join(err, fmt.Errorf("stop the store endpoint: %w", stop))
		}
		e.running.Wait()
		e.host.Stop()
	})
	return err
}

// leads tells whether this node may serve a topic.
func (e *Endpoint) leads(topic string) (bool, string) {
	if e.cfg.Leads != nil {
		return e.cfg.Leads(topic)
	}
	return e.cfg.Store.Options().Role != messages.Slave, ""
}

// callerKey says whose requests a caller handles.
type callerKey struct {
	client  uint64
	address string
	name    string
}

// What the router is told, besides envelopes.
type (
	drain  struct{ answer *messages.Answer[struct{}] }
	gone   struct{ key callerKey }
	idling struct{ key callerKey } // while the endpoint stops: the caller has answered everything
)

// router gives each client's requests to its caller. It is the actor that peers can address.
type router struct {
	e        *Endpoint
	callers  map[callerKey]*actor.PID
	draining *drain
	busy     map[callerKey]struct{} // while draining: those that still have something to answer
}

// Receive implements actor.Actor.
func (r *router) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *wire.Envelope:
		r.route(ctx, m)
	case gone:
		r.leave(ctx, m.key)
	case *actor.Terminated:
		for key, pid := range r.callers {
			if pid.Equal(m.Who) {
				r.leave(ctx, key)
			}
		}
	case *drain:
		r.drain(ctx, m)
	case idling:
		delete(r.busy, m.key)
		r.drained()
	}
}

func (r *router) route(ctx actor.Context, e *wire.Envelope) {
	from := ctx.Sender()
	if from == nil {
		return // the host lets none through
	}
	key := callerKey{client: e.GetClient(), address: from.GetAddress(), name: from.GetId()}
	to, known := r.callers[key]
	if !known {
		if why := r.refusal(e); why != nil {
			r.e.host.Handled(key.address, 1, proto.Size(e))
			r.e.answer(from, e, wire.KindRefused, why)
			return
		}
		c := newCaller(r.e, key, from)
		to = ctx.Spawn(actor.PropsFromProducer(func() actor.Actor { return c }))
		r.callers[key] = to
		r.e.clients.Add(1)
		r.e.cfg.Logger.Debug().Uint64("client", key.client).Str("address", key.address).Msg("a remote client has come")
	}
	ctx.Send(to, e)
}

// refusal says why a client that is not known is not served.
func (r *router) refusal(e *wire.Envelope) *wire.Refused {
	switch {
	case e.GetVersion() != wire.Version:
		return &wire.Refused{Code: wire.Code_UNSUPPORTED, Text: fmt.Sprintf("version %d, here is %d", e.GetVersion(), wire.Version)}
	case r.draining != nil:
		return &wire.Refused{Code: wire.Code_UNAVAILABLE, Text: "the node is stopping"}
	case len(r.callers) >= r.e.cfg.Limits.Clients:
		r.e.cfg.Logger.Warn().Int("clients", len(r.callers)).Msg("one more remote client is refused")
		return &wire.Refused{Code: wire.Code_BUSY, Text: fmt.Sprintf("%d clients are the limit", r.e.cfg.Limits.Clients)}
	}
	return nil
}

func (r *router) leave(ctx actor.Context, key callerKey) {
	pid, known := r.callers[key]
	if !known {
		return
	}
	delete(r.callers, key)
	delete(r.busy, key)
	r.e.clients.Add(-1)
	ctx.Stop(pid)
	r.drained()
	for other := range r.callers {
		if other.address == key.address {
			return
		}
	}
	r.e.host.Forget(key.address)
}

func (r *router) drain(ctx actor.Context, m *drain) {
	r.draining, r.busy = m, map[callerKey]struct{}{}
	for key, pid := range r.callers {
		r.busy[key] = struct{}{}
		ctx.Send(pid, m)
	}
	r.drained()
}

func (r *router) drained() {
	if r.draining != nil && len(r.busy) == 0 {
		r.draining.answer.Complete(struct{}{}, nil)
	}
}

// answer sends the answer to a request.
func (e *Endpoint) answer(to *actor.PID, request *wire.Envelope, kind string, payload proto.Message) {
	answer, err := wire.Pack(kind, request.GetClient(), request.GetId(), payload)
	if err != nil {
		e.cfg.Logger.Error().Err(err).Msg("an answer to a remote client can't be sent")
		return
	}
	e.send(to, answer)
}

func (e *Endpoint) send(to *actor.PID, m *wire.Envelope) {
	e.root.RequestWithCustomSender(to, m, e.pid)
}
