package bench_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWhoEndsTheBenchEndsWhatItRuns: servers and commands have process groups of their own, and folders of gigabytes.
func TestWhoEndsTheBenchEndsWhatItRuns(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not here")
	}
	script, err := filepath.Abs("compare.py")
	require.NoError(t, err)
	for _, how := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		work := t.TempDir()
		held, holder, err := os.Pipe() // what runs has the other end, until it ends
		require.NoError(t, err)
		c := exec.Command(script, "--rounds", "1", "--work", work, "--case", "a: x", "--settle", "0",
			"--server", "s=exec sleep 600", "--peer", "s=mkdir -p {dir}; touch {dir}/x; echo runs >&2; exec sleep 600")
		c.Stderr = holder
		require.NoError(t, c.Start())
		require.NoError(t, holder.Close())
		require.NoError(t, held.SetReadDeadline(time.Now().Add(time.Minute)))
		said := bufio.NewScanner(held)
		require.True(t, said.Scan(), "%v", said.Err())
		require.Equal(t, "runs", said.Text())
		require.NoError(t, c.Process.Signal(how))
		for said.Scan() { // until nobody has the pipe any more
		}
		require.NoError(t, said.Err(), "%v: something still runs", how)
		require.Error(t, c.Wait())
		require.Equal(t, 130, c.ProcessState.ExitCode())
		left, err := os.ReadDir(work)
		require.NoError(t, err)
		require.Empty(t, left)
		require.NoError(t, held.Close())
	}
}

// TestACommandBeginsWithWarmMemory: what was held for it is given back before it runs, and the results are the same.
func TestACommandBeginsWithWarmMemory(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not here")
	}
	if runtime.GOOS != "linux" {
		t.Skip("/proc is not here")
	}
	// The parent's resident memory, in pages, is what the command reports.
	const command = `printf '{"workload":"%s","pages":%s}\n' "{args}" "$(cut -d' ' -f2 /proc/$PPID/statm)"`
	out := filepath.Join(t.TempDir(), "out.jsonl")
	c := exec.Command("./compare.py", "--rounds", "1", "--warm-memory", "256", "--out", out, "--work", t.TempDir(), "--case", "a: x", "--peer", "p="+command)
	said, err := c.CombinedOutput()
	require.NoError(t, err, "%s", said)
	b, err := os.ReadFile(out)
	require.NoError(t, err)
	var line struct {
		Workload string
		Pages    int64
	}
	require.NoError(t, json.Unmarshal(b, &line), "%s", b)
	require.Equal(t, "x", line.Workload)
	require.Positive(t, line.Pages)
	require.Less(t, line.Pages*int64(os.Getpagesize()), int64(200<<20), "given back before the command runs")
	peak := c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss // KiB on Linux
	require.Greater(t, peak, int64(256<<10), "was held before")
}

// TestAFullDiskIsTold: what a broker deletes while it is measured costs it something.
func TestAFullDiskIsTold(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not here")
	}
	for full, told := range map[string]bool{"-1": true, "2": false} {
		c := exec.Command("python3", "-B", "-c", "import compare; compare.FULL = "+full+"; compare.tell_full('.', 'a row')")
		said, err := c.CombinedOutput()
		require.NoError(t, err, "%s", said)
		require.Equal(t, told, len(said) > 0, "%s", said)
	}
}

// TestTheTwoModulesPrintAlike: the generator and the peers in Go are modules of their own, so that the one needs nothing but Go; what both print, and how
// both count times, is the same two files.
func TestTheTwoModulesPrintAlike(t *testing.T) {
	for _, name := range []string{"hist.go", "out.go"} {
		one, err := os.ReadFile(filepath.Join("broker/go", name))
		require.NoError(t, err)
		other, err := os.ReadFile(filepath.Join("store/go-peers", name))
		require.NoError(t, err)
		require.Equal(t, string(one), string(other), name)
	}
}
