package namesrv

import (
	"errors"
	"maps"
	"slices"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system/gateway/broker"
)

// errAlone closes a connection: clients go to another name server when theirs is away, not when it knows nobody.
var errAlone = errors.New("this node is cut off from its group")

// route answers 105: strict compact JSON to everyone, both clients read it (spec/remoting.md §22).
func (s *Server) route(r *gateway.Request) {
	var h remoting.RouteHeader
	if !broker.Header(r, &h) {
		return
	}
	if s.cfg.Alone != nil && s.cfg.Alone() {
		r.Abandon(errAlone)
		return
	}
	now := s.state()
	data := remoting.TopicRouteData{FilterServerTable: map[string][]string{}}
	if topic, ok := s.b.Topics.Lookup(h.Topic); ok {
		data.QueueDatas = append(data.QueueDatas, s.queueData(&topic))
		data.BrokerDatas = append(data.BrokerDatas, s.brokerData(now))
	}
	byBroker := now.remote.topics[h.Topic]
	for _, name := range slices.Sorted(maps.Keys(byBroker)) {
		if name == s.b.BrokerName && len(data.QueueDatas) > 0 {
			continue // its queues are those that this node has
		}
		data.QueueDatas = append(data.QueueDatas, byBroker[name])
		data.BrokerDatas = append(data.BrokerDatas, now.remote.data(name))
	}
	if len(data.BrokerDatas) == 0 {
		r.Fail(remoting.ResponseTopicNotExist, "No topic route info in name server for the topic: "+h.Topic+broker.SeeFAQ)
		return
	}
	if s.cfg.OrderMessages {
		data.OrderTopicConf = now.kv[orderNamespace][h.Topic]
	}
	r.OKBody(&data)
}

// brokerData is this node's broker, with those of its slaves that have registered.
func (s *Server) brokerData(now *state) remoting.BrokerData {
	addrs := cloned(now.remote.brokers[s.b.BrokerName].addrs)
	addrs[s.b.BrokerID] = s.b.Address
	if _, known := addrs[0]; s.cfg.Relays && !known {
		addrs[0] = s.b.Address
	}
	return remoting.BrokerData{BrokerAddrs: addrs, BrokerName: s.b.BrokerName, Cluster: s.b.ClusterName}
}

// data is a broker that has registered.
func (s *remotes) data(name string) remoting.BrokerData {
	b := s.brokers[name]
	return remoting.BrokerData{BrokerAddrs: b.addrs, BrokerName: name, Cluster: b.cluster}
}

// queueData is what a broker registers of a topic: a broker that may not read or not write says so for all of them
// (spec/remoting.md §15.3).
func (s *Server) queueData(t *metadata.TopicConfig) remoting.QueueData {
	perm := t.Perm
	if !s.b.Policy().Readable() || !s.b.Policy().Writeable() {
		perm = s.b.Policy().Perm
	}
	if s.cfg.Draining != nil && s.cfg.Draining() {
		perm &^= metadata.PermWrite
	}
	return remoting.QueueData{
		BrokerName: s.b.BrokerName, Perm: int32(s.state().perm(t.TopicName, perm)), ReadQueueNums: int32(t.ReadQueueNums),
		TopicSysFlag: int32(t.TopicSysFlag), WriteQueueNums: int32(t.WriteQueueNums),
	}
}

// clusterInfo answers 106.
func (s *Server) clusterInfo(r *gateway.Request) {
	now := s.state()
	info := remoting.ClusterInfo{BrokerAddrTable: map[string]remoting.BrokerData{}, ClusterAddrTable: map[string][]string{}}
	for name := range now.remote.brokers {
		info.BrokerAddrTable[name] = now.remote.data(name)
	}
	info.BrokerAddrTable[s.b.BrokerName] = s.brokerData(now)
	for _, name := range slices.Sorted(maps.Keys(info.BrokerAddrTable)) {
		cluster := info.BrokerAddrTable[name].Cluster
		info.ClusterAddrTable[cluster] = append(info.ClusterAddrTable[cluster], name)
	}
	r.OKBody(&info)
}

// names lists the topics that pass, sorted. The original decides by the first broker of a topic; here it is this node's, else any.
func (s *Server) names(pass func(sysFlag int32) bool) []string {
	list := []string{}
	for t := range s.b.Topics.All() {
		if pass(int32(t.TopicSysFlag)) {
			list = append(list, t.TopicName)
		}
	}
	for topic, byBroker := range s.state().remote.topics {
		if _, here := s.b.Topics.Lookup(topic); here {
			continue
		}
		for _, q := range byBroker {
			if pass(q.TopicSysFlag) {
				list = append(list, topic)
			}
			break
		}
	}
	slices.Sort(list)
	return list
}

func every(int32) bool { return true }

// allTopics answers 206.
func (s *Server) allTopics(r *gateway.Request) {
	r.OKBody(&remoting.TopicList{TopicList: s.names(every)})
}

// topicsByCluster answers 224; an unknown cluster has no topics.
func (s *Server) topicsByCluster(r *gateway.Request) {
	var h remoting.ClusterHeader
	if !broker.Header(r, &h) {
		return
	}
	list := []string{}
	if h.Cluster == s.b.ClusterName {
		for t := range s.b.Topics.All() {
			list = append(list, t.TopicName)
		}
	}
	now := s.state().remote
	for topic, byBroker := range now.topics {
		for name := range byBroker {
			if now.brokers[name].cluster == h.Cluster {
				list = append(list, topic)
			}
		}
	}
	slices.Sort(list)
	r.OKBody(&remoting.TopicList{TopicList: slices.Compact(list)})
}

// systemTopics answers 304: what is a topic by its name, and whom to ask for the rest.
func (s *Server) systemTopics(r *gateway.Request) {
	list := []string{s.b.ClusterName, s.b.BrokerName}
	now := s.state().remote
	for _, name := range slices.Sorted(maps.Keys(now.brokers)) {
		for _, one := range []string{now.brokers[name].cluster, name} {
			if !slices.Contains(list, one) {
				list = append(list, one)
			}
		}
	}
	r.OKBody(&remoting.TopicList{BrokerAddr: s.b.Address, TopicList: list})
}

// unitTopics answers 311.
func (s *Server) unitTopics(r *gateway.Request) {
	r.OKBody(&remoting.TopicList{TopicList: s.names(isUnit)})
}

// unitSubTopics answers 312.
func (s *Server) unitSubTopics(r *gateway.Request) {
	r.OKBody(&remoting.TopicList{TopicList: s.names(isUnitSub)})
}

// unitSubOnlyTopics answers 313.
func (s *Server) unitSubOnlyTopics(r *gateway.Request) {
	r.OKBody(&remoting.TopicList{TopicList: s.names(func(flag int32) bool { return isUnitSub(flag) && !isUnit(flag) })})
}

func isUnit(flag int32) bool { return flag&messages.TopicSysFlagUnit != 0 }

func isUnitSub(flag int32) bool { return flag&messages.TopicSysFlagUnitSub != 0 }

// deleteTopic answers 216. Of this node's broker the routes are those of the topics that it has: a topic that it has deleted is gone
// here too, one that it still has would come back at once. Those of others go, until they register them again.
func (s *Server) deleteTopic(r *gateway.Request) {
	var h remoting.DeleteTopicInNamesrvHeader
	if !broker.Header(r, &h) {
		return
	}
	ctx, cancel := s.b.Context()
	defer cancel()
	_, err := s.change(ctx, func(now *remotes) (*remotes, error) { return now.withoutTopic(h.Topic, h.ClusterName), nil })
	if err != nil {
		r.Fail(remoting.ResponseSystemError, err.Error())
		return
	}
	r.OK(nil)
}
