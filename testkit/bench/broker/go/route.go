package main

import (
	"time"
)

// route measures GET_ROUTEINFO_BY_TOPIC against -addr (a name server, or a node that answers it).
func (o *options) route() error {
	run := func(seconds float64) (*result, error) {
		res := &result{}
		c, err := dial(o.addr)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		f := encode(o.bin(), codeRoute, 0, []field{{"topic", o.topic}}, nil)
		t0 := time.Now()
		for time.Since(t0).Seconds() < seconds {
			a := time.Now()
			r, err := c.call(f)
			if err != nil {
				return nil, err
			}
			if r.code != 0 {
				res.failed++
			}
			res.msgs++
			res.h.add(int64(time.Since(a)))
		}
		res.seconds = time.Since(t0).Seconds()
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
	l := o.line().put("msgs", p.msgs).put("failed", p.failed).put("seconds", p.seconds).put("msgs_per_s", float64(p.msgs)/p.seconds).lat(&p.h)
	m.report(l, p.msgs).print()
	return nil
}
