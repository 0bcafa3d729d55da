package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments/verify"
	"github.com/actormq/actormq/testkit/golden"
)

func TestVerifyOnlyReadsAndSaysWhatItFound(t *testing.T) {
	for name, whole := range map[string]bool{"file-roll": true, "crash-torn-header": false, "truncated-consumequeue": false} {
		dir, params := unpack(t, golden.Load(name))
		before := snapshot(t, dir)
		stdout, _, err := run("store", "verify", dir, "--params", params, "--json")
		var r verify.Report
		require.NoError(t, json.Unmarshal([]byte(stdout), &r))
		require.Equal(t, whole, r.Whole)
		require.Equal(t, whole, err == nil)
		if !whole {
			require.Equal(t, 1, exitStatus(err), "%v", err)
			require.NotEmpty(t, r.Findings[0].File)
			text, _, _ := run("store", "verify", dir, "--params", params)
			require.Contains(t, text, r.Findings[0].String())
		}
		require.True(t, equalStates(before, snapshot(t, dir)), "the directory was changed")
	}
}

func TestVerifyThatCannotLook(t *testing.T) {
	dir, _ := unpack(t, golden.Load("file-roll"))
	params := filepath.Join(t.TempDir(), "params.json")
	require.NoError(t, os.WriteFile(params, []byte(`{"commitLogSize":65536,"consumeQueueSize":20000,"hashSlots":500,"indexNum":2000}`), 0o600))
	for _, args := range [][]string{{filepath.Join(dir, "nothing")}, {dir, "--params", params}} {
		_, _, err := run(append([]string{"store", "verify"}, args...)...)
		require.Error(t, err)
		require.Equal(t, 2, exitStatus(err), "%v", err)
	}
}

// TestRepair: the plan changes nothing; applied, it makes the store whole, keeps what it replaces, and nothing that was readable is
// lost.
func TestRepair(t *testing.T) {
	for _, name := range []string{"crc-corrupt-old-file", "cq-tail-zeroed", "truncated-index", "crash-garbage-tail"} {
		s := golden.Load(name)
		dir, params := unpack(t, s)
		before := snapshot(t, dir)
		plan, _, err := run("store", "repair", dir, "--params", params)
		require.NoError(t, err)
		asJSON, _, err := run("store", "repair", dir, "--params", params, "--json")
		require.NoError(t, err)
		var line repairLine
		require.NoError(t, json.Unmarshal([]byte(asJSON), &line))
		require.NotZero(t, line.Findings)
		require.False(t, line.Applied)
		require.Len(t, line.Steps, strings.Count(plan, "\n")-2, "all lines but the first and the last")
		require.True(t, equalStates(before, snapshot(t, dir)), "the directory was changed")

		done, _, err := run("store", "repair", dir, "--params", params, "--apply")
		require.NoError(t, err)
		require.Greater(t, len(done), len(plan), "the plan, and that it is done")
		_, _, err = run("store", "verify", dir, "--params", params)
		require.NoError(t, err)
		stdout, _, err := run("store", "dump", dir, "--json", "-", "--params", params)
		require.NoError(t, err)
		if name != "crc-corrupt-old-file" {
			require.Empty(t, s.Check([]byte(stdout)))
			continue
		}
		kept, err := filepath.Glob(filepath.Join(dir, "quarantine", "*", "commitlog-00000000000000010693"))
		require.NoError(t, err)
		require.Len(t, kept, 1, "the damaged record")
		require.Contains(t, done, filepath.Dir(kept[0]))
	}
}
