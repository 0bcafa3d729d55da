package storebench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"time"
)

// Run runs the workload that the options name and prints its line. Ending the context ends it early, with an error.
func Run(ctx context.Context, o *Options, w io.Writer) error {
	o.ctx = ctx
	if err := o.finish(); err != nil {
		return err
	}
	stop, err := o.profile()
	if err != nil {
		return err
	}
	return errors.Join(o.run(w), stop())
}

// profile begins a CPU profile, when one is wanted, and returns what ends it.
func (o *Options) profile() (stop func() error, err error) {
	if o.Profile == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(o.Profile)
	if err != nil {
		return nil, fmt.Errorf("make the profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("profile: %w", err), f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

func (o *Options) run(w io.Writer) error {
	switch o.Workload {
	case "put", "put-sync", "put-batch", "put-topics":
		return with(o, func(b *bench) error { return b.put(w) })
	case "get":
		return with(o, func(b *bench) error { return b.get(w) })
	case "tail":
		return with(o, func(b *bench) error { return b.tail(w) })
	case "index-query", "time-search":
		return with(o, func(b *bench) error { return b.query(w) })
	case "recover":
		return o.fresh(func() error { return recovery(o, w) })
	case "start":
		return o.fresh(func() error { return start(o, w) })
	case childFill:
		return fill(o, w)
	case childStart:
		return startAndFill(o, w)
	}
	return fmt.Errorf("%w: --workload %s", ErrArguments, o.Workload)
}

func (b *bench) put(w io.Writer) error {
	o := b.opt
	async := o.Mode == "async"
	l := load{threads: o.Threads, time: seconds(o.Warmup), async: async, window: o.Window, batch: o.Batch}
	if o.Topics > 1 { // each topic is touched once, so that making the queues is not measured
		if _, err := b.produce(load{threads: 1, time: time.Hour, msgs: int64(o.Topics), batch: 1}); err != nil {
			return err
		}
	}
	if _, err := b.produce(l); err != nil {
		return err
	}
	if err := o.pause(seconds(o.Settle)); err != nil {
		return err
	}
	l.time, l.msgs = seconds(o.Seconds), int64(o.Count)
	p, err := b.produce(l)
	if err != nil {
		return err
	}
	r := report{"peer": o.Peer, "workload": o.Workload, "mode": o.Mode, "threads": o.Threads, "window": 1, "body": o.Body,
		"props": o.Props, "failed": p.failed}
	if async {
		r["window"] = o.Window
	}
	if o.Batch > 1 {
		r["batch"] = o.Batch
	}
	switch o.Workload {
	case "put-sync":
		r["outstanding"] = o.Threads * r["window"].(int)
	case "put-topics":
		r["topics"] = o.Topics
	}
	r.rate(p.msgs, p.seconds, o.Body)
	r["drained_msgs_per_s"] = float64(p.msgs) / (p.seconds + p.drain)
	r.latencies("", p.latency)
	r.process(p.cpu, p.msgs)
	return r.print(w)
}
