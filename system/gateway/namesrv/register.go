package namesrv

import (
	"context"
	"strings"
	"time"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway/broker"
)

// Times of spec/remoting.md §5.3.
const (
	brokerExpiry = 120 * time.Second
	scanInterval = 10 * time.Second
)

// What the actor is told about other brokers.
type (
	// change replaces the registered brokers.
	change struct {
		what   func(*remotes) (*remotes, error)
		heard  *alive                     // nil, or who is registered by it
		answer *messages.Answer[*remotes] // those after it
	}
	// alive: an address has been heard of on a connection.
	alive struct {
		addr string
		conn link
	}
	// gone: a connection has ended.
	gone struct{ conn link }
	// scan: drop those that have not been heard of.
	scan struct{}
)

// Refuse answers with an error.
func (m change) Refuse(cause error) { m.answer.Refuse(cause) }

// pulse is when and where an address was heard of.
type pulse struct {
	at   time.Time
	conn link
}

// Gone says that a connection to the name server has ended: the brokers that were registered by it are dropped.
func (s *Server) Gone(c *gateway.Conn) { s.peer.Send(gone{c}) }

// change has the actor change the registered brokers.
func (s *Server) change(ctx context.Context, what func(*remotes) (*remotes, error), heard ...*alive) (*remotes, error) {
	m := change{what: what, heard: append(heard, nil)[0], answer: messages.NewAnswer[*remotes]()}
	s.peer.Send(m)
	return m.answer.Wait(ctx)
}

// registerBroker answers 103.
func (s *Server) registerBroker(r *gateway.Request) {
	var h remoting.RegisterBrokerHeader
	if !broker.Header(r, &h) {
		return
	}
	body, err := remoting.DecodeRegisterBody(&h, r.Body)
	if err != nil {
		r.Fail(remoting.ResponseSystemError, err.Error())
		return
	}
	table := body.TopicConfigSerializeWrapper
	reg := &registration{
		RegisterBrokerHeader: own(&h), version: table.DataVersion, topics: table.TopicConfigTable, bare: len(r.Body) == 0,
	}
	ctx, cancel := s.b.Context()
	defer cancel()
	after, err := s.change(ctx, func(now *remotes) (*remotes, error) {
		if reg.BrokerName == s.b.BrokerName && reg.BrokerID == s.b.BrokerID {
			return nil, errOwnName
		}
		return now.register(reg)
	}, &alive{addr: reg.BrokerAddr, conn: r.Conn})
	if err != nil {
		r.Fail(remoting.ResponseSystemError, err.Error())
		return
	}
	s.registered(r, reg, after)
}

// registered tells a slave its master, and everybody the order topics.
func (s *Server) registered(r *gateway.Request, reg *registration, now *remotes) {
	a := &remoting.RegisterBrokerAnswer{}
	if reg.BrokerID != 0 {
		if reg.BrokerName == s.b.BrokerName && s.b.BrokerID == 0 {
			a.MasterAddr, a.HAServerAddr = s.b.Address, s.cfg.HAAddress
		} else if master, ok := now.brokers[reg.BrokerName].addrs[0]; ok {
			a.MasterAddr, a.HAServerAddr = master, now.lives[master].ha
		}
	}
	c := r.Command.Answer(remoting.ResponseSuccess, "")
	c.ExtFields = remoting.ToExt(a)
	if order := s.state().kv[orderNamespace]; len(order) > 0 {
		if err := c.EncodeBody(&remoting.KVTable{Table: order}); err != nil {
			r.Fail(remoting.ResponseSystemError, err.Error())
			return
		}
	}
	r.Answer(c)
}

// unregisterBroker answers 104; who is not registered is no error.
func (s *Server) unregisterBroker(r *gateway.Request) {
	var h remoting.BrokerHeader
	if !broker.Header(r, &h) {
		return
	}
	ctx, cancel := s.b.Context()
	defer cancel()
	_, err := s.change(ctx, func(now *remotes) (*remotes, error) {
		if l := now.lives[h.BrokerAddr]; l.name != h.BrokerName || l.id != h.BrokerID {
			return now, nil
		}
		return now.without(h.BrokerAddr), nil
	})
	if err != nil {
		r.Fail(remoting.ResponseSystemError, err.Error())
		return
	}
	r.OK(nil)
}

// dataVersion answers 322: whether the broker's topics have changed since it registered. If not, that keeps it alive.
func (s *Server) dataVersion(r *gateway.Request) {
	var h remoting.BrokerHeader
	var version remoting.DataVersion
	if !broker.Header(r, &h) || !broker.Body(r, &version) {
		return
	}
	l, known := s.state().remote.lives[h.BrokerAddr]
	c := r.Command.Answer(remoting.ResponseSuccess, "")
	c.ExtFields = remoting.ToExt(&remoting.DataVersionAnswer{Changed: !known || l.version != version})
	if known {
		if l.version == version {
			s.peer.Send(alive{addr: strings.Clone(h.BrokerAddr), conn: r.Conn})
		}
		if err := c.EncodeBody(&l.version); err != nil {
			r.Fail(remoting.ResponseSystemError, err.Error())
			return
		}
	}
	r.Answer(c)
}

// The actor's side.

func (k *keeper) change(m change) {
	now := k.published.Load()
	next, err := m.what(now.remote)
	if err == nil {
		k.publish(next)
	}
	if err == nil && m.heard != nil {
		k.alive(*m.heard)
	}
	m.answer.Complete(next, err)
}

func (k *keeper) publish(r *remotes) {
	next := *k.published.Load()
	for addr := range next.remote.lives {
		if _, still := r.lives[addr]; !still {
			delete(k.pulses, addr)
			k.log.Info().Str("broker", addr).Msg("a broker is no longer registered")
		}
	}
	for addr, l := range r.lives {
		if _, before := next.remote.lives[addr]; !before {
			k.log.Info().Str("broker", addr).Str("name", l.name).Int64("id", l.id).Msg("a broker has registered")
		}
	}
	next.remote = r
	k.published.Store(&next)
}

func (k *keeper) alive(m alive) {
	if _, there := k.published.Load().remote.lives[m.addr]; !there {
		return
	}
	k.pulses[m.addr] = pulse{at: time.Now(), conn: m.conn}
	if k.timer == nil {
		k.timer = k.self.After(scanInterval, scan{})
	}
	select {
	case <-m.conn.Closed(): // its end may have been told before this
		k.gone(gone{m.conn})
	default:
	}
}

func (k *keeper) gone(m gone) {
	k.leave(func(p pulse) bool { return p.conn == m.conn })
}

// leave drops the brokers whose pulses are over, all at once: one connection may have registered thousands.
func (k *keeper) leave(over func(pulse) bool) {
	var addrs []string
	for addr, p := range k.pulses {
		if over(p) {
			addrs = append(addrs, addr)
		}
	}
	if len(addrs) > 0 {
		k.publish(k.published.Load().remote.without(addrs...))
	}
	for _, addr := range addrs {
		delete(k.pulses, addr)
	}
}

// scan drops who has been silent for too long, and closes its connection, so that it notices.
func (k *keeper) scan() {
	k.timer = nil
	k.leave(func(p pulse) bool {
		silent := time.Since(p.at) >= brokerExpiry
		if silent {
			p.conn.Close(messages.ErrClientExpired)
		}
		return silent
	})
	if len(k.pulses) > 0 {
		k.timer = k.self.After(scanInterval, scan{})
	}
}

// link is a connection: a *gateway.Conn.
type link interface {
	Close(cause error)
	Closed() <-chan struct{}
}
