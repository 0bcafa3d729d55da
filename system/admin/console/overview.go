package console

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/admin/console/plot"
	"github.com/actormq/actormq/system/admin/history"
)

// tile is one number that matters.
type tile struct{ Label, Value, Note string }

// refusal is how often puts were refused for one reason.
type refusal struct {
	Why   string
	Count int64
}

type overview struct {
	Tiles   []tile
	Plots   []plot.Plot
	Spans   []spanLink
	Lags    []history.Lag // the longest
	Refused []refusal
	Loss    string
}

type spanLink struct {
	Text, Query string
	Current     bool
}

// spans are the times that plots can show.
var spans = []struct {
	text string
	span time.Duration
}{{"2m", 2 * time.Minute}, {"10m", 10 * time.Minute}, {"30m", 30 * time.Minute}}

// spanOf is the time that a request wants to see, and the links to the others.
func spanOf(r *http.Request) (time.Duration, []spanLink) {
	chosen := spans[1].span
	for _, s := range spans {
		if r.URL.Query().Get("span") == s.text {
			chosen = s.span
		}
	}
	links := make([]spanLink, len(spans))
	for i, s := range spans {
		links[i] = spanLink{Text: s.text, Query: "?span=" + s.text, Current: s.span == chosen}
	}
	return chosen, links
}

func (c *Console) overview(r *http.Request) (page, error) {
	span, links := spanOf(r)
	samples := c.history.Samples(span)
	stats := c.store.Stats()
	o := overview{Spans: links, Plots: plots(samples, span), Tiles: c.tiles(samples, &stats), Loss: c.lossWindow()}
	for why, n := range stats.Refused {
		if n > 0 {
			o.Refused = append(o.Refused, refusal{string(why), n})
		}
	}
	slices.SortFunc(o.Refused, func(a, b refusal) int { return cmp.Compare(a.Why, b.Why) })
	const shown = 5
	lags := history.Lags(c.b, "")
	slices.SortStableFunc(lags, func(a, b history.Lag) int { return cmp.Compare(b.Messages, a.Messages) })
	for _, l := range lags[:min(len(lags), shown)] {
		if l.Messages > 0 {
			o.Lags = append(o.Lags, l)
		}
	}
	return page{Template: "overview", Title: "Overview", Nav: "overview", Data: o}, nil
}

// lossWindow says what a crash takes.
func (c *Console) lossWindow() string {
	opt, st := c.store.Options(), c.store.Status()
	if opt.FlushDiskType == system.SyncFlush {
		return "A send is answered once it is on the disk: a power cut takes nothing that was acknowledged."
	}
	if opt.Pooled() {
		return fmt.Sprintf("A send is answered once it is in memory of the node: a killed process now would take %s, a power cut %s.",
			plot.Bytes.Text(float64(max(st.WrittenTo-st.CommittedTo, 0))), plot.Bytes.Text(float64(max(st.WrittenTo-st.FlushedTo, 0))))
	}
	return fmt.Sprintf("A send is answered once it is in the page cache, and flushed every %v. A killed process loses nothing; a power cut now would take %s.",
		opt.FlushInterval, plot.Bytes.Text(float64(max(st.WrittenTo-st.FlushedTo, 0))))
}

// recent is over how many samples the numbers of tiles are taken.
const recent = 6

// tiles are the numbers of the last seconds.
func (c *Console) tiles(samples []history.Sample, stats *system.Stats) []tile {
	st, began := c.store.Status(), time.UnixMilli(c.b.Stats.Totals().BeganMs)
	in, out, bytes, p50, p99, sync := math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN()
	if n := len(samples); n > 1 {
		from, to := samples[max(n-recent, 0)], samples[n-1]
		in, out, bytes = per(from, to, puts), per(from, to, gets), per(from, to, putBytes)
		p50, p99 = quantile(from.PutTimes, to.PutTimes, 0.5), quantile(from.PutTimes, to.PutTimes, 0.99)
		sync = quantile(from.Flushes, to.Flushes, 0.99)
	}
	return []tile{
		{"Messages in", plot.PerSecond.Text(in), plot.BytesRate.Text(bytes)},
		{"Messages out", plot.PerSecond.Text(out), count(stats.ParkedPulls) + " pulls wait"},
		{"Send, p99", plot.Seconds.Text(p99), "p50 " + plot.Seconds.Text(p50)},
		{"Sync, p99", plot.Seconds.Text(sync), count(stats.Flushes.Count) + " syncs"},
		{"Not flushed", plot.Bytes.Text(float64(max(st.WrittenTo-st.FlushedTo, 0))), c.store.Options().FlushDiskType.String()},
		{"Not dispatched", plot.Bytes.Text(float64(max(st.WrittenTo-st.DispatchedTo, 0))), count(stats.PendingPuts) + " puts in flight"},
		{"Connections", count(c.cfg.Node.Connections()), count(len(c.b.Clients.Groups())) + " groups online"},
		{"Running", ago(time.Since(began)), "since " + clock(began)[:16] + "Z"},
	}
}

func puts(s history.Sample) int64     { return s.Puts }
func gets(s history.Sample) int64     { return s.Gets }
func putBytes(s history.Sample) int64 { return s.PutBytes }

// per is how much a counter has grown in a second between two samples.
func per(from, to history.Sample, of func(history.Sample) int64) float64 {
	return float64(of(to)-of(from)) / to.At.Sub(from.At).Seconds()
}

// quantile is how many seconds a part of what was timed between two readings did not exceed, by the bounds of the buckets; not
// a number when nothing was timed.
func quantile(from, to actors.Times, q float64) float64 {
	n := to.Count - from.Count
	if n <= 0 {
		return math.NaN()
	}
	before := func(i int) int64 {
		if i < len(from.Below) {
			return to.Below[i] - from.Below[i]
		}
		return to.Below[i]
	}
	rank := q * float64(n)
	for i, bound := range to.Bounds {
		if below := float64(before(i)); below >= rank {
			low, under := 0.0, 0.0
			if i > 0 {
				low, under = to.Bounds[i-1].Seconds(), float64(before(i-1))
			}
			return low + (bound.Seconds()-low)*(rank-under)/max(below-under, 1)
		}
	}
	return to.Bounds[len(to.Bounds)-1].Seconds()
}

// slots is into how many parts a plot is divided.
const slots = 150

// plots draws what the samples say.
func plots(samples []history.Sample, span time.Duration) []plot.Plot {
	end := time.Now()
	if n := len(samples); n > 0 {
		end = samples[n-1].At
	}
	line := func(name string, of func(from, to history.Sample) float64) plot.Line {
		var times []time.Time
		var values []float64
		for i := 1; i < len(samples); i++ {
			times, values = append(times, samples[i].At), append(values, of(samples[max(i-recent/2, 0)], samples[i]))
		}
		return plot.Line{Name: name, Values: spread(min(slots, int(span/history.Interval)), end, span, times, values)}
	}
	rate := func(of func(history.Sample) int64) func(from, to history.Sample) float64 {
		return func(from, to history.Sample) float64 { return per(from, to, of) }
	}
	level := func(of func(history.Sample) int64) func(from, to history.Sample) float64 {
		return func(_, to history.Sample) float64 { return float64(of(to)) }
	}
	times := func(of func(history.Sample) actors.Times, q float64) func(from, to history.Sample) float64 {
		return func(from, to history.Sample) float64 { return quantile(of(from), of(to), q) }
	}
	sends := func(s history.Sample) actors.Times { return s.PutTimes }
	syncs := func(s history.Sample) actors.Times { return s.Flushes }
	return []plot.Plot{
		{ID: "messages", Title: "Messages", Unit: plot.PerSecond, Span: span, End: end, Lines: []plot.Line{line("in", rate(puts)), line("out", rate(gets))}},
		{ID: "send", Title: "Time of a send", Unit: plot.Seconds, Span: span, End: end, Lines: []plot.Line{line("p99", times(sends, 0.99)), line("p50", times(sends, 0.5))}},
		{ID: "bytes", Title: "Bytes stored", Unit: plot.BytesRate, Span: span, End: end, Lines: []plot.Line{line("in", rate(putBytes))}},
		{ID: "sync", Title: "Time of a sync", Unit: plot.Seconds, Span: span, End: end, Lines: []plot.Line{line("p99", times(syncs, 0.99)), line("p50", times(syncs, 0.5))}},
		{ID: "unflushed", Title: "Not flushed", Unit: plot.Bytes, Span: span, End: end, Lines: []plot.Line{line("bytes", level(func(s history.Sample) int64 { return s.Unflushed }))}},
		{ID: "behind", Title: "Puts in flight, and refused", Unit: plot.Count, Span: span, End: end, Lines: []plot.Line{
			line("puts", level(func(s history.Sample) int64 { return s.PendingPuts })), line("refused/s", rate(func(s history.Sample) int64 { return s.Refused })),
		}},
	}
}
