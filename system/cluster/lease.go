package cluster

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/actormq/actormq/actors"
)

// holder keeps the node's lease alive, on a goroutine of its own, and knows until when this node may take it for alive: counted from
// before it was asked for, and shorter than it is.
type holder struct {
	ctl   *control
	ttl   time.Duration
	owner actors.Peer
	now   func() time.Duration // monotonic
	held  atomic.Pointer[held]
}

// held is a lease, and until when it is taken for alive.
type held struct {
	lease clientv3.LeaseID
	until time.Duration // of now
}

// leased: the node has a lease, another one than before.
type leased struct{ id clientv3.LeaseID }

func newHolder(ctl *control, ttl time.Duration, owner actors.Peer) *holder {
	began := time.Now()
	return &holder{ctl: ctl, ttl: ttl, owner: owner, now: func() time.Duration { return time.Since(began) }}
}

// alive tells whether the keys of a lease are still there for certain. Safe for any goroutine.
func (h *holder) alive(lease clientv3.LeaseID) bool {
	x := h.held.Load()
	return x != nil && lease != 0 && x.lease == lease && h.now() < x.until
}

// aloneFor is longer than it takes clients to ask for a route again: 30 s.
const aloneFor = time.Minute

// alone tells that the lease was lost in the last minute. Safe for any goroutine.
func (h *holder) alone() bool {
	x := h.held.Load()
	if x == nil {
		return false
	}
	since := h.now() - x.until
	return since > 0 && since < aloneFor
}

// renewals is how many may be under way: one that etcd's leader has taken along when it died holds up no other one.
const renewals = 4

// renewal is an attempt, begun at asked.
type renewal struct {
	lease clientv3.LeaseID
	asked time.Duration
	err   error
}

// run gets a lease and renews it; one that has passed is replaced: a node that was cut off comes back by itself.
func (h *holder) run(ctx context.Context) {
	var lease clientv3.LeaseID
	running, done := 0, make(chan renewal, renewals)
	pace := time.NewTicker(h.ttl / 8)
	defer pace.Stop()
	for ctx.Err() == nil {
		if lease == 0 {
			lease = h.grant(ctx)
		} else if running < renewals {
			running++
			asked, lease := h.now(), lease // another one may have come before it is begun
			go func() { done <- renewal{lease, asked, h.renew(ctx, lease)} }()
		}
		for waits := true; waits; {
			select {
			case <-ctx.Done():
				waits = false
			case <-pace.C:
				waits = false
			case r := <-done:
				running--
				if lease = h.renewed(lease, r); lease == 0 {
					waits = false
				}
			}
		}
	}
	for ; running > 0; running-- {
		<-done
	}
	if lease != 0 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout/2)
		defer cancel()
		_ = h.ctl.revoke(ctx, lease) // else it passes by itself
	}
}

// renewed takes the result of an attempt, and returns the lease that the node has: 0 when it has passed.
func (h *holder) renewed(lease clientv3.LeaseID, r renewal) clientv3.LeaseID {
	switch held := h.held.Load(); {
	case r.lease != lease:
	case errors.Is(r.err, rpctypes.ErrLeaseNotFound):
		h.held.Store(nil)
		return 0
	case r.err == nil && r.asked+h.certain() > held.until: // an earlier one may have been slower
		h.hold(lease, r.asked)
	}
	return lease
}

func (h *holder) hold(lease clientv3.LeaseID, asked time.Duration) {
	h.held.Store(&held{lease: lease, until: asked + h.certain()})
}

// certain is how long a lease is taken for alive: clocks may differ by an eighth.
func (h *holder) certain() time.Duration { return h.ttl * 7 / 8 }

// grant gets a lease, 0 when there is none to be had.
func (h *holder) grant(ctx context.Context) clientv3.LeaseID {
	ctx, cancel := context.WithTimeout(ctx, h.ttl)
	defer cancel()
	asked := h.now()
	lease, err := h.ctl.grant(ctx, h.ttl)
	if err != nil {
		return 0
	}
	h.hold(lease, asked)
	h.owner.Send(leased{id: lease})
	return lease
}

func (h *holder) renew(ctx context.Context, lease clientv3.LeaseID) error {
	ctx, cancel := context.WithTimeout(ctx, h.ttl/2)
	defer cancel()
	return h.ctl.renew(ctx, lease)
}
