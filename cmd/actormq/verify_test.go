package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/cmd/actormq/internal/storedump"
	"github.com/actormq/actormq/segments/verify"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/golden"
)

// TestVerifyOfGoldenStores: the report says of each what is damaged in it, where it is whole what RocketMQ reads; text and status say the same,
// and the directory stays as it was.
func TestVerifyOfGoldenStores(t *testing.T) {
	for _, name := range golden.Names() {
		t.Run(name, func(t *testing.T) {
			s := golden.Load(name)
			dir, params := unpack(t, s)
			before := snapshot(t, dir)
			stdout, _, err := run("store", "verify", dir, "--params", params, "--json")
			text, _, again := run("store", "verify", dir, "--params", params)
			require.True(t, equalStates(before, snapshot(t, dir)), "the directory was changed")
			var r verify.Report
			require.NoError(t, json.Unmarshal([]byte(stdout), &r))
			require.Contains(t, text, s.Damage())
			for _, f := range append(r.Findings, r.NextStart...) {
				require.Contains(t, text, f.String())
			}
			require.Equal(t, s.Completes(), strings.Contains(text, "not damaged, the next start completes"))
			require.Equal(t, s.Damage() == "" || s.Completes(), r.Whole)
			if !r.Whole {
				require.NotEmpty(t, r.Findings[0].File)
				require.Equal(t, []int{statusDamage, statusDamage}, []int{exitStatus(err), exitStatus(again)})
				return
			}
			require.NoError(t, errors.Join(err, again))
			if len(s.Expected()) == 0 || s.Completes() {
				return
			}
			var want struct {
				CommitLog struct{ MinOffset, MaxOffset int64 }
				Queues    []struct{ MinOffset, MaxOffset int64 }
				Records   []struct{ Kind string }
			}
			require.NoError(t, json.Unmarshal(s.Expected(), &want))
			var units, records int64
			for _, q := range want.Queues {
				units += q.MaxOffset - q.MinOffset
			}
			for _, x := range want.Records {
				if x.Kind == "msg" {
					records++
				}
			}
			if r.LogMin > 0 {
				units = r.Units // with those of messages that have expired
			}
			require.Equal(t, []int64{want.CommitLog.MinOffset, want.CommitLog.MaxOffset, records, int64(len(want.Queues)), units},
				[]int64{r.LogMin, r.LogEnd, r.Records, r.Queues, r.Units})
		})
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

// TestAPlanBuildsNoIndexInMemory: that it would be built is known without doing it, in 420 MB a file.
func TestAPlanBuildsNoIndexInMemory(t *testing.T) {
	dir, params := unpack(t, golden.Load("file-roll"))
	sizes, err := storedump.ReadParams(params)
	require.NoError(t, err)
	sizes.HashSlots, sizes.IndexNum = 0, 0 // those of a store in production
	text, err := json.Marshal(sizes)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(params, text, 0o600))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "index")))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	plan, _, err := run("store", "repair", dir, "--params", params)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Contains(t, plan, "index built: 0..")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20))
}

// TestRepairOfAStoreThatIsInUse is refused before anything is said or done.
func TestRepairOfAStoreThatIsInUse(t *testing.T) {
	dir, params := unpack(t, golden.Load("crash-garbage-tail"))
	lock, err := vfs.New().Lock(filepath.ToSlash(filepath.Join(dir, "lock")))
	require.NoError(t, err)
	before := snapshot(t, dir)
	stdout, stderr, err := run("store", "repair", dir, "--params", params, "--apply")
	require.ErrorIs(t, err, vfs.ErrLocked)
	require.ErrorContains(t, err, "a node or another program has this store open")
	require.Empty(t, stdout+stderr)
	require.True(t, equalStates(before, snapshot(t, dir)), "the directory was changed")
	_, _, err = run("store", "repair", dir, "--params", params)
	require.NoError(t, err, "the plan alone")
	require.NoError(t, lock.Close())
	_, _, err = run("store", "repair", dir, "--params", params, "--apply")
	require.NoError(t, err)
}

// TestVerifyTellsWhatTheNextStartDoes about what an earlier process could not make durable: it may read well.
func TestVerifyTellsWhatTheNextStartDoes(t *testing.T) {
	dir, params := unpack(t, golden.Load("file-roll"))
	look := func() (verify.Report, string) {
		stdout, _, err := run("store", "verify", dir, "--params", params, "--json")
		text, _, again := run("store", "verify", dir, "--params", params)
		require.NoError(t, errors.Join(err, again))
		var r verify.Report
		require.NoError(t, json.Unmarshal([]byte(stdout), &r))
		return r, text
	}
	r, text := look()
	require.NotNil(t, r.Marks)
	require.Empty(t, r.Marks)
	require.NotContains(t, text, "next start")
	for marker, want := range map[string]int64{"700\nthe disk is broken\n": 700, "torn": 0, "9223372036854775806\na unit is damaged\n": 0} {
		for _, name := range []string{"unprovenqueues", "unproven"} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(marker), 0o600))
		}
		r, text = look()
		require.Len(t, r.Marks, 2)
		require.Equal(t, []string{"unproven", "unprovenqueues"}, []string{r.Marks[0].File, r.Marks[1].File})
		require.Equal(t, want, r.Marks[1].From)
		for _, m := range r.Marks {
			require.Contains(t, text, m.File+": from ")
			require.Contains(t, text, m.Next)
		}
	}
}
