package stats

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/messages"
)

// times counts how long requests took, as the original does (spec/store.md §14.1): the coarse buckets that tools print, over the
// last whole minute, and the fine ones from which the percentiles come. Adding is three atomic operations.
type times struct {
	max    atomic.Int64 // ms
	failed atomic.Int64
	coarse [len(coarseBounds) + 1]atomic.Int64
	fine   [fineBuckets + 1]atomic.Int64

	shown atomic.Pointer[shownTimes] // of the last whole minute
}

// shownTimes is what a minute's times were.
type shownTimes struct {
	coarse    [len(coarseBounds) + 1]int64
	p99, p999 float64 // ms
}

var (
	// coarseBounds are where the buckets end, in ms: the first holds what took none, the last what took longer.
	coarseBounds = [...]int64{1, 10, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000, 10_000}
	coarseNames  = [...]string{"[<=0ms]", "[0~10ms]", "[10~50ms]", "[50~100ms]", "[100~200ms]", "[200~500ms]", "[500ms~1s]",
		"[1~2s]", "[2~3s]", "[3~4s]", "[4~5s]", "[5~10s]", "[10s~]"}
	// fineSteps are runs of equally wide buckets: so many of so many ms.
	fineSteps  = [...]struct{ count, width int64 }{{20, 1}, {15, 2}, {10, 5}, {10, 10}, {6, 50}, {5, 100}, {9, 1000}}
	fineBounds = makeFineBounds()
)

const fineBuckets = 20 + 15 + 10 + 10 + 6 + 5 + 9

func makeFineBounds() (bounds [fineBuckets]int64) {
	at, i := int64(0), 0
	for _, s := range fineSteps {
		for range s.count {
			at += s.width
			bounds[i] = at
			i++
		}
	}
	return bounds
}

// add counts one request.
func (t *times) add(took time.Duration, ok bool) {
	ms := took.Milliseconds()
	if !ok {
		t.failed.Add(1)
	}
	t.coarse[bucket(coarseBounds[:], ms)].Add(1)
	t.fine[bucket(fineBounds[:], ms)].Add(1)
	for old := t.max.Load(); ms > old && !t.max.CompareAndSwap(old, ms); old = t.max.Load() {
	}
}

// bucket is the first one that ends above ms.
func bucket(bounds []int64, ms int64) int {
	for i, end := range bounds {
		if ms < end {
			return i
		}
	}
	return len(bounds)
}

// rotate shows what was counted, and begins anew.
func (t *times) rotate() {
	s := &shownTimes{}
	for i := range t.coarse {
		s.coarse[i] = t.coarse[i].Swap(0)
	}
	var fine [fineBuckets + 1]int64
	total := int64(0)
	for i := range t.fine {
		fine[i] = t.fine[i].Swap(0)
		total += fine[i]
	}
	s.p99, s.p999 = percentile(fine[:], total, 0.99), percentile(fine[:], total, 0.999)
	t.shown.Store(s)
}

// percentile interpolates inside the bucket that holds it, in ms; what is beyond the last bound counts as that.
func percentile(fine []int64, total int64, part float64) float64 {
	want, below, from := float64(total)*part, 0.0, 0.0
	for i, n := range fine {
		if i == len(fineBounds) || total == 0 {
			break
		}
		if below+float64(n) >= want {
			return from + (float64(fineBounds[i])-from)*(want-below)/float64(max(n, 1))
		}
		below, from = below+float64(n), float64(fineBounds[i])
	}
	return from
}

// distribution is the text of the coarse buckets: those of the last whole minute, of the first one as far as it has come.
func (t *times) distribution() string {
	var b strings.Builder
	s := t.shown.Load()
	for i, name := range coarseNames {
		n := t.coarse[i].Load()
		if s != nil {
			n = s.coarse[i]
		}
		fmt.Fprintf(&b, "%s:%d ", name, n)
	}
	return b.String()
}

func (t *times) percentiles() (p99, p999 float64) {
	if s := t.shown.Load(); s != nil {
		return s.p99, s.p999
	}
	return 0, 0
}

// PutTook counts how long a send took from its arrival to its answer, and what became of it.
func (s *Set) PutTook(took time.Duration, status messages.PutStatus) {
	if s != nil && s.items != nil {
		s.puts.add(took, status.Stored())
		s.sends.add(took, status)
	}
}

// GetTook counts how long a pull took that was answered at once.
func (s *Set) GetTook(took time.Duration) {
	if s != nil && s.items != nil {
		s.gets.add(took, true)
	}
}
