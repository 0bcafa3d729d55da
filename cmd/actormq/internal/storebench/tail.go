package storebench

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/messages"
)

// tail puts at a steady rate while one reader waits for each message; the latency is from just before the put until the
// reader has the message in hand.
func (b *bench) tail(w io.Writer) error {
	o := b.opt
	if _, err := b.produce(load{threads: 1, time: seconds(o.Warmup), batch: 1}); err != nil {
		return err
	}
	key := messages.QueueKey{Topic: topicNames(1)[0]}
	first := b.store.MaxOffset(key)
	sent := make([]atomic.Int64, int(o.Rate*o.Seconds)) // since began, in ns
	began := time.Now()
	ctx, cancel := context.WithTimeout(o.ctx, seconds(o.Seconds)+time.Minute)
	defer cancel()
	seen, puts, failed := newHistogram(), newHistogram(), make(chan error, 1)
	go func() { failed <- b.follow(ctx, key, first, sent, began, seen) }()
	cpu := cpuSeconds()
	maker := newProducer(o)
	from := time.Now()
	for k := range sent {
		if wait := time.Until(from.Add(time.Duration(float64(k) * 1e9 / o.Rate))); wait > 0 {
			if err := o.pause(wait); err != nil {
				return err
			}
		}
		sent[k].Store(time.Since(began).Nanoseconds())
		if _, err := b.store.Put(ctx, maker.message(b.next.Add(1))); err != nil {
			return fmt.Errorf("put: %w", err)
		}
		puts.add(time.Since(began) - time.Duration(sent[k].Load()))
	}
	took := time.Since(from).Seconds()
	if err := <-failed; err != nil {
		return err
	}
	r := report{"peer": o.Peer, "workload": "tail", "threads": 1, "body": o.Body, "rate": o.Rate}
	r.rate(int64(len(sent)), took, 0)
	r.latencies("", seen)
	r.latencies("put_", puts)
	r.process(cpuSeconds()-cpu, int64(len(sent)))
	return r.print(w)
}

// follow reads the queue to the last message that will be sent.
func (b *bench) follow(
	ctx context.Context, key messages.QueueKey, first messages.QueueOffset, sent []atomic.Int64, began time.Time, h histogram,
) error {
	next := first
	for end := first + messages.QueueOffset(len(sent)); next < end; {
		got, err := b.store.GetWait(ctx, messages.GetMessage{Queue: key, Offset: next, MaxMessages: 32})
		if err != nil {
			return fmt.Errorf("wait for offset %d: %w", next, err)
		}
		at := time.Since(began)
		for range got.Records {
			h.add(at - time.Duration(sent[next-first].Load()))
			next++
		}
		got.Release()
	}
	return nil
}
