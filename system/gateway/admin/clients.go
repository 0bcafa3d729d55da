package admin

import (
	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway/broker"
)

func connectionsOf(clients []*messages.Client) []remoting.Connection {
	list := make([]remoting.Connection, len(clients))
	for i, c := range clients {
		list[i] = remoting.Connection{
			ClientAddr: c.Channel.RemoteAddr(), ClientID: c.ID, Language: c.Language, Version: c.Version,
		}
	}
	return list
}

// consumerConnections answers 203.
func (t *Tools) consumerConnections(r *gateway.Request) {
	var h remoting.ConsumerGroupHeader
	if !broker.Header(r, &h) {
		return
	}
	group := t.b.Clients.Consumers(h.ConsumerGroup)
	if group == nil {
		r.Fail(remoting.ResponseConsumerNotOnline, "the consumer group["+h.ConsumerGroup+"] not online")
		return
	}
	answer := remoting.ConsumerConnection{
		ConnectionSet: connectionsOf(group.Clients), ConsumeFromWhere: group.ConsumeFromWhere, ConsumeType: group.ConsumeType,
		MessageModel: group.MessageModel, SubscriptionTable: map[string]remoting.SubscriptionData{},
	}
	for topic, sub := range group.Subscriptions {
		answer.SubscriptionTable[topic] = remoting.SubscriptionData(sub.Subscription)
	}
	r.OKBody(&answer)
}

// producerConnections answers 204.
func (t *Tools) producerConnections(r *gateway.Request) {
	var h remoting.ProducerGroupHeader
	if !broker.Header(r, &h) {
		return
	}
	clients := t.b.Clients.Producers(h.ProducerGroup)
	if len(clients) == 0 {
		r.Fail(remoting.ResponseSystemError, "the producer group["+h.ProducerGroup+"] not exist")
		return
	}
	r.OKBody(&remoting.ProducerConnection{ConnectionSet: connectionsOf(clients)})
}

// allProducers answers 328.
func (t *Tools) allProducers(r *gateway.Request) {
	answer := remoting.ProducerTable{Data: map[string][]remoting.ProducerInfo{}}
	for group, clients := range t.b.Clients.AllProducers() {
		for _, c := range clients {
			answer.Data[group] = append(answer.Data[group], remoting.ProducerInfo{
				ClientID: c.ID, Language: c.Language, LastUpdateTimestampMs: c.LastUpdateMs(),
				RemoteIP: "/" + c.Channel.RemoteAddr(), Version: c.Version,
			})
		}
	}
	r.OKBody(&answer)
}
