package storebench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/cmd/actormq/internal/storebench"
)

// small is a store and a run of a size for tests.
var small = []string{
	"--seconds", "0.05", "--warmup", "0.01", "--body", "64", "--opt", "mappedFileSizeCommitLog=8388608",
	"--opt", "maxHashSlotNum=1000", "--opt", "maxIndexNum=4000",
}

func run(t *testing.T, dir string, args ...string) (map[string]any, error) {
	t.Helper()
	return runIn(t.Context(), t, dir, args...)
}

func runIn(ctx context.Context, t *testing.T, dir string, args ...string) (map[string]any, error) {
	t.Helper()
	var o storebench.Options
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	o.Flags(flags)
	require.NoError(t, flags.Parse(append(append(small[:len(small):len(small)], args...), "--dir", dir)))
	var out bytes.Buffer
	if err := storebench.Run(ctx, &o, &out); err != nil {
		return nil, err
	}
	line := map[string]any{}
	require.NoError(t, json.Unmarshal(out.Bytes(), &line), "one line of JSON: %q", out.String())
	return line, nil
}

func TestEachWorkloadPrintsItsLine(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		fields []string
	}{
		"put":         {[]string{"--threads", "2"}, []string{"drained_msgs_per_s", "p999_us", "cpu_us_per_msg", "rss_anon_mb"}},
		"put-async":   {[]string{"--mode", "async", "--window", "8"}, []string{"drained_msgs_per_s", "window"}},
		"put-sync":    {[]string{"--workload", "put-sync", "--outstanding", "4"}, []string{"outstanding"}},
		"put-batch":   {[]string{"--workload", "put-batch", "--batch", "4"}, []string{"batch"}},
		"put-topics":  {[]string{"--workload", "put-topics", "--topics", "10"}, []string{"topics"}},
		"get":         {[]string{"--workload", "get", "--count", "500"}, []string{"touch", "mb_per_s"}},
		"tail":        {[]string{"--workload", "tail", "--rate", "500"}, []string{"rate", "put_p50_us"}},
		"index-query": {[]string{"--workload", "index-query", "--count", "500"}, []string{"keys"}},
		"time-search": {[]string{"--workload", "time-search", "--count", "500"}, []string{"keys"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			line, err := run(t, dir, c.args...)
			require.NoError(t, err)
			for _, field := range append(c.fields, "peer", "workload", "msgs_per_s", "p50_us") {
				require.Contains(t, line, field)
			}
			require.Positive(t, line["msgs"])
			if failed, ok := line["failed"]; ok {
				require.Zero(t, failed, "every put is stored, every key is found")
			}
			_, err = os.Stat(dir)
			require.ErrorIs(t, err, os.ErrNotExist, "the directory is removed")
		})
	}
}

func TestBadArgumentsAreNamed(t *testing.T) {
	for _, args := range [][]string{
		{"--mode", "both"}, {"--threads", "0"}, {"--exit", "loud"}, {"--workload", "dance"}, {"--opt", "noSuchKey=1"}, {"--opt", "x"},
	} {
		_, err := run(t, filepath.Join(t.TempDir(), "store"), args...)
		require.Error(t, err, "%v", args)
	}
}

// TestARunThatIsEndedEndsAtOnce: Ctrl-C in an hour's run, and nothing is left of it.
func TestARunThatIsEndedEndsAtOnce(t *testing.T) {
	for _, args := range [][]string{{}, {"--mode", "async"}, {"--workload", "put-batch"}} {
		dir := filepath.Join(t.TempDir(), "store")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		began := time.Now()
		_, err := runIn(ctx, t, dir, append(args, "--warmup", "3600")...)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Less(t, time.Since(began), time.Minute)
		require.NoDirExists(t, dir)
	}
}

// TestABenchRemovesNothingElse: its folder is removed before the run, and it may be that of a node by mistake.
func TestABenchRemovesNothingElse(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "commitlog")
	require.NoError(t, os.WriteFile(mine, nil, 0o600))
	for _, workload := range []string{"put", "recover", "start", "get"} {
		_, err := run(t, dir, "--workload", workload)
		require.ErrorIs(t, err, storebench.ErrArguments)
		require.ErrorContains(t, err, dir)
		require.FileExists(t, mine)
	}
	require.NoError(t, os.Remove(mine))
	for range 2 { // an empty one is taken, and what was kept
		_, err := run(t, dir, "--keep")
		require.NoError(t, err)
		require.DirExists(t, dir)
	}
}
