package storebench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/actormq/actormq/cmd/actormq/internal/nodeconf"
	"github.com/actormq/actormq/system"
)

// Options are the arguments of a run. Times are in seconds, sizes in bytes unless the name says otherwise.
type Options struct {
	Workload    string
	Dir         string
	Threads     int
	Body        int
	Mode        string // sync: wait for each put; async: Window in flight
	Window      int
	Outstanding int
	Batch       int
	Topics      int
	Queues      int
	Count       float64
	MB          float64
	Rate        float64
	Seconds     float64
	Warmup      float64
	Settle      float64
	Idle        float64
	Exit        string // clean or crash
	Props       string // client: the properties of a stock client; none
	Touch       string // copy: bodies are copied out; none
	Flush       string // sync or async; empty: what the workload says
	Peer        string
	Keep        bool
	Profile     string
	Opt         []string // key=value, as in broker.conf

	given func(string) bool
	ctx   context.Context
}

// ErrArguments: the arguments don't go together; the text says which.
var ErrArguments = errors.New("bad arguments")

// Flags declares the arguments.
func (o *Options) Flags(f *pflag.FlagSet) {
	f.StringVar(&o.Workload, "workload", "put", "put, put-sync, put-batch, put-topics, get, tail, index-query, time-search, recover or start")
	f.StringVar(&o.Dir, "dir", "", "folder of the store; removed before and after, unless something else than a bench has made it")
	f.IntVar(&o.Threads, "threads", 1, "producers, or readers")
	f.IntVar(&o.Body, "body", 1024, "bytes of a body (start: 128)")
	f.StringVar(&o.Mode, "mode", "sync", "sync: wait for each put; async: --window in flight for each thread")
	f.IntVar(&o.Window, "window", 256, "puts in flight of a thread in mode async")
	f.IntVar(&o.Outstanding, "outstanding", 0, "put-sync: that many threads, or that many in flight in mode async (--threads then is 2)")
	f.IntVar(&o.Batch, "batch", 0, "messages of a batch (put-batch: 32), or of a get (32)")
	f.IntVar(&o.Topics, "topics", 0, "topics, round robin (put-topics: 1000)")
	f.IntVar(&o.Queues, "queues", 0, "queues of a topic (4; put-topics: 1)")
	f.Float64Var(&o.Count, "count", 0, "messages: at most (put); to fill with (get, index-query, time-search, start)")
	f.Float64Var(&o.MB, "mb", 1024, "recover: megabytes of bodies to fill with")
	f.Float64Var(&o.Rate, "rate", 1000, "tail: messages a second")
	f.Float64Var(&o.Seconds, "seconds", 5, "measured time")
	f.Float64Var(&o.Warmup, "warmup", 3, "time before the measured time")
	f.Float64Var(&o.Settle, "settle", 0, "put: idle time between warmup and the measured time")
	f.Float64Var(&o.Idle, "idle", 5, "start: idle time after the first put")
	f.StringVar(&o.Exit, "exit", "clean", "recover: how the filling process ends, clean or crash")
	f.StringVar(&o.Props, "props", "client", "client: properties as a stock client sets them; none")
	f.StringVar(&o.Touch, "touch", "copy", "get: copy the messages out, or none")
	f.StringVar(&o.Flush, "flush", "", "sync or async; put-sync: sync")
	f.StringVar(&o.Peer, "peer", "actormq", "name in the output")
	f.BoolVar(&o.Keep, "keep", false, "keep the directory")
	f.StringVar(&o.Profile, "cpuprofile", "", "file for a CPU profile of the whole run")
	f.StringArrayVar(&o.Opt, "opt", nil, "key=value as in broker.conf, any number of times")
	o.given = f.Changed
}

// finish fills in what depends on the workload and checks the rest.
func (o *Options) finish() error {
	byDefault(&o.Topics, 1, o.Workload == "put-topics", 1000)
	byDefault(&o.Queues, 4, o.Workload == "put-topics" || o.Workload == "tail", 1)
	if o.Batch == 0 && (o.Workload == "put-batch" || o.Workload == "get") {
		o.Batch = 32
	}
	o.Batch = max(o.Batch, 1)
	small := o.Workload == "start" || o.Workload == childStart
	if small && !o.given("body") {
		o.Body = 128
	}
	if o.Outstanding > 0 {
		if o.Mode == "async" {
			if !o.given("threads") {
				o.Threads = 2
			}
			o.Threads = min(o.Threads, o.Outstanding)
			o.Window = max(o.Outstanding/o.Threads, 1)
		} else {
			o.Threads = o.Outstanding
		}
	}
	return o.check()
}

func byDefault(field *int, value int, special bool, other int) {
	if *field == 0 {
		*field = value
		if special {
			*field = other
		}
	}
}

func (o *Options) check() error {
	var bad []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			bad = append(bad, fmt.Errorf(format, args...))
		}
	}
	need(o.Dir != "", "--dir is required")
	need(o.Threads > 0 && o.Window > 0 && o.Topics > 0 && o.Queues > 0, "--threads, --window, --topics and --queues are more than 0")
	need(o.Body >= 0, "--body is %d", o.Body)
	need(o.Mode == "sync" || o.Mode == "async", "--mode %s: sync or async", o.Mode)
	need(o.Exit == "clean" || o.Exit == "crash", "--exit %s: clean or crash", o.Exit)
	need(o.Props == "client" || o.Props == "none", "--props %s: client or none", o.Props)
	need(o.Touch == "copy" || o.Touch == "none", "--touch %s: copy or none", o.Touch)
	need(o.Flush == "" || o.Flush == "sync" || o.Flush == "async", "--flush %s: sync or async", o.Flush)
	need(o.Rate > 0 && o.Seconds > 0, "--rate and --seconds are more than 0")
	if len(bad) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrArguments, errors.Join(bad...))
}

// store are the options of the store under test.
func (o *Options) store() (system.Options, error) {
	c := nodeconf.Default()
	for _, pair := range o.Opt {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return system.Options{}, fmt.Errorf("%w: --opt %s: want key=value", ErrArguments, pair)
		}
		if err := c.Set(key, value, "--opt"); err != nil {
			return system.Options{}, err
		}
	}
	s := c.Store
	s.Dir = o.Dir
	if o.Flush == "sync" || o.Flush == "" && o.Workload == "put-sync" {
		s.FlushDiskType = system.SyncFlush
	}
	return s, nil
}

func (o *Options) open() (*system.Store, error) {
	opt, err := o.store()
	if err != nil {
		return nil, err
	}
	return system.Open(opt)
}

// markName is a file in the folder of a bench: what has none is somebody's, and is not removed.
const markName = "bench"

// fresh runs a workload in a folder that is removed before and, unless it is to be kept, after, however the run ends.
func (o *Options) fresh(run func() error) error {
	if err := o.ours(); err != nil {
		return err
	}
	if err := o.wipe(); err != nil {
		return err
	}
	err := os.MkdirAll(o.Dir, 0o750)
	if err == nil {
		err = os.WriteFile(filepath.Join(o.Dir, markName), nil, 0o640)
	}
	if err != nil {
		return fmt.Errorf("make the folder of the bench: %w", err)
	}
	err = run()
	if !o.Keep {
		err = errors.Join(err, o.wipe())
	}
	return err
}

// ours refuses a folder that no bench has made, and that is not empty.
func (o *Options) ours() error {
	entries, err := os.ReadDir(o.Dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look at the folder of the bench: %w", err)
	}
	if len(entries) > 0 && !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == markName }) {
		return fmt.Errorf("%w: --dir %s holds what no bench has made, and would be removed", ErrArguments, o.Dir)
	}
	return nil
}

// wipe removes the directory.
func (o *Options) wipe() error {
	if err := os.RemoveAll(o.Dir); err != nil {
		return fmt.Errorf("remove the store of the bench: %w", err)
	}
	return nil
}

// pause waits, unless the run is ended.
func (o *Options) pause(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-o.ctx.Done():
		return context.Cause(o.ctx)
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
