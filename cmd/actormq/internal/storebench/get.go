package storebench

import (
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/actormq/actormq/messages"
)

// get fills one queue for each reader and reads it from the beginning again and again.
func (b *bench) get(w io.Writer) error {
	o := b.opt
	count := int64(o.Count)
	if count == 0 {
		count = 1_000_000
	}
	o.Queues = o.Threads
	if _, err := b.produce(load{threads: 1, time: time.Hour, msgs: count, batch: 1}); err != nil {
		return err
	}
	if _, err := b.readers(seconds(o.Warmup), b.readQueue); err != nil {
		return err
	}
	p, err := b.readers(seconds(o.Seconds), b.readQueue)
	if err != nil {
		return err
	}
	r := report{"peer": o.Peer, "workload": "get", "threads": o.Threads, "body": o.Body, "batch": o.Batch, "touch": o.Touch}
	r.rate(p.msgs, p.seconds, o.Body)
	r.latencies("", p.latency)
	r.process(p.cpu, p.msgs)
	return r.print(w)
}

// query looks random unique keys up, or random times of the first queue.
func (b *bench) query(w io.Writer) error {
	o := b.opt
	keys := int64(o.Count)
	if keys == 0 {
		keys = 500_000
	}
	first, began := b.next.Load(), time.Now().UnixMilli()
	if _, err := b.produce(load{threads: 1, time: time.Hour, msgs: keys, batch: 1}); err != nil {
		return err
	}
	look := func(_ int, end time.Duration, p *phase) error { return b.lookUp(first, keys, end, p) }
	if o.Workload == "time-search" {
		span := time.Now().UnixMilli() - began + 1
		look = func(_ int, end time.Duration, p *phase) error { return b.lookForTime(began, span, end, p) }
	}
	if _, err := b.readers(seconds(o.Warmup), look); err != nil {
		return err
	}
	p, err := b.readers(seconds(o.Seconds), look)
	if err != nil {
		return err
	}
	r := report{"peer": o.Peer, "workload": o.Workload, "threads": o.Threads, "body": o.Body, "keys": keys, "failed": p.failed}
	r.rate(p.msgs, p.seconds, 0)
	r.latencies("", p.latency)
	r.process(p.cpu, p.msgs)
	return r.print(w)
}

// readers runs a reader on each thread for a time.
func (b *bench) readers(d time.Duration, read func(thread int, end time.Duration, p *phase) error) (phase, error) {
	all := phase{latency: newHistogram()}
	parts := make([]phase, b.opt.Threads)
	errs := make([]error, b.opt.Threads)
	cpu, began, end := cpuSeconds(), time.Now(), sinceStart()+d
	var wg sync.WaitGroup
	for t := range parts {
		parts[t].latency = newHistogram()
		wg.Go(func() { errs[t] = read(t, end, &parts[t]) })
	}
	wg.Wait()
	all.seconds, all.cpu = time.Since(began).Seconds(), cpuSeconds()-cpu
	for t := range parts {
		if errs[t] != nil {
			return all, errs[t]
		}
		all.msgs += parts[t].msgs
		all.failed += parts[t].failed
		all.latency.Merge(parts[t].latency.Histogram)
	}
	return all, nil
}

func (b *bench) readQueue(queue int, end time.Duration, p *phase) error {
	ask := messages.GetMessage{
		Queue: messages.QueueKey{Topic: topicNames(1)[0], QueueID: int32(queue)}, MaxMessages: b.opt.Batch, MaxBytes: 16 << 20,
		WillRead: b.opt.Touch == "copy",
	}
	var buffer []byte
	for {
		began := sinceStart()
		if began >= end {
			return nil
		}
		got, err := b.store.Get(b.opt.ctx, ask)
		if err != nil {
			return fmt.Errorf("get at offset %d: %w", ask.Offset, err)
		}
		n := len(got.Records)
		if b.opt.Touch == "copy" {
			buffer = buffer[:0]
			for _, r := range got.Records {
				buffer = append(buffer, r...)
			}
		}
		ask.Offset = got.NextOffset
		if n == 0 || got.NextOffset >= got.MaxOffset {
			ask.Offset = got.MinOffset
		}
		got.Release()
		p.latency.add(sinceStart() - began)
		p.msgs += int64(n)
	}
}

func (b *bench) lookUp(first, keys int64, end time.Duration, p *phase) error {
	until := time.Now().Add(time.Hour).UnixMilli()
	topic := topicNames(1)[0]
	return again(end, p, func() error {
		found, err := b.store.QueryRecords(b.opt.ctx, messages.QueryMessage{
			Topic: topic, Key: uniqueKey(first + rand.Int64N(keys)), MaxMessages: 32, EndMs: until,
		})
		if err != nil {
			return fmt.Errorf("query: %w", err)
		}
		if len(found.Records) == 0 {
			p.failed++
		}
		found.Release()
		return nil
	})
}

// lookForTime looks for random times (ms) of the span, as the wire's search does.
func (b *bench) lookForTime(from, span int64, end time.Duration, p *phase) error {
	queue := messages.QueueKey{Topic: topicNames(1)[0]}
	last := b.store.MaxOffset(queue)
	return again(end, p, func() error {
		at, err := b.store.OffsetByTime(b.opt.ctx, queue, from+rand.Int64N(span), messages.TimeNearest)
		if err != nil {
			return fmt.Errorf("search by time: %w", err)
		}
		if at < 0 || at > last {
			p.failed++
		}
		return nil
	})
}

// again asks one question after the other until the time is over, and notes how long each took.
func again(end time.Duration, p *phase, ask func() error) error {
	for {
		began := sinceStart()
		if began >= end {
			return nil
		}
		if err := ask(); err != nil {
			return err
		}
		p.latency.add(sinceStart() - began)
		p.msgs++
	}
}
