package cluster

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/system/gateway/vouch"
)

// The secret by which the nodes know each other lies in etcd beside the group's record: whoever finds none there makes one, and whoever was
// faster counts. It is never changed. A node of a version before takes no notice of the key.

func (c *control) secretKey() string { return c.prefix + "secret" }

// keep writes a secret where there is none.
func (c *control) keep(ctx context.Context, s *vouch.Secret) error {
	done, err := c.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(c.secretKey()), "=", 0)).
		Then(clientv3.OpPut(c.secretKey(), s.Text())).Commit()
	if err != nil {
		return fmt.Errorf("keep the group's secret: %w", err)
	}
	if !done.Succeeded {
		return ErrChanged
	}
	return nil
}

// kept is a node's look at the secret.
type kept struct {
	secret *vouch.Secret
	err    error // something is there that is none; nothing is proved by it
}

// mint is how far a node is with making the secret.
type mint struct {
	running bool
	tried   bool // since the last tick
	odd     bool // it was told that what is there is none
}

// minted: an attempt is over.
type minted struct{ err error }

// secret is the group's, nil while this node does not know it. Safe for any goroutine.
func (e *elector) secret() *vouch.Secret { return e.known.Load() }

// see takes over the secret that the group has, and has it get one where it has none. What was known counts until there is another one.
func (e *elector) see() {
	switch now := e.view.secret; {
	case now.err != nil:
		if !e.mint.odd {
			e.cfg.Logger.Error().Err(now.err).Str("key", e.ctl.secretKey()).
				Msg("nodes can't prove to each other for which client they relay; delete the key, and they make another one")
		}
		e.mint.odd = true
		return
	case now.secret != nil:
		e.known.Store(now.secret)
		e.mint.odd = false
		return
	case !e.view.known || e.mint.running || e.mint.tried || e.leaving != nil || !e.holder.alive(e.lease):
		return
	}
	e.mint.running, e.mint.tried = true, true
	self, ctl := e.self, e.ctl
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
		defer cancel()
		self.Send(minted{err: actors.Protect("make the group's secret", func() error { return ctl.keep(ctx, vouch.NewSecret()) })})
	}()
}

func (e *elector) minted(m minted) {
	e.mint.running = false
	switch {
	case m.err == nil:
		e.cfg.Logger.Info().Msg("the group has a secret by which its nodes know each other")
	case !errors.Is(m.err, ErrChanged): // else somebody was faster
		e.cfg.Logger.Warn().Err(m.err).Msg("the group has no secret by which its nodes know each other; it is tried again")
	}
}
