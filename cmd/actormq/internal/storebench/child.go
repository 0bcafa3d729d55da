package storebench

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/actormq/actormq/messages"
)

// Workloads of child processes: what recover and start measure begins in a process of its own.
const (
	childFill  = "fill-child"
	childStart = "start-child"
)

// child starts this program again with another workload.
func child(o *Options, workload string) (*exec.Cmd, *bufio.Scanner, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find this program: %w", err)
	}
	args := []string{
		"bench", "store", "--workload", workload, "--dir", o.Dir, "--keep", "--exit", o.Exit, "--props", o.Props,
		fmt.Sprint("--body=", o.Body), fmt.Sprint("--mb=", o.MB), fmt.Sprint("--count=", o.Count), fmt.Sprint("--idle=", o.Idle),
		fmt.Sprint("--topics=", o.Topics), fmt.Sprint("--queues=", o.Queues),
	}
	if o.Flush != "" {
		args = append(args, "--flush", o.Flush)
	}
	for _, pair := range o.Opt {
		args = append(args, "--opt", pair)
	}
	c := exec.CommandContext(o.ctx, self, args...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, nil, fmt.Errorf("pipe to a child process: %w", err)
	}
	if err := c.Start(); err != nil {
		return nil, nil, fmt.Errorf("start a child process: %w", err)
	}
	return c, bufio.NewScanner(out), nil
}

// fill fills the directory and ends in order, or at once like a killed process.
func fill(o *Options, w io.Writer) error {
	store, err := o.open()
	if err != nil {
		return err
	}
	b := &bench{opt: o, store: store}
	p, err := b.produce(load{threads: 1, time: time.Hour, msgs: int64(o.MB * 1e6 / float64(o.Body)), batch: 1})
	if err != nil {
		return err
	}
	if err := o.pause(1500 * time.Millisecond); err != nil { // until the background flush has run
		return err
	}
	fmt.Fprintln(w, "count", p.msgs)
	if o.Exit == "crash" {
		os.Exit(0)
	}
	return store.Close(o.ctx)
}

// recovery measures how long opening takes after another process has filled the store.
func recovery(o *Options, w io.Writer) error {
	c, lines, err := child(o, childFill)
	if err != nil {
		return err
	}
	var msgs, found int64
	for lines.Scan() {
		if n, _ := fmt.Sscanf(lines.Text(), "count %d", &msgs); n != 1 {
			return fmt.Errorf("the filling process said %q", lines.Text())
		}
	}
	if err := c.Wait(); err != nil {
		return fmt.Errorf("fill the store: %w", err)
	}
	cpu, began := cpuSeconds(), time.Now()
	store, err := o.open()
	if err != nil {
		return err
	}
	took := time.Since(began)
	cpu = cpuSeconds() - cpu
	store.EachQueue(func(_ messages.QueueKey, first, end messages.QueueOffset) { found += int64(end - first) })
	r := report{"peer": o.Peer, "workload": "recover", "exit": o.Exit, "mb": o.MB, "body": o.Body, "topics": o.Topics,
		"msgs": msgs, "msgs_found": found, "open_ms": float64(took.Microseconds()) / 1e3}
	r.process(cpu, 0)
	return errors.Join(r.print(w), store.Close(o.ctx))
}

// startAndFill stores one message, idles, and then stores many.
func startAndFill(o *Options, w io.Writer) error {
	store, err := o.open()
	if err != nil {
		return err
	}
	b := &bench{opt: o, store: store}
	first, err := store.Put(o.ctx, newProducer(o).message(1))
	if err != nil {
		return fmt.Errorf("put: %w", err)
	}
	m := memory()
	fmt.Fprintln(w, "ready", first.Status, m.all, m.anonymous)
	cpu := cpuSeconds()
	if err := o.pause(seconds(o.Idle)); err != nil {
		return err
	}
	idle := (cpuSeconds() - cpu) / max(o.Idle, 0.001)
	if _, err := b.produce(load{threads: 1, time: time.Hour, msgs: int64(o.Count), batch: 1}); err != nil {
		return err
	}
	m = memory()
	fmt.Fprintln(w, "after", m.all, m.anonymous, idle)
	return nil // the process ends without a stop, as the other benches do
}

// start measures from the start of a process to its first stored message, then what it needs idle and loaded.
func start(o *Options, w io.Writer) error {
	if o.Count == 0 {
		o.Count = 1_000_000
	}
	began := time.Now()
	c, lines, err := child(o, childStart)
	if err != nil {
		return err
	}
	r := report{"peer": o.Peer, "workload": "start", "body": o.Body, "msgs": int64(o.Count)}
	said := 0
	for lines.Scan() {
		var status string
		var a, b, idle float64
		if n, _ := fmt.Sscanf(lines.Text(), "ready %s %g %g", &status, &a, &b); n == 3 {
			r["start_ms"] = float64(time.Since(began).Microseconds()) / 1e3
			r["first_put"], r["rss_mb"], r["rss_anon_mb"] = status, a, b
			said++
		}
		if n, _ := fmt.Sscanf(lines.Text(), "after %g %g %g", &a, &b, &idle); n == 3 {
			r["rss_after_mb"], r["rss_anon_after_mb"], r["idle_cpu"] = a, b, idle
			said++
		}
	}
	if err := c.Wait(); err != nil || said != 2 {
		return fmt.Errorf("the started process said %d of 2 lines: %w", said, err)
	}
	return r.print(w)
}
