package bench_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
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
