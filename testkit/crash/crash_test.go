package crash_test

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/actormq/actormq/testkit/crash"
	"github.com/actormq/actormq/testkit/fixture"
)

// TestMain runs the package on one processor: it makes the order of what several actors do at once, and so a seed, repeatable.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	goleak.VerifyTestMain(m)
}

const generations = 5

// slower is how much of something is done under the race detector, which takes several times as long.
func slower(n int) int {
	if fixture.Raced {
		return n / 2
	}
	return n
}

// inBubble runs fn where time costs nothing.
func inBubble(t *testing.T, fn func(t *testing.T)) {
	t.Helper()
	// A collection would change the order of goroutines, and with it the run.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(2 << 30))
	fixture.Bubble(t, func(t *testing.T) {
		fn(t)
		<-time.After(time.Minute) // for the timers of the actor library
	})
}

func config(seed uint64) crash.Config {
	return crash.Config{
		Seed: seed, Generations: generations, Settle: synctest.Wait, Pause: func(d time.Duration) { <-time.After(d) },
	}
}

// TestCrashes (L18, L110) runs seeds until so many crashes have happened:
//
//	CRASHES=10000 go test -v -timeout 2h -run TestCrashes ./testkit/crash
//	CRASHES=10000 CRASH_FROM=500000 go test -v -timeout 2h -run TestCrashes ./testkit/crash    (other seeds)
//	CRASH_SEED=17 go test -v -run TestCrashes ./testkit/crash
func TestCrashes(t *testing.T) {
	want, seed := fixture.Number(t, "CRASHES", slower(500)), uint64(fixture.Number(t, "CRASH_SEED", 0))
	one := seed > 0
	if !one {
		seed = uint64(fixture.Number(t, "CRASH_FROM", 0))
	}
	sum := crash.Result{At: map[string]int{}}
	for began, chunk := time.Now(), 0; sum.Crashes < want && !t.Failed(); chunk++ {
		inBubble(t, func(t *testing.T) {
			for range 40 {
				if !one {
					seed++
				}
				r, err := crash.Run(config(seed))
				add(&sum, &r)
				if err != nil {
					t.Errorf("%v\nrepeat it: CRASH_SEED=%d go test -run TestCrashes ./testkit/crash\nthe end of its trace:\n%s", err, seed, tail(r.Trace.Lines()))
				}
				if err != nil || one || sum.Crashes >= want {
					return
				}
			}
		})
		if one {
			break
		}
		if chunk%5 == 4 {
			t.Logf("%d crashes of %d, seed %d, %v", sum.Crashes, want, seed, time.Since(began).Round(time.Second))
		}
	}
	if !t.Failed() {
		t.Logf("lost = 0")
	}
	t.Logf("%d crashes (%d kills, %d in recovery, %d with the transient store pool), %d messages put, %d with further queues, %d expired, %d by their topics, "+
		"%d not flushed or committed in time for the crash, as they may be; crashed at:",
		sum.Crashes, sum.Kills, sum.Recovery, sum.Pooled, sum.Put, sum.Further, sum.Expired, sum.TopicExpired, sum.Lost)
	for _, what := range slices.Sorted(maps.Keys(sum.At)) {
		t.Logf("  %6d  %s", sum.At[what], what)
	}
}

func add(sum, r *crash.Result) {
	sum.Crashes += r.Crashes
	sum.Kills += r.Kills
	sum.Recovery += r.Recovery
	sum.Put += r.Put
	sum.Lost += r.Lost
	sum.Expired += r.Expired
	sum.TopicExpired += r.TopicExpired
	sum.Pooled += r.Pooled
	sum.Further += r.Further
	for what, n := range r.At {
		sum.At[what] += n
	}
}

func tail(lines []string) string {
	return strings.Join(lines[max(0, len(lines)-number0("CRASH_TRACE", 60)):], "\n")
}

func number0(name string, byDefault int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return byDefault
}

// A seed gives the same disk operations again. The operating system may take the processor away in the middle of a step, and then
// actors run in another order: a busy machine does that to a few of many short runs, so nine of ten in a row have to be the same.
func TestASeedRepeats(t *testing.T) {
	if fixture.Raced {
		t.Skip("the race detector has goroutines run in a random order")
	}
	const most, window, same = 80, 10, 9
	for seed := uint64(1); seed <= 4; seed++ {
		var runs []string
		for len(runs) < window || repeated(runs[len(runs)-window:]) < same {
			if len(runs) == most {
				other := slices.IndexFunc(runs[most-window:], func(r string) bool { return r != runs[most-1] })
				t.Fatalf("seed %d: two of its runs:\n%s", seed, difference(runs[most-window+other], runs[most-1]))
			}
			runs = append(runs, trace(t, seed))
		}
	}
}

// trace is what a short run of a seed does.
func trace(t *testing.T, seed uint64) (lines string) {
	t.Helper()
	inBubble(t, func(t *testing.T) {
		c := config(seed)
		c.Steps, c.Generations = 60, 2
		r, err := crash.Run(c)
		if err != nil {
			t.Error(err)
		}
		lines = strings.Join(r.Trace.Lines(), "\n")
	})
	return lines
}

// repeated is how many of the runs are the same.
func repeated(runs []string) (most int) {
	count := map[string]int{}
	for _, r := range runs {
		count[r]++
		most = max(most, count[r])
	}
	return most
}

func difference(first, second string) string {
	a, b := strings.Split(first, "\n"), strings.Split(second, "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf("line %d differs:\n%s\n%v", i, strings.Join(a[max(0, i-3):i+1], "\n"), b[min(i, len(b)):min(i+1, len(b))])
		}
	}
	return "the same, or one goes on"
}
