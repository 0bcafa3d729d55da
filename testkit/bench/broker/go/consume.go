package main

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// consumer pulls its queues on one connection, one outstanding pull for each queue, until stop.
func (o *options) consumer(queues []int, from []int64, suspend int, stop *atomic.Bool, wrap bool, h *hist, n *atomic.Int64,
	fn func(body []byte)) error {
	c, err := dial(o.addr)
	if err != nil {
		return err
	}
	defer c.Close()
	next := make(map[int]int64)
	sent := make(map[int]time.Time)
	var buf []byte
	request := func(q int) {
		sent[q] = time.Now()
		buf = pullFrame(o.bin(), o.topic, q, next[q], o.pull, suspend).appendTo(buf, opaqueBase+uint32(q), 0, 0, 0)
	}
	for i, q := range queues {
		next[q] = from[i]
		request(q)
	}
	if _, err := c.Write(buf); err != nil {
		return err
	}
	var r response
	for !stop.Load() {
		c.SetReadDeadline(time.Now().Add(time.Second))
		if err := c.next(&r); err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() && c.r.Buffered() == 0 {
				continue
			}
			return err
		}
		q := int(r.opaque - opaqueBase)
		if r.code == 0 {
			last := int64(-1)
			got := eachMessage(r.body, func(off int64, body []byte) {
				last = off
				if fn != nil {
					fn(body)
				}
			})
			n.Add(int64(got))
			if h != nil {
				h.add(int64(time.Since(sent[q])))
			}
			next[q] = last + 1
		} else if wrap && next[q] > 0 {
			next[q] = 0
		} else if r.code != 19 && r.code != 20 {
			return fmt.Errorf("pull: code %d: %s", r.code, r.remark())
		}
		buf = buf[:0]
		request(q)
		if _, err := c.Write(buf); err != nil {
			return err
		}
	}
	return nil
}

func (o *options) split() [][]int {
	s := make([][]int, o.conns)
	for q := range o.queues {
		s[q%o.conns] = append(s[q%o.conns], q)
	}
	return s
}

func (o *options) pullBacklog() error {
	if o.conns > o.queues {
		return fmt.Errorf("more connections than queues")
	}
	if err := createTopic(o.addr, o.topic, o.queues); err != nil {
		return err
	}
	if o.count == 0 {
		o.count = 500_000
	}
	fill := *o
	fill.conns, fill.inflight = 2, 64
	if p, err := fill.produce(3600, int64(o.count), false, 1); err != nil {
		return err
	} else if p.failed > int64(o.count)/2 {
		return fmt.Errorf("fill: %d of %d failed", p.failed, p.msgs)
	}
	time.Sleep(time.Second)
	run := func(seconds float64) (*result, error) {
		res := &result{}
		var n atomic.Int64
		var stop atomic.Bool
		var wg sync.WaitGroup
		hs := make([]hist, o.conns)
		errs := make([]error, o.conns)
		t0 := time.Now()
		for i, qs := range o.split() {
			wg.Add(1)
			go func() {
				defer wg.Done()
				errs[i] = o.consumer(qs, make([]int64, len(qs)), 0, &stop, true, &hs[i], &n, nil)
			}()
		}
		time.Sleep(time.Duration(seconds * float64(time.Second)))
		res.msgs, res.seconds = n.Load(), time.Since(t0).Seconds()
		stop.Store(true)
		wg.Wait()
		for i := range hs {
			res.h.merge(&hs[i])
			if errs[i] != nil {
				return nil, errs[i]
			}
		}
		return res, nil
	}
	if _, err := run(o.warmup); err != nil {
		return err
	}
	m := o.meter()
	p, err := run(o.seconds)
	if err != nil {
		return err
	}
	l := o.line().put("conns", o.conns).put("queues", o.queues).put("body", o.body).put("batch", o.pull).put("msgs", p.msgs).
		put("seconds", p.seconds).put("msgs_per_s", float64(p.msgs)/p.seconds).
		put("mb_per_s", float64(p.msgs)*float64(o.body)/p.seconds/1e6).lat(&p.h)
	m.report(l, p.msgs).print()
	return nil
}

// startConsumers long-polls every queue from its end.
func (o *options) startConsumers(n *atomic.Int64, fn func(body []byte)) (stop func() error, err error) {
	c, err := dial(o.addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var halt atomic.Bool
	var wg sync.WaitGroup
	var mu sync.Mutex
	var first error
	for _, qs := range o.split() {
		if len(qs) == 0 {
			continue
		}
		from := make([]int64, len(qs))
		for i, q := range qs {
			if from[i], err = maxOffset(c, o.topic, q); err != nil {
				return nil, err
			}
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := o.consumer(qs, from, 15000, &halt, false, nil, n, fn); err != nil {
				mu.Lock()
				first = err
				mu.Unlock()
			}
		}()
	}
	return func() error {
		halt.Store(true)
		wg.Wait()
		return first
	}, nil
}
