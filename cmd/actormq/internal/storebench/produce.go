package storebench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
)

// load is how messages are put.
type load struct {
	threads int
	time    time.Duration
	msgs    int64 // at most; 0: no limit
	async   bool
	window  int
	batch   int
}

// phase is what came of it.
type phase struct {
	msgs, failed   int64
	seconds, drain float64
	cpu            float64
	latency        histogram
}

// bench is a run: the store and how far the unique keys have counted.
type bench struct {
	opt   *Options
	store *system.Store
	next  atomic.Int64
	ended atomic.Bool // the run was ended: producers put no more
}

// produce puts messages and waits until queues and index have them.
func (b *bench) produce(l load) (phase, error) {
	p := phase{latency: newHistogram()}
	lines := make([]*line, l.threads)
	base := b.next.Load()
	start := make(chan struct{})
	var wg sync.WaitGroup
	for t := range lines {
		at := &line{b: b, load: l, maker: newProducer(b.opt), seq: base + int64(t), latency: newHistogram()}
		lines[t] = at
		wg.Go(func() {
			<-start
			at.run()
		})
	}
	defer context.AfterFunc(b.opt.ctx, func() { b.ended.Store(true) })()
	cpu, began := cpuSeconds(), time.Now()
	close(start)
	wg.Wait()
	p.seconds = time.Since(began).Seconds()
	if err := b.store.AwaitDispatched(b.opt.ctx); err != nil {
		return p, err
	}
	p.drain = time.Since(began).Seconds() - p.seconds
	p.cpu = cpuSeconds() - cpu
	for _, at := range lines {
		p.msgs += at.msgs
		p.failed += at.failed
		p.latency.Merge(at.latency.Histogram)
		b.next.Store(max(b.next.Load(), at.seq))
		if at.err != nil {
			return p, at.err
		}
	}
	return p, nil
}

var started = time.Now()

// sinceStart reads the monotonic clock alone: reading the wall clock too doubles the price, and is not the store's.
func sinceStart() time.Duration { return time.Since(started) }

// line is one producer.
type line struct {
	b     *bench
	load  load
	maker *producer
	seq   int64

	mu      sync.Mutex // over what completions touch, in mode async
	latency histogram
	failed  int64
	msgs    int64
	err     error
}

func (l *line) run() {
	most := int64(1) << 62
	if l.load.msgs > 0 {
		most = max(l.load.msgs/int64(l.load.threads), 1)
	}
	end := sinceStart() + l.load.time
	if l.load.async {
		l.pipelined(most, end)
	} else {
		l.waiting(most, end)
	}
}

func (l *line) waiting(most int64, end time.Duration) {
	for l.msgs < most {
		began := sinceStart()
		if began >= end || l.b.ended.Load() {
			return
		}
		err := l.putOne()
		l.latency.add(sinceStart() - began)
		l.count(err)
		l.msgs += int64(l.load.batch)
		l.seq += int64(l.load.threads)
	}
}

func (l *line) putOne() error {
	if l.load.batch == 1 {
		_, err := l.b.store.Put(l.b.opt.ctx, l.maker.message(l.seq))
		return err
	}
	m, err := l.maker.envelope(l.seq, l.load.batch)
	if err != nil {
		return err
	}
	_, err = l.b.store.PutBatch(l.b.opt.ctx, m)
	return err
}

// count notes a put that failed, and the first cause.
func (l *line) count(err error) {
	if err == nil {
		return
	}
	l.failed++
	if l.err == nil {
		l.err = fmt.Errorf("put: %w", err)
	}
}

// slot is one put in flight.
type slot struct {
	began time.Duration // sinceStart
	done  func(messages.PutResult, error)
}

func (l *line) pipelined(most int64, end time.Duration) {
	free := make(chan *slot, l.load.window)
	for range l.load.window {
		s := &slot{}
		s.done = func(_ messages.PutResult, err error) {
			l.mu.Lock()
			l.latency.add(sinceStart() - s.began)
			l.count(err)
			l.mu.Unlock()
			free <- s
		}
		free <- s
	}
	inFlight := 0
	for l.msgs < most {
		s := <-free
		if s.began = sinceStart(); s.began >= end || l.b.ended.Load() {
			free <- s
			break
		}
		if err := l.send(s); err != nil {
			l.mu.Lock()
			l.count(err)
			l.mu.Unlock()
			return
		}
		l.msgs += int64(l.load.batch)
		l.seq += int64(l.load.threads)
	}
	for inFlight < l.load.window { // until all are back
		<-free
		inFlight++
	}
}

func (l *line) send(s *slot) error {
	if l.load.batch == 1 {
		l.b.store.PutAsync(l.maker.message(l.seq), true, time.Time{}, s.done)
		return nil
	}
	m, err := l.maker.envelope(l.seq, l.load.batch)
	if err == nil {
		l.b.store.PutBatchAsync(m, true, time.Time{}, s.done)
	}
	return err
}

// with opens a fresh store for a workload and closes it again.
func with(o *Options, run func(b *bench) error) error {
	return o.fresh(func() error {
		store, err := o.open()
		if err != nil {
			return err
		}
		err = run(&bench{opt: o, store: store})
		ctx, cancel := context.WithTimeout(context.WithoutCancel(o.ctx), time.Minute)
		defer cancel()
		return errors.Join(err, store.Close(ctx))
	})
}
