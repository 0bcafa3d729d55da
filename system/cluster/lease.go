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

// run gets a lease and renews it; one that has passed is replaced: a node that was cut off comes back by itself.
func (h *holder) run(ctx context.Context) {
	var lease clientv3.LeaseID
	for ctx.Err() == nil {
		asked := h.now()
		var err error
		if lease == 0 {
			lease, err = h.grant(ctx)
		} else {
			err = h.renew(ctx, lease)
		}
		switch {
		case err == nil:
			before := h.held.Swap(&held{lease: lease, until: asked + h.ttl*3/4})
			if before == nil || before.lease != lease {
				h.owner.Send(leased{id: lease})
			}
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			h.held.Store(nil)
			lease = 0
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(h.ttl / 4):
		}
	}
	if lease != 0 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout/2)
		defer cancel()
		_ = h.ctl.revoke(ctx, lease) // else it passes by itself
	}
}

func (h *holder) grant(ctx context.Context) (clientv3.LeaseID, error) {
	ctx, cancel := context.WithTimeout(ctx, h.ttl)
	defer cancel()
	return h.ctl.grant(ctx, h.ttl)
}

func (h *holder) renew(ctx context.Context, lease clientv3.LeaseID) error {
	ctx, cancel := context.WithTimeout(ctx, h.ttl/2)
	defer cancel()
	return h.ctl.renew(ctx, lease)
}
