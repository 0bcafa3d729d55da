package stats

import (
	"fmt"
	"time"
)

// Totals are the broker's counters as GET_BROKER_RUNTIME_INFO shows them (spec/remoting.md §17.6). Rates are per second over
// the last 10 s, minute and 10 minutes, separated by spaces.
type Totals struct {
	BeganMs int64

	PutTimes, PutBytes, PutCalls int64
	PutYesterdayMorning          int64
	PutTodayMorning              int64
	GetTotal                     int64
	GetYesterdayMorning          int64
	GetTodayMorning              int64

	PutFailed            int64
	PutMaxMs, GetMaxMs   int64   // the longest that one took
	PutDistribution      string  // how many sends took how long, of the last minute
	PutLatency99, Put999 float64 // ms that 99 and 99.9 percent of them did not exceed

	PutRates, FoundRates, MissRates, GetRates, TransferredRates string
}

// Totals returns the counters of this moment.
func (s *Set) Totals() Totals {
	if s == nil || s.items == nil {
		none := rates(nil)
		return Totals{PutDistribution: (&times{}).distribution(), PutRates: none, FoundRates: none, MissRates: none, GetRates: none, TransferredRates: none}
	}
	put, get, found, miss := s.whole[brokerPut], s.whole[brokerGet], s.whole[getFound], s.whole[getMiss]
	day := s.day.Load()
	foundRates, missRates := found.rates(), miss.rates()
	p99, p999 := s.puts.percentiles()
	return Totals{
		PutFailed: s.puts.failed.Load(), PutMaxMs: s.puts.max.Load(), GetMaxMs: s.gets.max.Load(),
		PutDistribution: s.puts.distribution(), PutLatency99: p99, Put999: p999,
		BeganMs: s.began, PutTimes: put.count.Load(), PutBytes: put.bytes.Load(), PutCalls: put.times.Load(),
		PutYesterdayMorning: day.putYesterday, PutTodayMorning: day.putMidnight, GetTotal: get.count.Load(),
		GetYesterdayMorning: day.getYesterday, GetTodayMorning: day.getMidnight,
		PutRates: rates(put.rates()), FoundRates: rates(foundRates), MissRates: rates(missRates),
		GetRates: rates(sum(foundRates, missRates)), TransferredRates: rates(get.rates()),
	}
}

// rates are an item's counts per second over the last 10 s, minute and 10 minutes, or as long as it has counted.
func (it *item) rates() []float64 {
	list := *it.past.minute.Load()
	now := sample{atMs: time.Now().UnixMilli(), count: it.count.Load()}
	out := make([]float64, 0, 3)
	for _, span := range []time.Duration{samplePause, time.Minute, 10 * time.Minute} {
		from := list[0]
		for _, s := range list { // the newest that is old enough
			if s.atMs <= now.atMs-span.Milliseconds() {
				from = s
			}
		}
		out = append(out, between(from, now, false).TPS)
	}
	return out
}

func sum(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] + b[i]
	}
	return out
}

func rates(r []float64) string {
	if len(r) == 0 {
		r = []float64{0, 0, 0}
	}
	return fmt.Sprintf("%.4f %.4f %.4f", r[0], r[1], r[2])
}
