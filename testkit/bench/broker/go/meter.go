package main

import (
	"os"
	"strconv"
	"strings"
)

func (o *options) pidList() []string {
	if o.pids == "" {
		return nil
	}
	return strings.Split(o.pids, ",")
}

func procCPU(pids []string) float64 {
	var ticks float64
	for _, p := range pids {
		b, _ := os.ReadFile("/proc/" + p + "/stat")
		s := string(b)
		if i := strings.LastIndexByte(s, ')'); i > 0 {
			f := strings.Fields(s[i+1:])
			if len(f) > 13 {
				u, _ := strconv.ParseFloat(f[11], 64)
				v, _ := strconv.ParseFloat(f[12], 64)
				ticks += u + v
			}
		}
	}
	return ticks / 100
}

func procRSS(pids []string) (all, anon float64) {
	for _, p := range pids {
		a, b, _ := rssMB(p)
		all += a
		anon += b
	}
	return
}

type meter struct {
	o        *options
	srv, gen float64
}

func (o *options) meter() *meter { return &meter{o, procCPU(o.pidList()), cpuSeconds()} }

func (m *meter) report(l *line, msgs int64) *line {
	if p := m.o.pidList(); p != nil {
		srv := procCPU(p) - m.srv
		all, anon := procRSS(p)
		l.put("rss_mb", all).put("rss_anon_mb", anon).put("cpu_s", srv)
		if msgs > 0 {
			l.put("cpu_us_per_msg", srv*1e6/float64(msgs))
		}
	}
	return l.put("gen_cpu_s", cpuSeconds()-m.gen)
}
