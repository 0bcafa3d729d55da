package storebench

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Run runs the workload that the options name and prints its line. Ending the context ends it early, with an error.
func Run(ctx context.Context, o *Options, w io.Writer) error {
	o.ctx = ctx
	if err := o.finish(); err != nil {
		return err
	}
	switch o.Workload {
	case "put", "put-sync", "put-batch", "put-topics":
		return with(o, func(b *bench) error { return b.put(w) })
	case "get":
		return with(o, func(b *bench) error { return b.get(w) })
	case "tail":
		return with(o, func(b *bench) error { return b.tail(w) })
	case "index-query":
		return with(o, func(b *bench) error { return b.query(w) })
	case "recover":
		return recovery(o, w)
	case "start":
		return start(o, w)
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
