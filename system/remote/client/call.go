package client

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/actormq/actormq/system/remote/wire"
)

// call is a request from its begin to its end. The core owns it; what stands above id does not change.
type call struct {
	topic, kind, want string
	payload           func(k *call, now time.Time) proto.Message
	bytes             int
	deadline          time.Time
	done              func(*wire.Envelope, error) // called once

	id         uint64
	node       *node     // it was sent there, and is not answered; nil: it waits for one
	unanswered int       // times that it was sent and not refused: it may have been carried out
	attempts   int       // times that it was sent to a node
	refusals   int       // in a row
	due        time.Time // then something has to be done about it
	sent       time.Time // for the last time
	cause      error     // why it was refused last
}

// begin hands a call, which has its token, to the core.
func (c *Client) begin(k *call) {
	if k.deadline.IsZero() {
		k.deadline = time.Now().Add(c.opt.Timeout)
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		<-c.room
		k.done(nil, ErrClosed)
		return
	}
	c.root.Send(c.pid, k)
}

// answer is what a call has brought.
type answer struct {
	envelope *wire.Envelope
	err      error
}

// wait begins a call and waits for its answer. When the context ends before, the call is given up.
func wait[R any](ctx context.Context, c *Client, k *call, read func(*wire.Envelope) (R, error)) (R, error) {
	var none R
	select {
	case c.room <- struct{}{}:
	case <-ctx.Done():
		return none, fmt.Errorf("%w: %w", ErrUnreachable, context.Cause(ctx))
	case <-c.alive.Done():
		return none, ErrClosed
	}
	k.deadline, _ = ctx.Deadline()
	came := make(chan answer, 1)
	k.done = func(e *wire.Envelope, err error) { came <- answer{e, err} }
	c.begin(k)
	select {
	case a := <-came:
		if a.err != nil {
			return none, a.err
		}
		return read(a.envelope)
	case <-ctx.Done():
		c.root.Send(c.pid, givenUp{k, context.Cause(ctx)})
		a := <-came // the core answers at once
		if a.err != nil {
			return none, a.err
		}
		return read(a.envelope)
	}
}

// failed is why a call that nobody waits for any longer has failed.
func (k *call) failed(why error) error {
	kind := ErrUnreachable
	if k.unanswered > 0 {
		kind = ErrNoAnswer
	}
	if k.cause != nil {
		return fmt.Errorf("%s of topic %s: %w: %w: %w", k.kind, k.topic, kind, why, k.cause)
	}
	return fmt.Errorf("%s of topic %s: %w: %w", k.kind, k.topic, kind, why)
}

// grown is a pause that doubles with each time, up to a limit.
func grown(first, most time.Duration, times int) time.Duration {
	for ; times > 1 && first < most; times-- {
		first *= 2
	}
	return min(first, most)
}
