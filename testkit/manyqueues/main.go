package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/system"
)

type options struct {
	dir                      string
	topics, queues, messages int
	limit                    time.Duration
	memoryMiB                int64
	profile                  string
}

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", "", "folder to make the store in")
	flag.IntVar(&o.topics, "topics", 20_000, "topics")
	flag.IntVar(&o.queues, "queues", 5, "queues of each topic")
	flag.IntVar(&o.messages, "messages", 2, "messages of each queue")
	flag.DurationVar(&o.limit, "limit", 20*time.Second, "most that opening may take")
	flag.Int64Var(&o.memoryMiB, "memory", 1536, "most resident memory that opening may need, MiB")
	flag.StringVar(&o.profile, "cpuprofile", "", "file for a CPU profile of the first opening")
	flag.Parse()
	if err := measure(o); err != nil {
		fmt.Fprintln(os.Stderr, "manyqueues:", err)
		os.Exit(1)
	}
}

// build writes the files of a broker that was killed: records in the log, a unit for all but the last hundred of them, and the
// abort marker.
func build(o options) error {
	p := store.Defaults(o.dir)
	if err := os.MkdirAll(p.CommitLogDir, 0o755); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(p.CommitLogDir, segments.Name(0)))
	if err != nil {
		return err
	}
	at := messages.PhysicalOffset(0)
	units := make([][]byte, o.topics*o.queues)
	var buf []byte
	left := o.messages * o.topics * o.queues
	for n := range o.messages {
		for i := range units {
			m := messages.Message{Topic: topic(i / o.queues), QueueID: int32(i % o.queues), Body: fmt.Appendf(nil, "%d/%d", i, n)}
			r, err := record.Append(nil, &m)
			if err != nil {
				return err
			}
			record.SetPlace(r, messages.QueueOffset(n), at, time.Now().UnixMilli())
			buf = append(buf, r...)
			if left--; left >= 100 {
				units[i] = consumequeue.Unit{PhysicalOffset: at, Size: int32(len(r))}.AppendTo(units[i])
			}
			at += messages.PhysicalOffset(len(r))
		}
	}
	if int64(at) > p.SegmentBytes-record.BlankBytes {
		return errors.New("that is more than one segment of messages")
	}
	_, err = log.Write(buf)
	if err := errors.Join(err, log.Truncate(p.SegmentBytes), log.Close()); err != nil {
		return err
	}
	for i, u := range units {
		dir := filepath.Join(p.ConsumeQueueDir(), topic(i/o.queues), strconv.Itoa(i%o.queues))
		if err := errors.Join(os.MkdirAll(dir, 0o755), writeQueue(filepath.Join(dir, segments.Name(0)), u, p.ConsumeQueueFileBytes)); err != nil {
			return err
		}
	}
	return os.WriteFile(p.AbortPath(), nil, 0o644)
}

func topic(i int) string { return fmt.Sprint("Topic", i) }

func writeQueue(name string, units []byte, size int64) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(units)
	return errors.Join(err, f.Truncate(size), f.Close())
}

func measure(o options) error {
	if _, err := os.Stat(o.dir); err == nil {
		return fmt.Errorf("%s exists", o.dir)
	}
	began := time.Now()
	if err := build(o); err != nil {
		return fmt.Errorf("make the store: %w", err)
	}
	fmt.Printf("made %d queues with %d messages each in %v\n", o.topics*o.queues, o.messages, time.Since(began).Round(time.Millisecond))

	var bad []error
	for _, how := range []string{"after a crash", "after a clean stop"} {
		stop := profile(o.profile)
		o.profile = ""
		began, cpu := time.Now(), cpuTime()
		s, err := system.Open(system.Options{Dir: o.dir})
		if err != nil {
			return err
		}
		took := time.Since(began)
		cpu = cpuTime() - cpu
		stop()
		peak, maps, files := resources()
		fmt.Printf("opened %s in %v, %v of CPU; %d MiB resident at most, %d maps, %d descriptors\n",
			how, took.Round(time.Millisecond), cpu.Round(time.Millisecond), peak, maps, files)
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
			key := messages.QueueKey{Topic: topic(t), QueueID: int32(q)}
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

// cpuTime is what the process has used, in user mode and in the kernel.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
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

// profile begins a CPU profile; the result ends it.
func profile(name string) (stop func()) {
	if name == "" {
		return func() {}
	}
	f, err := os.Create(name)
	if err == nil {
		err = pprof.StartCPUProfile(f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "manyqueues:", err)
		return func() {}
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}
}
