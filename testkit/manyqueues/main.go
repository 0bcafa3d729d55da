package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
)

type options struct {
	dir                      string
	topics, queues, messages int
	limit                    time.Duration
	memoryMiB                int64
	build                    bool
}

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", "", "folder to make the store in")
	flag.IntVar(&o.topics, "topics", 20_000, "topics")
	flag.IntVar(&o.queues, "queues", 5, "queues of each topic")
	flag.IntVar(&o.messages, "messages", 2, "messages of each queue")
	flag.DurationVar(&o.limit, "limit", 20*time.Second, "most that opening may take")
	flag.Int64Var(&o.memoryMiB, "memory", 1536, "most resident memory that opening may need, MiB")
	flag.BoolVar(&o.build, "build", false, "only make the store, and do not close it")
	flag.Parse()
	run := measure
	if o.build {
		run = build
	}
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "manyqueues:", err)
		os.Exit(1)
	}
}

// open opens the store as a node with defaults does.
func open(o options) (*system.Store, error) { return system.Open(system.Options{Dir: o.dir}) }

// build fills a store and ends the process without closing it.
func build(o options) error {
	s, err := open(o)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	const producers = 16
	for p := range producers {
		wg.Go(func() {
			for n := range o.messages {
				for t := p; t < o.topics; t += producers {
					for q := range o.queues {
						m := &messages.Message{Topic: fmt.Sprint("Topic", t), QueueID: int32(q), Body: fmt.Appendf(nil, "%d/%d/%d", t, q, n)}
						if _, err := s.Put(context.Background(), m); err != nil {
							failed.Store(&err)
							return
						}
					}
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	// The queues' files are written every second: wait until the last one is there.
	last := 0
	for range time.Tick(2 * time.Second) {
		n, err := folders(o.dir + "/consumequeue")
		if err != nil {
			return err
		}
		if n == last && n > 0 {
			break
		}
		last = n
	}
	os.Exit(0)
	return nil
}

// folders counts the folders two levels below one.
func folders(dir string) (n int, err error) {
	topics, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	for _, t := range topics {
		queues, err := os.ReadDir(dir + "/" + t.Name())
		if err != nil {
			return 0, err
		}
		n += len(queues)
	}
	return n, err
}

func measure(o options) error {
	if _, err := os.Stat(o.dir); err == nil {
		return fmt.Errorf("%s exists", o.dir)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	began := time.Now()
	child := exec.Command(self, "-build", "-dir", o.dir, "-topics", fmt.Sprint(o.topics), "-queues", fmt.Sprint(o.queues), "-messages", fmt.Sprint(o.messages))
	child.Stderr = os.Stderr
	if err := child.Run(); err != nil {
		return fmt.Errorf("make the store: %w", err)
	}
	fmt.Printf("made %d queues with %d messages each in %v, and died\n", o.topics*o.queues, o.messages, time.Since(began).Round(time.Millisecond))

	var bad []error
	for _, how := range []string{"after a crash", "after a clean stop"} {
		began := time.Now()
		s, err := open(o)
		if err != nil {
			return err
		}
		took := time.Since(began)
		peak, maps, files := resources()
		fmt.Printf("opened %s in %v; %d MiB resident at most, %d maps, %d descriptors\n", how, took.Round(time.Millisecond), peak, maps, files)
		if took > o.limit {
			bad = append(bad, fmt.Errorf("opening took %v, the limit is %v", took, o.limit))
		}
		if peak > o.memoryMiB {
			bad = append(bad, fmt.Errorf("%d MiB resident, the limit is %d", peak, o.memoryMiB))
		}
		if err := lookUp(s, o); err != nil {
			bad = append(bad, err)
		}
		began = time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		if err := s.Close(ctx); err != nil {
			bad = append(bad, err)
		}
		cancel()
		fmt.Printf("closed in %v\n", time.Since(began).Round(time.Millisecond))
	}
	return errors.Join(bad...)
}

// lookUp reads every queue.
func lookUp(s *system.Store, o options) error {
	for t := range o.topics {
		for q := range o.queues {
			key := messages.QueueKey{Topic: fmt.Sprint("Topic", t), QueueID: int32(q)}
			r, err := s.Get(context.Background(), messages.GetMessage{Queue: key, MaxMessages: o.messages})
			if err != nil {
				return err
			}
			n := len(r.Records)
			r.Release()
			if n != o.messages {
				return fmt.Errorf("%v has %d messages", key, n)
			}
		}
	}
	return nil
}

// resources returns the peak of resident memory in MiB, the number of maps, and of open descriptors.
func resources() (peakMiB int64, maps, files int) {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &peakMiB); err == nil {
			peakMiB >>= 10
		}
	}
	list, _ := os.ReadFile("/proc/self/maps")
	open, _ := os.ReadDir("/proc/self/fd")
	return peakMiB, strings.Count(string(list), "\n"), len(open)
}
