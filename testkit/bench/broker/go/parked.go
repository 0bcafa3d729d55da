package main

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// parked holds -inflight pulls on each of -conns connections and measures the server that has nothing to tell them.
func (o *options) parked() error {
	if err := createTopic(o.addr, o.topic, o.queues); err != nil {
		return err
	}
	conns := make([]*conn, 0, o.conns)
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	suspend := int(1000 * (o.warmup + o.seconds + 30))
	for n := range o.conns {
		c, err := dial(o.addr)
		if err != nil {
			return err
		}
		conns = append(conns, c)
		var buf []byte
		for i := range o.inflight {
			q := (n*o.inflight + i) % o.queues
			buf = pullFrame(o.bin(), o.topic, q, 0, o.pull, suspend).appendTo(buf, opaqueBase+uint32(i), 0, 0, 0)
		}
		if _, err := c.Write(buf); err != nil {
			return err
		}
	}
	time.Sleep(time.Duration(o.warmup * float64(time.Second)))
	cpu, began := procCPU(o.pidList()), time.Now()
	time.Sleep(time.Duration(o.seconds * float64(time.Second)))
	used, lasted := procCPU(o.pidList())-cpu, time.Since(began).Seconds()
	for n, c := range conns { // a pull that was answered early is not parked
		c.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, err := c.r.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("connection %d: a pull was answered or the connection ended (%v)", n, err)
		}
	}
	all, anon := procRSS(o.pidList())
	o.line().put("conns", o.conns).put("inflight", o.inflight).put("parked", o.conns*o.inflight).put("seconds", lasted).
		put("idle_cpu", used/lasted).put("rss_mb", all).put("rss_anon_mb", anon).print()
	return nil
}
