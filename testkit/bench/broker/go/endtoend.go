package main

import (
	"sync/atomic"
	"time"
)

// endToEnd: paced producer on one connection, a long-polling consumer on another; the latency is from just
// before the write of the send request to the message in hand at the consumer.
func (o *options) endToEnd() error {
	if err := createTopic(o.addr, o.topic, o.queues); err != nil {
		return err
	}
	if _, err := o.produce(o.warmup, 0, false, 1); err != nil {
		return err
	}
	time.Sleep(500 * time.Millisecond)
	consumers := *o
	consumers.conns = 1
	base := time.Now()
	h, acks := &hist{}, &hist{}
	var got atomic.Int64
	stop, err := consumers.startConsumers(&got, func(body []byte) {
		var v int64
		for _, x := range body[:8] {
			v = v<<8 | int64(x)
		}
		h.add(int64(time.Since(base)) - v)
	})
	if err != nil {
		return err
	}
	time.Sleep(300 * time.Millisecond)
	c, err := dial(o.addr)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Duration(o.seconds*float64(time.Second)) + patience))
	frames := make([]*frame, o.queues)
	for q := range frames {
		frames[q] = sendFrame(o.bin(), false, o.topic, q, max(o.body, 8), 1)
	}
	n := int(o.rate * o.seconds)
	sent := make([]int64, n)
	done := make(chan error, 1)
	var bad atomic.Int64
	go func() {
		var r response
		for range n {
			if err := c.next(&r); err != nil {
				done <- err
				return
			}
			if r.code != 0 {
				bad.Add(1)
			}
			acks.add(int64(time.Since(base)) - atomic.LoadInt64(&sent[r.opaque-opaqueBase]))
		}
		done <- nil
	}()
	m := o.meter()
	key := counter.Add(1) << 32
	var buf []byte
	t0 := time.Now()
	for i := range n {
		due := t0.Add(time.Duration(float64(i) * 1e9 / o.rate))
		if d := time.Until(due); d > 0 {
			time.Sleep(d)
		}
		now := time.Now()
		t := int64(now.Sub(base))
		atomic.StoreInt64(&sent[i], t)
		buf = frames[i%o.queues].appendTo(buf[:0], opaqueBase+uint32(i), key+uint64(i), now.UnixMilli(), t)
		if _, err := c.Write(buf); err != nil {
			return err
		}
	}
	el := time.Since(t0).Seconds()
	if err := <-done; err != nil {
		return err
	}
	for w := 0; w < 3000 && got.Load() < int64(n)-bad.Load(); w++ {
		time.Sleep(time.Millisecond)
	}
	l := o.line().put("rate", o.rate).put("body", o.body).put("msgs", got.Load()).put("failed", bad.Load()).put("seconds", el).
		put("msgs_per_s", float64(n)/el)
	m.report(l, int64(n))
	err = stop()
	l.lat(h).put("ack_p50_us", acks.us(.5)).put("ack_p99_us", acks.us(.99)).put("ack_p999_us", acks.us(.999)).print()
	return err
}

// flow: producers at full speed and consumers that follow them; the rate is what the consumers received.
func (o *options) flow() error {
	if err := createTopic(o.addr, o.topic, o.queues); err != nil {
		return err
	}
	if _, err := o.produce(o.warmup, 0, false, 1); err != nil {
		return err
	}
	time.Sleep(500 * time.Millisecond)
	consumers := *o
	consumers.conns = min(2, o.queues)
	var got atomic.Int64
	stop, err := consumers.startConsumers(&got, nil)
	if err != nil {
		return err
	}
	m := o.meter()
	t0 := time.Now()
	p, err := o.produce(o.seconds, 0, false, 1)
	if err != nil {
		return err
	}
	for w := 0; w < 30000 && got.Load() < p.msgs-p.failed; w++ {
		time.Sleep(time.Millisecond)
	}
	el := time.Since(t0).Seconds()
	l := o.line().put("conns", o.conns).put("inflight", o.inflight).put("body", o.body).put("msgs", p.msgs).put("failed", p.failed).
		put("received", got.Load()).put("seconds", el).put("msgs_per_s", float64(got.Load())/el).
		put("mb_per_s", float64(got.Load())*float64(o.body)/el/1e6).put("send_msgs_per_s", float64(p.msgs-p.failed)/p.seconds).lat(&p.h)
	m.report(l, got.Load()).print()
	return stop()
}
