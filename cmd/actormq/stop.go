package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
)

// stopTimeout bounds a stop: what a signal asks for is done within it.
const stopTimeout = 5 * time.Second

// orEnd starts a node. To open a store can take minutes; a signal that comes meanwhile gives it so long, and then it is left where it is:
// the process ends as if it were killed, and the next start recovers.
func orEnd(ctx context.Context, grace time.Duration, start func() (*node, error)) (*node, error) {
	type started struct {
		n   *node
		err error
	}
	done := make(chan started, 1)
	go func() {
		n, err := start()
		done <- started{n, err}
	}()
	select {
	case s := <-done:
		return s.n, s.err
	case <-ctx.Done():
	}
	select {
	case s := <-done:
		return s.n, s.err
	case <-time.After(grace):
		return nil, fmt.Errorf("%w while the store was being opened", errInterrupted)
	}
}

// run returns when the node is to stop. A slave that is promoted goes on as a master meanwhile.
func (n *node) run(ctx context.Context, log zerolog.Logger) (*node, error) {
	for {
		select {
		case <-ctx.Done():
			return n, nil
		case grace := <-n.drain:
			n.drained(ctx, grace)
			return n, nil
		case <-n.promoted:
		}
		log.Warn().Msg("this slave is promoted: it starts again as the master")
		stop, cancel := context.WithTimeout(ctx, 2*stopTimeout)
		err := n.stop(stop)
		cancel()
		if err != nil {
			log.Warn().Err(err).Msg("the slave was not stopped in order: its store recovers")
		}
		if n, err = orEnd(ctx, stopTimeout, func() (*node, error) { return startNode(n.conf.Load(), log) }); err != nil {
			return nil, err
		}
	}
}

// stop ends the node in order: connections first, then the store, which gets half of the time at least, whatever those took.
func (n *node) stop(ctx context.Context) error {
	err := n.leave(ctx)
	if end, bounded := ctx.Deadline(); bounded && time.Until(end) < stopTimeout/2 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), stopTimeout/2)
		defer cancel()
	}
	err = errors.Join(err, n.store.Close(ctx))
	closeTracer(ctx, n.tracer, n.log)
	return err
}

// leave ends what serves clients; connections get half of the time at most. The store stays open.
func (n *node) leave(ctx context.Context) error {
	edge, cancel := context.WithTimeout(ctx, stopTimeout/2)
	defer cancel()
	err := errors.Join(n.stopRemote(edge), n.gateway.Stop(edge))
	if errors.Is(err, context.DeadlineExceeded) {
		n.log.Warn().Err(err).Msg("clients that did not take their answers were cut off")
		err = nil
	}
	if n.admin != nil {
		// What it is asked reads the store, so it ends first; a profile is not waited for.
		now, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if n.keeps {
			err = errors.Join(err, n.admin.Hide(now))
		} else {
			err = errors.Join(err, n.admin.Stop(now))
		}
	}
	n.system.Shutdown()
	return err
}
