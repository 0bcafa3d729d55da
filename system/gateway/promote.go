package gateway

import (
	"context"
	"time"

	edge "github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/actors/ha"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway/broker"
)

// maxPromotion bounds how long a request may wait for the master's last bytes.
const maxPromotion = time.Minute

// promoteRequest answers PROMOTE_BROKER: who may, as with DRAIN_BROKER.
func (n *Node) promoteRequest(r *edge.Request) {
	var h remoting.PromoteHeader
	if !broker.Header(r, &h) {
		return
	}
	wait := time.Duration(h.TimeoutMs) * time.Millisecond
	switch {
	case n.access == nil && !r.Conn.Remote().Addr().IsLoopback():
		r.Fail(remoting.ResponseNoPermission, "without access control a broker is promoted from its own machine only")
		return
	case n.cfg.OnPromote == nil || n.broker.BrokerID == 0:
		r.Fail(remoting.ResponseRequestCodeNotSupported, "this broker is no slave that can be promoted")
		return
	case h.ExpectOffset < 0 || wait < 0 || wait > maxPromotion:
		r.Fail(remoting.ResponseSystemError, "expectOffset and timeoutMillis are not below 0, and that at most a minute")
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	end, err := n.cfg.OnPromote(ctx, messages.PhysicalOffset(h.ExpectOffset))
	if err != nil {
		r.Fail(remoting.ResponseSystemError, err.Error())
		return
	}
	r.OK(&remoting.PromotedAnswer{Offset: int64(end)})
}

// TakeOver takes the master's configuration over once more, now: topics, groups, offsets. A master that is gone is no error.
func (n *Node) TakeOver(ctx context.Context) {
	if n.configSync == nil {
		return
	}
	n.takesOver.Store(true) // until StaySlave
	answer := messages.NewAnswer[struct{}]()
	n.root.Send(n.configSync, ha.SyncNow{Answer: answer})
	if _, err := answer.Wait(ctx); err != nil {
		n.broker.Logger.Warn().Err(err).Msg("the master does not tell all of this any more: what was taken over before stays")
	}
}

// StaySlave says that nothing comes of a promotion for which TakeOver was called.
func (n *Node) StaySlave() { n.takesOver.Store(false) }
