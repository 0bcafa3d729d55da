package namesrv

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system/gateway/broker"
)

// Config is what a name server is made of.
type Config struct {
	Broker *broker.Broker
	Disk   vfs.Disk // nil: nothing is kept
	KVPath string   // of kvConfig.json

	Draining  func() bool // nil, or tells whether producers are sent to other brokers
	Relays    bool        // this node relays to whoever leads: while nobody has registered as that, it is named
	Alone     func() bool // nil, or tells whether other name servers know more: who asks for a route is to ask one of them
	HAAddress string      // where this node's broker replicates from: its slaves that register are told; empty: nowhere

	OrderMessages bool // orderMessageEnable: order configurations are part of a route
	Logger        zerolog.Logger
}

// Server answers the requests of a name server. Safe for concurrent use.
type Server struct {
	cfg  Config
	b    *broker.Broker
	kept *keeper
	peer actors.Peer
	end  func() error
}

// Start loads the key-value namespaces and spawns the actor under the name "name-server".
func Start(root *actor.RootContext, cfg Config) (*Server, error) {
	kept, peer, err := startKeeper(root, cfg)
	if err != nil {
		return nil, err
	}
	end := sync.OnceValue(func() error { return root.PoisonFuture(peer.PID()).Wait() })
	return &Server{cfg: cfg, b: cfg.Broker, kept: kept, peer: peer, end: end}, nil
}

// Close ends the actor.
func (s *Server) Close() error {
	if err := s.end(); err != nil {
		return fmt.Errorf("stop the name server: %w", err)
	}
	return nil
}

// Routes are the request codes of a name server.
func (s *Server) Routes() gateway.Routes {
	quick := func(h func(*gateway.Request)) gateway.Route { return gateway.Route{Handle: h, Lane: gateway.Quick} }
	waits := func(h func(*gateway.Request)) gateway.Route { return gateway.Route{Handle: h, Lane: gateway.Ordered} }
	return gateway.Routes{
		remoting.RequestGetRouteInfoByTopic:           quick(s.route),
		remoting.RequestGetBrokerClusterInfo:          quick(s.clusterInfo),
		remoting.RequestGetAllTopicListFromNameServer: quick(s.allTopics),
		remoting.RequestGetTopicsByCluster:            quick(s.topicsByCluster),
		remoting.RequestGetSystemTopicListFromNS:      quick(s.systemTopics),
		remoting.RequestGetUnitTopicList:              quick(s.unitTopics),
		remoting.RequestGetHasUnitSubTopicList:        quick(s.unitSubTopics),
		remoting.RequestGetHasUnitSubUnunitTopicList:  quick(s.unitSubOnlyTopics),
		remoting.RequestDeleteTopicInNamesrv:          waits(s.deleteTopic),
		remoting.RequestRegisterBroker:                waits(s.registerBroker),
		remoting.RequestUnregisterBroker:              waits(s.unregisterBroker),
		remoting.RequestQueryDataVersion:              quick(s.dataVersion),
		remoting.RequestWipeWritePermOfBroker:         waits(s.wipeWrite),
		remoting.RequestAddWritePermOfBroker:          waits(s.addWrite),
		remoting.RequestPutKVConfig:                   waits(s.putKV),
		remoting.RequestGetKVConfig:                   quick(s.getKV),
		remoting.RequestDeleteKVConfig:                waits(s.deleteKV),
		remoting.RequestGetKVListByNamespace:          quick(s.listKV),
		remoting.RequestGetNamesrvConfig:              quick(s.getConfig),
		remoting.RequestUpdateNamesrvConfig:           quick(s.updateConfig),
	}
}

func (s *Server) state() *state { return s.kept.published.Load() }

// putKV answers 100.
func (s *Server) putKV(r *gateway.Request) {
	var h remoting.PutKVHeader
	if err := remoting.FromExt(r.ExtFields, &h); err != nil {
		r.Fail(remoting.ResponseSystemError, "namespace or key is null")
		return
	}
	s.setKV(r, setKV{namespace: h.Namespace, key: h.Key, value: &h.Value})
}

// deleteKV answers 102; a value that is not there is no error.
func (s *Server) deleteKV(r *gateway.Request) {
	var h remoting.KVKeyHeader
	if !broker.Header(r, &h) {
		return
	}
	s.setKV(r, setKV{namespace: h.Namespace, key: h.Key})
}

func (s *Server) setKV(r *gateway.Request, m setKV) {
	m.answer = messages.NewAnswer[struct{}]()
	ctx, cancel := s.b.Context()
	defer cancel()
	s.peer.Send(m)
	if _, err := m.answer.Wait(ctx); err != nil {
		r.Fail(remoting.ResponseSystemError, err.Error())
		return
	}
	r.OK(nil)
}

// getKV answers 101.
func (s *Server) getKV(r *gateway.Request) {
	var h remoting.KVKeyHeader
	if !broker.Header(r, &h) {
		return
	}
	value, ok := s.state().kv[h.Namespace][h.Key]
	if !ok {
		broker.Bare(r, remoting.ResponseQueryNotFound, "No config item, Namespace: "+h.Namespace+" Key: "+h.Key)
		return
	}
	r.OK(&remoting.KVValueAnswer{Value: value})
}

// listKV answers 219.
func (s *Server) listKV(r *gateway.Request) {
	var h remoting.KVNamespaceHeader
	if !broker.Header(r, &h) {
		return
	}
	space, ok := s.state().kv[h.Namespace]
	if !ok {
		r.Fail(remoting.ResponseQueryNotFound, "No config item, Namespace: "+h.Namespace)
		return
	}
	r.OKBody(&remoting.KVTable{Table: space})
}

// wipeWrite answers 205: every topic of the broker loses its write permission, here.
func (s *Server) wipeWrite(r *gateway.Request) {
	if n, ok := s.setWrite(r, wiped); ok {
		r.OK(&remoting.WipeWritePermAnswer{WipeTopicCount: int32(n)})
	}
}

// addWrite answers 327: every topic of this node's broker has its own permission again; those of others have 6, as in the
// original, whatever they had.
func (s *Server) addWrite(r *gateway.Request) {
	if n, ok := s.setWrite(r, restored); ok {
		r.OK(&remoting.AddWritePermAnswer{AddTopicCount: int32(n)})
	}
}

// setWrite reads a request that names a broker, and changes its topics; false when that is answered.
func (s *Server) setWrite(r *gateway.Request, perm func(int32) int32) (topics int, ok bool) {
	var h remoting.BrokerNameHeader
	if !broker.Header(r, &h) {
		return 0, false
	}
	if h.BrokerName == s.b.BrokerName {
		names := map[string]struct{}{}
		for t := range s.b.Topics.All() {
			names[t.TopicName] = struct{}{}
		}
		topics = len(names)
		if r.Code == remoting.RequestAddWritePermOfBroker {
			names = nil
		}
		return topics, s.wipe(r, names)
	}
	name := strings.Clone(h.BrokerName)
	ctx, cancel := s.b.Context()
	defer cancel()
	after := messages.NewAnswer[int]()
	_, err := s.change(ctx, func(now *remotes) (*remotes, error) {
		next, n := now.withPerm(name, perm)
		after.Complete(n, nil)
		return next, nil
	})
	if err != nil {
		r.Fail(remoting.ResponseSystemError, err.Error())
		return 0, false
	}
	topics, err = after.Wait(ctx)
	return topics, err == nil
}

func (s *Server) wipe(r *gateway.Request, topics map[string]struct{}) bool {
	m := wipe{topics: topics, answer: messages.NewAnswer[struct{}]()}
	ctx, cancel := s.b.Context()
	defer cancel()
	s.peer.Send(m)
	if _, err := m.answer.Wait(ctx); err != nil {
		r.Fail(remoting.ResponseSystemError, err.Error())
		return false
	}
	return true
}

// config are the options that a tool sees, as the original names them.
func (s *Server) config() map[string]string {
	return map[string]string{
		"kvConfigPath":                   s.cfg.KVPath,
		"orderMessageEnable":             broker.Bool(s.cfg.OrderMessages),
		"clusterTest":                    broker.Bool(false),
		"returnOrderTopicConfigToBroker": broker.Bool(true),
	}
}

// getConfig answers 319.
func (s *Server) getConfig(r *gateway.Request) {
	c := r.Command.Answer(remoting.ResponseSuccess, "")
	c.Body = broker.PropertiesText(s.config())
	r.Answer(c)
}

// updateConfig answers 318: no option of the name server can be changed while it runs.
func (s *Server) updateConfig(r *gateway.Request) {
	changes, err := broker.ParseProperties(r.Body)
	if err != nil {
		r.Fail(remoting.ResponseSystemError, err.Error())
		return
	}
	if len(changes) == 0 {
		r.OK(nil)
		return
	}
	names := slices.Sorted(maps.Keys(changes))
	for _, name := range names {
		if name == "kvConfigPath" || name == "configStorePath" || name == "rocketmqHome" {
			r.Fail(remoting.ResponseNoPermission, "Can not update config path")
			return
		}
	}
	r.Fail(remoting.ResponseNoPermission, "option "+names[0]+" can't be changed while the name server runs")
}
