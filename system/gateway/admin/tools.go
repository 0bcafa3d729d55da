package admin

import (
	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway/broker"
)

// Node is what tools see of the node that is not the broker's business. Every func may be nil.
type Node struct {
	// Options are the effective options by RocketMQ's names, without secrets.
	Options func() map[string]string
	// SetOptions changes options of a running node, all or none; the error names those that can't be. It may be called from
	// several goroutines.
	SetOptions func(*broker.Broker, map[string]string) error
	// Runtime adds to and overrides the values of GET_BROKER_RUNTIME_INFO.
	Runtime func() map[string]string
	// DelayOffsets is how far each delay level has been delivered.
	DelayOffsets func() map[int32]int64
}

// Tools answers the requests of tools. Safe for concurrent use.
type Tools struct {
	b    *broker.Broker
	node Node
}

// New returns the handlers.
func New(b *broker.Broker, node Node) *Tools { return &Tools{b: b, node: node} }

// Routes are the request codes that this package serves.
func (t *Tools) Routes() gateway.Routes {
	routes := gateway.Routes{}
	for code, h := range map[int]func(*gateway.Request){
		remoting.RequestUpdateAndCreateTopic:             t.updateTopic,
		remoting.RequestUpdateAndCreateSubscriptionGroup: t.updateGroup,
		remoting.RequestDeleteSubscriptionGroup:          t.deleteGroup,
		remoting.RequestCloneGroupOffset:                 t.cloneOffsets,
		remoting.RequestUpdateBrokerConfig:               t.setOptions,
		remoting.RequestGetConsumerRunningInfo:           t.runningInfo,
		remoting.RequestConsumeMessageDirectly:           t.consumeDirectly,
		remoting.RequestInvokeBrokerToGetConsumerStatus:  t.consumerStatus,
	} {
		routes[code] = gateway.Route{Handle: h, Lane: gateway.Ordered}
	}
	for code, h := range map[int]func(*gateway.Request){
		remoting.RequestDeleteTopicInBroker:           t.deleteTopic,
		remoting.RequestGetTopicStatsInfo:             t.topicStats,
		remoting.RequestGetSystemTopicListFromBroker:  t.systemTopics,
		remoting.RequestGetAllTopicConfig:             t.allTopics,
		remoting.RequestGetAllSubscriptionGroupConfig: t.allGroups,
		remoting.RequestGetAllConsumerOffset:          t.allOffsets,
		remoting.RequestGetAllDelayOffset:             t.delayOffsets,
		remoting.RequestQueryTopicConsumeByWho:        t.consumersOf,
		remoting.RequestGetConsumerConnectionList:     t.consumerConnections,
		remoting.RequestGetProducerConnectionList:     t.producerConnections,
		remoting.RequestGetAllProducerInfo:            t.allProducers,
		remoting.RequestGetConsumeStats:               t.consumeStats,
		remoting.RequestGetBrokerConsumeStats:         t.brokerConsumeStats,
		remoting.RequestQueryConsumeTimeSpan:          t.timeSpan,
		remoting.RequestQueryCorrectionOffset:         t.correction,
		remoting.RequestInvokeBrokerToResetOffset:     t.resetOffset,
		remoting.RequestViewMessageByID:               t.view,
		remoting.RequestQueryMessage:                  t.query,
		remoting.RequestQueryConsumeQueue:             t.queryQueue,
		remoting.RequestGetBrokerConfig:               t.getOptions,
		remoting.RequestGetBrokerRuntimeInfo:          t.runtime,
		remoting.RequestViewBrokerStatsData:           t.statsData,
		remoting.RequestCleanExpiredConsumeQueue:      t.clean,
		remoting.RequestCleanUnusedTopic:              t.clean,
		remoting.RequestDeleteExpiredCommitLog:        t.clean,
	} {
		routes[code] = gateway.Route{Handle: h, Lane: gateway.Slow}
	}
	for _, code := range []int{
		remoting.RequestUpdateAndCreateACLConfig, remoting.RequestDeleteACLConfig, remoting.RequestGetBrokerClusterACLInfo,
		remoting.RequestUpdateGlobalWhiteAddrsConfig, remoting.RequestGetBrokerClusterACLConfig,
	} {
		routes[code] = gateway.Route{Handle: noACL, Lane: gateway.Quick}
	}
	return routes
}

// noACL answers 50 to 54 of a broker without access control; the original leaves some of them unanswered.
func noACL(r *gateway.Request) { r.Fail(remoting.ResponseSystemError, "acl is not enabled") }
