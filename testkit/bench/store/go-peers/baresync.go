package main

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// bareSync: callers append to a buffer and wait; one goroutine writes what is there, into blocks that were written before, and syncs.
func bareSync(o *options) error {
	f, err := os.Create(filepath.Join(o.dir, "sync"))
	if err != nil {
		return err
	}
	for range o.fileMB {
		for range 4 {
			if _, err := f.Write(rawZeros[:]); err != nil {
				return err
			}
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	g := &group{f: f, size: int64(o.fileMB) << 20, wake: make(chan struct{}, 1)}
	go g.commit()
	n := max(1, o.outstanding)
	record := bareRecord(o)
	var h hist
	var mu sync.Mutex
	var sum atomic.Int64
	var wg sync.WaitGroup
	c0, t0 := cpuSeconds(), time.Now()
	end := t0.Add(time.Duration(o.seconds * float64(time.Second)))
	for range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var mine hist
			answer := make(chan error, 1)
			for began := time.Now(); began.Before(end); began = time.Now() {
				g.put(record, answer)
				if err := <-answer; err != nil {
					panic(err)
				}
				mine.add(time.Since(began).Nanoseconds())
				sum.Add(1)
			}
			mu.Lock()
			h.merge(&mine)
			mu.Unlock()
		}()
	}
	wg.Wait()
	el := time.Since(t0).Seconds()
	report(o, "bare", o.workload).put("outstanding", n).put("body", o.body).put("msgs", sum.Load()).put("seconds", el).
		put("msgs_per_s", float64(sum.Load())/el).put("drained_msgs_per_s", float64(sum.Load())/el).lat(&h).cpu(cpuSeconds()-c0, sum.Load()).print()
	return nil
}

// group is a group commit: what came while a sync ran goes with the next one.
type group struct {
	f         *os.File
	size, pos int64
	wake      chan struct{}
	mu        sync.Mutex
	buf       []byte
	waiting   []chan error
}

func (g *group) put(b []byte, answer chan error) {
	g.mu.Lock()
	g.buf = append(g.buf, b...)
	g.waiting = append(g.waiting, answer)
	g.mu.Unlock()
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

func (g *group) commit() {
	var buf []byte
	var waiting []chan error
	for range g.wake {
		g.mu.Lock()
		buf, g.buf = g.buf, buf[:0]
		waiting, g.waiting = g.waiting, waiting[:0]
		g.mu.Unlock()
		if len(waiting) == 0 {
			continue
		}
		if g.pos+int64(len(buf)) > g.size {
			g.pos = 0
		}
		_, err := g.f.WriteAt(buf, g.pos)
		g.pos += int64(len(buf))
		if err == nil {
			err = unix.Fdatasync(int(g.f.Fd()))
		}
		for _, w := range waiting {
			w <- err
		}
	}
}
