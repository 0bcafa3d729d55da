package namesrv

import (
	"slices"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system/gateway/broker"
)

// route answers 105: strict compact JSON to everyone, both clients read it (spec/remoting.md §22).
func (s *Server) route(r *gateway.Request) {
	var h remoting.RouteHeader
	if !broker.Header(r, &h) {
		return
	}
	topic, ok := s.b.Topics.Lookup(h.Topic)
	if !ok {
		r.Fail(remoting.ResponseTopicNotExist, "No topic route info in name server for the topic: "+h.Topic+broker.SeeFAQ)
		return
	}
	data := remoting.TopicRouteData{
		BrokerDatas: []remoting.BrokerData{s.brokerData()}, FilterServerTable: map[string][]string{},
		QueueDatas: []remoting.QueueData{s.queueData(&topic)},
	}
	if s.cfg.OrderMessages {
		data.OrderTopicConf = s.state().kv[orderNamespace][h.Topic]
	}
	r.OKBody(&data)
}

func (s *Server) brokerData() remoting.BrokerData {
	return remoting.BrokerData{
		BrokerAddrs: map[int64]string{s.b.BrokerID: s.b.Address}, BrokerName: s.b.BrokerName, Cluster: s.b.ClusterName,
	}
}

// queueData is what a broker registers of a topic: a broker that may not read or not write says so for all of them
// (spec/remoting.md §15.3).
func (s *Server) queueData(t *metadata.TopicConfig) remoting.QueueData {
	perm := t.Perm
	if !s.b.Policy().Readable() || !s.b.Policy().Writeable() {
		perm = s.b.Policy().Perm
	}
	return remoting.QueueData{
		BrokerName: s.b.BrokerName, Perm: int32(s.state().perm(t.TopicName, perm)), ReadQueueNums: int32(t.ReadQueueNums),
		TopicSysFlag: int32(t.TopicSysFlag), WriteQueueNums: int32(t.WriteQueueNums),
	}
}

// clusterInfo answers 106.
func (s *Server) clusterInfo(r *gateway.Request) {
	r.OKBody(&remoting.ClusterInfo{
		BrokerAddrTable:  map[string]remoting.BrokerData{s.b.BrokerName: s.brokerData()},
		ClusterAddrTable: map[string][]string{s.b.ClusterName: {s.b.BrokerName}},
	})
}

// names lists the topics that pass, sorted.
func (s *Server) names(pass func(*metadata.TopicConfig) bool) []string {
	list := make([]string, 0, s.b.Topics.Len())
	for t := range s.b.Topics.All() {
		if pass == nil || pass(&t) {
			list = append(list, t.TopicName)
		}
	}
	slices.Sort(list)
	return list
}

// allTopics answers 206.
func (s *Server) allTopics(r *gateway.Request) {
	r.OKBody(&remoting.TopicList{TopicList: s.names(nil)})
}

// topicsByCluster answers 224; an unknown cluster has no topics.
func (s *Server) topicsByCluster(r *gateway.Request) {
	var h remoting.ClusterHeader
	if !broker.Header(r, &h) {
		return
	}
	list := []string{}
	if h.Cluster == s.b.ClusterName {
		list = s.names(nil)
	}
	r.OKBody(&remoting.TopicList{TopicList: list})
}

// systemTopics answers 304: what is a topic by its name, and whom to ask for the rest.
func (s *Server) systemTopics(r *gateway.Request) {
	r.OKBody(&remoting.TopicList{BrokerAddr: s.b.Address, TopicList: []string{s.b.ClusterName, s.b.BrokerName}})
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
	r.OKBody(&remoting.TopicList{TopicList: s.names(func(t *metadata.TopicConfig) bool { return isUnitSub(t) && !isUnit(t) })})
}

func isUnit(t *metadata.TopicConfig) bool { return t.TopicSysFlag&messages.TopicSysFlagUnit != 0 }

func isUnitSub(t *metadata.TopicConfig) bool { return t.TopicSysFlag&messages.TopicSysFlagUnitSub != 0 }

// deleteTopic answers 216. The routes are those of the topics that the broker has: a topic that the broker has deleted is
// gone here too, one that it still has would come back at once.
func (s *Server) deleteTopic(r *gateway.Request) {
	var h remoting.DeleteTopicInNamesrvHeader
	if !broker.Header(r, &h) {
		return
	}
	r.OK(nil)
}
