package main

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

type result struct {
	msgs, failed int64
	seconds      float64
	h            hist
}

var counter atomic.Uint64

// patience is how long a server may say nothing at all: one that is dead, and whose connection is not closed, is not waited for.
var patience = 20 * time.Second

// patient gives the server its time anew, once a second.
func (c *conn) patient(now time.Time) {
	if now.Sub(c.since) > time.Second {
		c.since = now
		c.SetDeadline(now.Add(patience))
	}
}

// produce sends for the given time (or count) on o.conns connections with o.inflight requests each.
// All slots freed by one read are refilled by one write.
func (o *options) produce(seconds float64, limit int64, oneway bool, batch int) (*result, error) {
	res := &result{}
	var mu sync.Mutex
	var firstErr error
	var wg sync.WaitGroup
	var sum, failed atomic.Int64
	t0 := time.Now()
	end := t0.Add(time.Duration(seconds * float64(time.Second)))
	per := int64(1) << 62
	if limit > 0 {
		per = max(1, limit/int64(o.conns))
	}
	for c := range o.conns {
		wg.Add(1)
		go func() {
			defer wg.Done()
			h := &hist{}
			n, bad, err := o.producer(c, end, per, oneway, batch, h)
			sum.Add(n)
			failed.Add(bad)
			mu.Lock()
			defer mu.Unlock()
			res.h.merge(h)
			if err != nil && firstErr == nil {
				firstErr = err
			}
		}()
	}
	wg.Wait()
	res.seconds = time.Since(t0).Seconds()
	res.msgs, res.failed = sum.Load(), failed.Load()
	return res, firstErr
}

func (o *options) producer(id int, end time.Time, per int64, oneway bool, batch int, h *hist) (n, bad int64, err error) {
	c, err := dial(o.addr)
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	frames := make([]*frame, o.queues)
	for q := range frames {
		frames[q] = sendFrame(o.bin(), oneway, o.topic, q, o.body, batch)
	}
	key := counter.Add(1) << 32
	queue := id
	base := time.Now()
	if oneway {
		buf := make([]byte, 0, 256<<10)
		for now := time.Now(); n < per && now.Before(end); now = time.Now() {
			c.patient(now)
			buf = buf[:0]
			born := now.UnixMilli()
			for len(buf) < 64<<10 && n < per {
				buf = frames[queue%o.queues].appendTo(buf, opaqueBase+uint32(n), key, born, 0)
				key += uint64(batch)
				queue++
				n += int64(batch)
			}
			if _, err := c.Write(buf); err != nil {
				return n, bad, err
			}
		}
		return n, bad, nil
	}
	window := o.inflight
	sent := make([]int64, window)
	free := make([]uint32, window)
	for i := range free {
		free[i] = uint32(i)
	}
	buf := make([]byte, 0, 1<<20)
	var r response
	outstanding := 0
	complained := false
	// One goroutine does both directions: write what the window allows, then read at least one response
	// and everything else that already arrived.
	for {
		now := time.Now()
		c.patient(now)
		if len(free) > 0 && n < per && now.Before(end) {
			buf = buf[:0]
			born, t := now.UnixMilli(), int64(now.Sub(base))
			for len(free) > 0 && n < per && len(buf) < 128<<10 {
				s := free[len(free)-1]
				free = free[:len(free)-1]
				sent[s] = t
				buf = frames[queue%o.queues].appendTo(buf, opaqueBase+s, key, born, 0)
				key += uint64(batch)
				queue++
				n += int64(batch)
				outstanding++
			}
			if _, err := c.Write(buf); err != nil {
				return n, bad, err
			}
		} else if outstanding == 0 {
			return n, bad, nil
		}
		for first := true; outstanding > 0 && (first || c.r.Buffered() >= 4); first = false {
			if err := c.next(&r); err != nil {
				return n, bad, err
			}
			s := r.opaque - opaqueBase
			if int(s) >= window {
				continue
			}
			h.add(int64(time.Since(base)) - sent[s])
			if r.code != 0 {
				if !complained {
					complained = true
					fmt.Fprintf(os.Stderr, "send: code %d: %s\n", r.code, r.remark())
				}
				bad += int64(batch)
			}
			free = append(free, s)
			outstanding--
		}
	}
}

func (o *options) send() error {
	if err := createTopic(o.addr, o.topic, o.queues); err != nil {
		return err
	}
	c, err := dial(o.addr)
	if err != nil {
		return err
	}
	defer c.Close()
	oneway := o.workload == "oneway"
	batch := 1
	if o.workload == "batch" {
		batch = o.batch
	}
	// settle waits until the server has made everything it accepted visible, and returns how much that is
	settle := func() (int64, float64, error) {
		t0 := time.Now()
		last, same := int64(-1), time.Now()
		for {
			v, err := sumOffsets(c, o.topic, o.queues)
			if err != nil {
				return 0, 0, err
			}
			if v != last {
				last, same = v, time.Now()
			} else if time.Since(same) > 300*time.Millisecond {
				return v, same.Sub(t0).Seconds(), nil
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	if _, err := o.produce(o.warmup, 0, oneway, batch); err != nil {
		return err
	}
	before, _, err := settle()
	if err != nil {
		return err
	}
	m := o.meter()
	p, err := o.produce(o.seconds, 0, oneway, batch)
	if err != nil {
		return err
	}
	after, drain, err := settle()
	if err != nil {
		return err
	}
	visible := after - before
	ok := p.msgs - p.failed
	rate := float64(ok) / p.seconds
	if oneway {
		rate = float64(visible) / (p.seconds + drain)
	}
	l := o.line().put("conns", o.conns).put("inflight", o.inflight).put("body", o.body)
	if batch > 1 {
		l.put("batch", batch)
	}
	l.put("msgs", p.msgs).put("failed", p.failed).put("visible", visible).put("seconds", p.seconds).
		put("msgs_per_s", rate).put("mb_per_s", rate*float64(o.body)/1e6).
		put("drained_msgs_per_s", float64(visible)/(p.seconds+drain)).lat(&p.h)
	m.report(l, visible).print()
	return nil
}
