package registrar

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
)

// Broker is what is registered.
type Broker struct {
	remoting.RegisterBrokerHeader
	Body remoting.RegisterBrokerBody
}

// Config is what a registrar is made of. Names in parentheses are RocketMQ's options.
type Config struct {
	NameServers []string // host:port (namesrvAddr)
	// Call sends a request and returns its answer, whatever its code, or an error when the context ends or there is no connection.
	Call func(ctx context.Context, address string, request *remoting.Command) (*remoting.Command, error)
	// Broker tells what to register now. Safe for any goroutine.
	Broker func() Broker
	// Answered, when set, is given each good answer, on a goroutine of its own a name server; first is that of the first one.
	Answered func(first bool, answer *remoting.Command)

	Interval   time.Duration // registerNameServerPeriod; default 30 s
	Timeout    time.Duration // registerBrokerTimeoutMills; default 6 s
	IfChanged  bool          // forceRegister=false: ask first whether the name server knows this version of the topics
	Compressed bool          // compressedRegister
	Logger     zerolog.Logger
}

// What the actor is told, beside messages.TopicsChanged.
type (
	// begin: everything is ready.
	begin struct{}
	// due: register at that name server.
	due struct{ server int }
	// registered: an attempt has ended.
	registered struct {
		server int
		err    error
	}
	// lost: the connection to a name server has ended; it has dropped us.
	lost struct{ address string }
	// leave: take the broker out everywhere.
	leave struct{ answer *messages.Answer[struct{}] }
	// left: a name server has been told.
	left struct{ err error }
)

// Refuse answers with an error.
func (m leave) Refuse(cause error) { m.answer.Refuse(cause) }

// leastPause is the first pause after a failure; each one doubles it, up to the interval.
const leastPause = time.Second

// Registrar is a running registrar. Safe for concurrent use.
type Registrar struct {
	self actors.Peer
	end  func() error
}

// Start spawns the actor under a name. It does nothing before Begin.
func Start(root *actor.RootContext, name string, cfg Config) (*Registrar, error) {
	if cfg.Interval <= 0 {
		cfg.Interval = 30 * time.Second
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 6 * time.Second
	}
	a := &registrar{cfg: cfg}
	for _, address := range cfg.NameServers {
		a.servers = append(a.servers, server{address: address})
	}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	props := actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithMailbox(mailbox.New(mailbox.Options{}).Producer()))
	pid, err := root.SpawnNamed(props, name)
	if err != nil {
		a.cancel()
		return nil, fmt.Errorf("start the registrar: %w", err)
	}
	end := sync.OnceValue(func() error {
		err := root.PoisonFuture(pid).Wait()
		a.cancel()
		a.calls.Wait()
		return err
	})
	return &Registrar{self: actors.NewPeer(root, pid), end: end}, nil
}

// Peer is the actor's address: whoever changes topics tells it messages.TopicsChanged.
func (r *Registrar) Peer() actors.Peer { return r.self }

// Begin registers for the first time: clients may come as soon as it is called.
func (r *Registrar) Begin() { r.self.Send(begin{}) }

// Changed says that what is registered has changed otherwise than by topics.
func (r *Registrar) Changed() { r.self.Send(messages.TopicsChanged{}) }

// Lost says that the connection to a name server has ended.
func (r *Registrar) Lost(address string) { r.self.Send(lost{address}) }

// Leave takes the broker out of all name servers, and registers no more. It returns once they have answered, or the context ends.
func (r *Registrar) Leave(ctx context.Context) error {
	m := leave{answer: messages.NewAnswer[struct{}]()}
	r.self.Send(m)
	if _, err := m.answer.Wait(ctx); err != nil {
		return fmt.Errorf("unregister: %w", err)
	}
	return nil
}

// Close ends the actor and what it has under way.
func (r *Registrar) Close() error {
	if err := r.end(); err != nil {
		return fmt.Errorf("stop the registrar: %w", err)
	}
	return nil
}

// server is what is known of one name server.
type server struct {
	address  string
	running  bool // an attempt is under way
	again    bool // something has changed since it began
	failures int  // in a row
	timer    *time.Timer
}

type registrar struct {
	cfg     Config
	servers []server
	ctx     context.Context // of the calls
	cancel  context.CancelFunc
	calls   sync.WaitGroup
	self    actors.Peer

	begun   bool
	leaving *leave
	told    int   // name servers that have answered the goodbye
	refused error // of those that took it otherwise
}

// Receive implements actor.Actor.
func (a *registrar) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		a.self = actors.NewPeer(ctx.ActorSystem().Root, ctx.Self())
	case begin:
		a.begun = true
		a.all()
	case messages.TopicsChanged:
		a.all()
	case due:
		a.register(m.server)
	case registered:
		a.registered(m)
	case lost:
		a.lost(m.address)
	case leave:
		a.leave(m)
	case left:
		a.refused = errors.Join(a.refused, m.err)
		if a.told++; a.told == len(a.servers) {
			a.leaving.answer.Complete(struct{}{}, a.refused)
		}
	case *actor.Stopping:
		a.stopTimers()
		a.cancel()
	}
}

func (a *registrar) all() {
	for i := range a.servers {
		a.register(i)
	}
}

// register begins an attempt, unless one is under way: then another one follows it.
func (a *registrar) register(i int) {
	s := &a.servers[i]
	if !a.begun || a.leaving != nil {
		return
	}
	if s.running {
		s.again = true
		return
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.running, s.again = true, false
	a.calls.Go(func() {
		err := actors.Protect("register", func() error { return a.attempt(a.ctx, i, s.address) })
		a.self.Send(registered{server: i, err: err})
	})
}

func (a *registrar) registered(m registered) {
	s := &a.servers[m.server]
	s.running = false
	pause := a.cfg.Interval
	switch {
	case a.leaving != nil:
		a.depart(m.server)
		return
	case m.err != nil:
		if s.failures++; s.failures == 1 {
			a.cfg.Logger.Warn().Err(m.err).Str("name_server", s.address).Msg("registering the broker failed; it is tried again")
		}
		pause = min(pause, leastPause<<min(s.failures-1, 10))
	case s.again:
		pause = 0
		fallthrough
	default:
		if s.failures > 0 {
			a.cfg.Logger.Info().Str("name_server", s.address).Int("failures", s.failures).Msg("the broker is registered again")
		}
		s.failures = 0
	}
	if pause == 0 {
		a.register(m.server)
		return
	}
	s.timer = a.self.After(pause, due{m.server})
}

// lost registers again at once; while that fails, the pauses grow.
func (a *registrar) lost(address string) {
	for i := range a.servers {
		if s := &a.servers[i]; s.address == address && s.failures == 0 && !s.running {
			a.register(i)
		}
	}
}

// attempt registers once.
func (a *registrar) attempt(ctx context.Context, i int, address string) error {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Timeout)
	defer cancel()
	b := a.cfg.Broker()
	if a.cfg.IfChanged && a.unchanged(ctx, address, &b) {
		return nil
	}
	body, err := b.Body.Encode(&b.RegisterBrokerHeader, a.cfg.Compressed)
	if err != nil {
		return err
	}
	request := remoting.NewRequest(remoting.RequestRegisterBroker, &b.RegisterBrokerHeader)
	request.Body = body
	answer, err := a.call(ctx, address, request)
	if err == nil && a.cfg.Answered != nil {
		a.cfg.Answered(i == 0, answer)
	}
	return err
}

// unchanged asks whether the name server knows these topics; that keeps the broker registered. When in doubt they are sent.
func (a *registrar) unchanged(ctx context.Context, address string, b *Broker) bool {
	request := remoting.NewRequest(remoting.RequestQueryDataVersion, named(b))
	if err := request.EncodeBody(&b.Body.TopicConfigSerializeWrapper.DataVersion); err != nil {
		return false
	}
	answer, err := a.call(ctx, address, request)
	if err != nil {
		return false
	}
	h := remoting.DataVersionAnswer{Changed: true}
	return remoting.FromExt(answer.ExtFields, &h) == nil && !h.Changed
}

func (a *registrar) call(ctx context.Context, address string, request *remoting.Command) (*remoting.Command, error) {
	answer, err := a.cfg.Call(ctx, address, request)
	if err != nil {
		return nil, err
	}
	if answer.Code != remoting.ResponseSuccess {
		return nil, fmt.Errorf("%s at %s: %s: %s", remoting.RequestName(request.Code), address, remoting.ResponseName(answer.Code), answer.Remark)
	}
	return answer, nil
}

func named(b *Broker) *remoting.BrokerHeader {
	return &remoting.BrokerHeader{BrokerName: b.BrokerName, BrokerAddr: b.BrokerAddr, ClusterName: b.ClusterName, BrokerID: b.BrokerID}
}

// leave says goodbye to each name server, behind the attempt that is under way there.
func (a *registrar) leave(m leave) {
	if a.leaving != nil || !a.begun {
		m.answer.Complete(struct{}{}, nil)
		return
	}
	a.leaving = &m
	a.stopTimers()
	for i := range a.servers {
		if !a.servers[i].running {
			a.depart(i)
		}
	}
}

// depart tells a name server.
func (a *registrar) depart(i int) {
	a.calls.Go(func() {
		ctx, cancel := context.WithTimeout(a.ctx, a.cfg.Timeout)
		defer cancel()
		err := actors.Protect("unregister", func() error {
			b := a.cfg.Broker()
			_, err := a.call(ctx, a.cfg.NameServers[i], remoting.NewRequest(remoting.RequestUnregisterBroker, named(&b)))
			return err
		})
		a.self.Send(left{err})
	})
}

func (a *registrar) stopTimers() {
	for i := range a.servers {
		if t := a.servers[i].timer; t != nil {
			t.Stop()
		}
	}
}
