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
)

// TestMain runs the package on one processor: it makes the order of what several actors do at once, and so a seed, repeatable.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	goleak.VerifyTestMain(m)
}

const generations = 5

// number reads a number from the environment.
func number(t *testing.T, name string, byDefault int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return byDefault
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// inBubble runs fn where time costs nothing.
func inBubble(t *testing.T, fn func(t *testing.T)) {
	t.Helper()
	// What earlier bubbles have left in pools (sync.Pool) must not come into this one.
	runtime.GC()
	runtime.GC()
	// A collection would change the order of goroutines, and with it the run.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(2 << 30))
	synctest.Test(t, func(t *testing.T) {
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
//	CRASH_SEED=17 go test -v -run TestCrashes ./testkit/crash
func TestCrashes(t *testing.T) {
	want, seed := number(t, "CRASHES", 500), uint64(number(t, "CRASH_SEED", 0))
	one := seed > 0
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
	t.Logf("%d crashes (%d kills, %d in recovery), %d messages put, %d expired, %d lost within the flush window; crashed at:", sum.Crashes, sum.Kills,
		sum.Recovery, sum.Put, sum.Expired, sum.Lost)
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

// A seed gives the same disk operations again, unless the machine is so busy that the operating system takes the processor
// away in the middle of a step; then the trace is what there is.
func TestASeedRepeats(t *testing.T) {
	var differ string
	for range 6 {
		first, second := traces(t), traces(t)
		if differ = difference(first, second); differ == "" {
			return
		}
	}
	t.Fatal(differ)
}

// traces runs some seeds.
func traces(t *testing.T) (lines []string) {
	t.Helper()
	inBubble(t, func(t *testing.T) {
		for seed := uint64(1); seed <= 2; seed++ {
			r, err := crash.Run(config(seed))
			if err != nil {
				t.Error(err)
			}
			lines = append(lines, r.Trace.Lines()...)
		}
	})
	return lines
}

func difference(a, b []string) string {
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf("line %d differs:\n%s\n%v", i, strings.Join(a[max(0, i-3):i+1], "\n"), b[min(i, len(b)):min(i+1, len(b))])
		}
	}
	return ""
}
