package consume

import (
	"sync/atomic"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway/broker"
)

// Consumers answers the requests of consumers. Safe for concurrent use.
type Consumers struct {
	b         *broker.Broker
	lastMoved atomic.Int64 // when an offset event was stored last, in ms
}

// New returns the handlers.
func New(b *broker.Broker) *Consumers { return &Consumers{b: b} }

// Routes are the request codes that this package serves.
func (c *Consumers) Routes() gateway.Routes {
	quick := func(h func(*gateway.Request)) gateway.Route { return gateway.Route{Handle: h, Lane: gateway.Quick} }
	waits := func(h func(*gateway.Request)) gateway.Route { return gateway.Route{Handle: h, Lane: gateway.Ordered} }
	return gateway.Routes{
		remoting.RequestPullMessage:             {Handle: c.pull, Lane: gateway.Quick, RefuseWhenStopping: true, Borrows: true},
		remoting.RequestHeartbeat:               waits(c.heartbeat),
		remoting.RequestUnregisterClient:        waits(c.unregister),
		remoting.RequestCheckClientConfig:       quick(c.checkConfig),
		remoting.RequestGetConsumerListByGroup:  quick(c.list),
		remoting.RequestQueryConsumerOffset:     waits(c.queryOffset),
		remoting.RequestUpdateConsumerOffset:    quick(c.updateOffset),
		remoting.RequestGetMaxOffset:            quick(c.maxOffset),
		remoting.RequestGetMinOffset:            quick(c.minOffset),
		remoting.RequestGetEarliestMsgStoreTime: {Handle: c.earliest, Lane: gateway.Slow},
		remoting.RequestSearchOffsetByTimestamp: {Handle: c.search, Lane: gateway.Slow},
		remoting.RequestLockBatchMQ:             waits(c.lock),
		remoting.RequestUnlockBatchMQ:           waits(c.unlock),
	}
}
