package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/client"
)

// arrival is what a goroutine that follows a queue hands over.
type arrival struct {
	cursor *cursor
	batch  batch
}

// follow waits for messages in all queues at once.
func (r *reader) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	arrivals := make(chan arrival)
	var followers sync.WaitGroup
	defer followers.Wait()
	defer cancel(nil)
	for _, c := range r.cursors {
		q, at := c.source, c.next
		followers.Go(func() {
			cancel(r.followQueue(ctx, q, at, func(b batch) {
				select {
				case arrivals <- arrival{c, b}:
				case <-ctx.Done():
				}
			}))
		})
	}
	for {
		select {
		case a := <-arrivals:
			if err := r.arrived(ctx, a); err != nil || r.full() {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// arrived prints what has come in a queue.
func (r *reader) arrived(ctx context.Context, a arrival) error {
	r.take(a.cursor, a.batch)
	for len(a.cursor.ready) > 0 && !r.full() {
		if err := r.printFirst(a.cursor); err != nil {
			return err
		}
	}
	err := r.commit(ctx, a.cursor)
	if followRetryable(err) {
		r.note(a.cursor.Queue, "commit: %v", err) // the next one says it again
		return nil
	}
	return err
}

// followQueue pulls until the context ends, or something is wrong that time does not mend.
func (r *reader) followQueue(ctx context.Context, q source, at int64, emit func(batch)) error {
	for trouble := false; ctx.Err() == nil; {
		b, err := r.pull(ctx, q, at, holdTime)
		switch {
		case err == nil:
			trouble = false
			at = b.next
			emit(b)
		case !followRetryable(err):
			return err
		default:
			if !trouble { // once is enough
				emit(batch{next: at, note: fmt.Sprintf("%v; trying again", err)})
			}
			trouble = true
			pause(ctx, followPause)
		}
	}
	return context.Cause(ctx)
}

// followRetryable tells what may be over soon: a broker that is being restarted, or has too much to do.
func followRetryable(err error) bool {
	return client.Unreached(err) ||
		client.HasCode(err, remoting.ResponseSystemBusy, remoting.ResponseServiceNotAvailable, remoting.ResponseFlowControl)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
