package storebench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// histogram counts latencies in nanoseconds, up to a minute, with three significant digits.
type histogram struct{ *hdrhistogram.Histogram }

func newHistogram() histogram {
	return histogram{hdrhistogram.New(1, time.Minute.Nanoseconds(), 3)}
}

func (h histogram) add(d time.Duration) {
	_ = h.RecordValue(min(max(d.Nanoseconds(), 1), time.Minute.Nanoseconds())) // in range, so it can't fail
}

func (h histogram) us(percent float64) float64 { return float64(h.ValueAtPercentile(percent)) / 1e3 }

// report is one line of results.
type report map[string]any

// latencies adds the percentiles in microseconds, with a prefix to their names.
func (r report) latencies(prefix string, h histogram) {
	if h.TotalCount() == 0 {
		return
	}
	r[prefix+"p50_us"], r[prefix+"p99_us"], r[prefix+"p999_us"] = h.us(50), h.us(99), h.us(99.9)
	r[prefix+"max_us"] = float64(h.Max()) / 1e3
}

// rate adds messages, time and rate.
func (r report) rate(msgs int64, took float64, body int) {
	r["msgs"], r["seconds"] = msgs, took
	r["msgs_per_s"] = float64(msgs) / took
	if body > 0 {
		r["mb_per_s"] = float64(msgs) * float64(body) / took / 1e6
	}
}

// process adds the memory of this process and the CPU time that the measured part took.
func (r report) process(cpu float64, msgs int64) {
	m := memory()
	r["rss_mb"], r["rss_anon_mb"], r["rss_file_mb"] = m.all, m.anonymous, m.file
	r["cpu_s"] = cpu
	if msgs > 0 {
		r["cpu_us_per_msg"] = cpu * 1e6 / float64(msgs)
	}
}

func (r report) print(w io.Writer) error {
	for k, v := range r {
		if f, ok := v.(float64); ok {
			r[k] = math.Round(f*1e3) / 1e3
		}
	}
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s\n", line)
	return err
}

// cpuSeconds is the CPU time that this process has used.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
