package cluster

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
)

// watcher tells the member what etcd has, first and after each change, on a goroutine of its own.
type watcher struct {
	ctl   *control
	owner actors.Peer
	pause time.Duration
	calm  *atomic.Bool // what fails is no surprise
	log   zerolog.Logger
}

// observed is a look at all keys.
type observed struct{ view view }

func (w *watcher) run(ctx context.Context) {
	for ctx.Err() == nil {
		v, err := w.look(ctx)
		if err == nil {
			// A look fails while etcd has no leader itself; there may be no other change for a long time, so it is repeated.
			err = w.ctl.watch(ctx, v.at+1, func() error { _, err := w.look(ctx); return err })
		}
		if ctx.Err() != nil {
			return
		}
		level := zerolog.WarnLevel
		if w.calm.Load() {
			level = zerolog.InfoLevel
		}
		w.log.WithLevel(level).Err(err).Msg("the cluster's keys can't be watched; it is tried again")
		select {
		case <-ctx.Done():
		case <-time.After(w.pause):
		}
	}
}

func (w *watcher) look(ctx context.Context) (view, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	v, err := w.ctl.look(ctx)
	if err == nil {
		w.owner.Send(observed{view: v})
	}
	return v, err
}
