package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/cmd/actormq/internal/storedump"
	"github.com/actormq/actormq/testkit/golden"
)

// run executes the program's command line and returns what it wrote.
func run(args ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	c := newRootCommand()
	c.SetOut(&out)
	c.SetErr(&errs)
	c.SetArgs(args)
	err = c.Execute()
	return out.String(), errs.String(), err
}

// unpack lays a golden store and its parameters out on the disk.
func unpack(t *testing.T, s golden.Store) (dir, params string) {
	t.Helper()
	tmp := t.TempDir()
	dir, err := s.Unpack(tmp)
	require.NoError(t, err)
	params = filepath.Join(tmp, "params.json")
	require.NoError(t, os.WriteFile(params, s.Params, 0o600))
	return dir, params
}

// fileState is what must not change in a directory that is only looked at.
type fileState struct {
	content string
	modTime time.Time
}

func snapshot(t *testing.T, dir string) map[string]fileState {
	t.Helper()
	all := map[string]fileState{}
	require.NoError(t, filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		state := fileState{modTime: info.ModTime()}
		if !e.IsDir() {
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			state.content = string(b)
		}
		all[name] = state
		return nil
	}))
	return all
}

func TestDumpOfGoldenStores(t *testing.T) {
	for _, name := range golden.Names() {
		t.Run(name, func(t *testing.T) {
			s := golden.Load(name)
			dir, params := unpack(t, s)
			before := snapshot(t, dir)
			out := filepath.Join(t.TempDir(), "dump.json")
			_, _, err := run("store", "dump", dir, "--json", out, "--params", params)
			require.NoError(t, err)
			b, err := os.ReadFile(out)
			require.NoError(t, err)
			require.Empty(t, s.Check(b))
			require.True(t, before != nil && equalStates(before, snapshot(t, dir)), "the directory was changed")
		})
	}
}

func equalStates(a, b map[string]fileState) bool {
	if len(a) != len(b) {
		return false
	}
	for name, s := range a {
		if b[name] != s {
			return false
		}
	}
	return true
}

// Of a store that RocketMQ reads rightly only what is said about the time after closing may differ: RocketMQ does not sync
// its newest index file.
func TestDumpIsRocketMQsToTheLetter(t *testing.T) {
	for _, name := range []string{"file-roll", "compressed", "ipv6", "tx-store", "lmq", "cq-ext", "crash-clean-tail"} {
		s := golden.Load(name)
		dir, params := unpack(t, s)
		stdout, _, err := run("store", "dump", dir, "--json", "-", "--params", params)
		require.NoError(t, err)
		got, want := bytes.Split([]byte(stdout), []byte("\n")), bytes.Split(s.Expected(), []byte("\n"))
		require.Len(t, got, len(want), name)
		for i := range want {
			if !bytes.HasPrefix(want[i], []byte(` "after":`)) {
				require.Equal(t, string(want[i]), string(got[i]), "%s, line %d", name, i+1)
			}
		}
	}
}

func TestDumpWithoutParameters(t *testing.T) {
	for _, name := range []string{"basic", "min-offset", "empty"} {
		s := golden.Load(name)
		dir, _ := unpack(t, s)
		stdout, _, err := run("store", "dump", dir, "--json", "-")
		require.NoError(t, err)
		require.Empty(t, s.Check([]byte(stdout)), name)
	}
}

func TestDumpOfAStoreWithOtherSizes(t *testing.T) {
	dir, _ := unpack(t, golden.Load("basic"))
	params := filepath.Join(t.TempDir(), "params.json")
	require.NoError(t, os.WriteFile(params, []byte(`{"commitLogSize":131072,"consumeQueueSize":20000,"hashSlots":500,"indexNum":2000}`), 0o600))
	out := filepath.Join(t.TempDir(), "dump.json")
	_, _, err := run("store", "dump", dir, "--json", out, "--params", params)
	require.ErrorIs(t, err, storedump.ErrNotLoaded)
	require.ErrorContains(t, err, "262144 bytes instead of 131072")

	var v struct {
		Loaded    *bool  `json:"loaded"`
		LoadError string `json:"loadError"`
	}
	b, err := os.ReadFile(out)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &v))
	require.False(t, *v.Loaded)
	require.Contains(t, v.LoadError, "<dir>")
	require.NotContains(t, v.LoadError, dir)
}

func TestDumpRefuses(t *testing.T) {
	dir, params := unpack(t, golden.Load("basic"))
	bad := filepath.Join(t.TempDir(), "bad.json")
	require.NoError(t, os.WriteFile(bad, []byte(`{`), 0o600))
	out := filepath.Join(t.TempDir(), "dump.json")
	tests := map[string]struct {
		args []string
		want string
	}{
		"no output":     {[]string{dir}, `--json FILE, or --json -`},
		"no directory":  {[]string{"--json", out}, "accepts 1 arg"},
		"missing":       {[]string{filepath.Join(dir, "nothing"), "--json", out}, "no such file"},
		"a file":        {[]string{filepath.Join(dir, "lock"), "--json", out, "--params", params}, "is no folder"},
		"bad params":    {[]string{dir, "--json", out, "--params", bad}, "parameters " + bad},
		"bad manifest":  {[]string{dir, "--json", out, "--params", params, "--manifest", bad}, "manifest " + bad},
		"no such place": {[]string{dir, "--json", filepath.Join(out, "x"), "--params", params}, "no such file"},
		"slots":         {[]string{dir, "--json", out, "--slots", "501"}, "cannot tell slots and entries"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := run(append([]string{"store", "dump"}, tt.args...)...)
			require.ErrorContains(t, err, tt.want)
			left, err := os.ReadDir(filepath.Dir(out))
			require.NoError(t, err)
			require.Empty(t, left, "a part of a dump was left behind")
		})
	}
}

func TestDumpTellsWhatRecoveryFinds(t *testing.T) {
	dir, params := unpack(t, golden.Load("crc-corrupt-middle"))
	_, stderr, err := run("store", "dump", dir, "--json", "-", "--params", params, "--verbose", "--no-index")
	require.NoError(t, err)
	require.Contains(t, stderr, "damage in the log")
	require.Contains(t, stderr, "bad body CRC")
}

// TestADumpPutsNoFileInThePlaceOfADevice: root who dumped to /dev/null had a file there afterwards, and so had every other program.
func TestADumpPutsNoFileInThePlaceOfADevice(t *testing.T) {
	dir, params := unpack(t, golden.Load("basic"))
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0) // does not wait for a writer
	require.NoError(t, err)
	defer reader.Close()
	read := make(chan error, 1)
	go func() {
		var v map[string]any
		read <- json.NewDecoder(reader).Decode(&v)
	}()
	_, _, err = run("store", "dump", dir, "--json", pipe, "--params", params, "--no-index")
	require.NoError(t, err)
	st, err := os.Lstat(pipe)
	require.NoError(t, err)
	require.Equal(t, os.ModeNamedPipe, st.Mode().Type())
	require.NoError(t, <-read)
}

// TestADumpPutsNoFileInThePlaceOfALink: /dev/stdout is one, to a file when it is redirected there.
func TestADumpPutsNoFileInThePlaceOfALink(t *testing.T) {
	dir, params := unpack(t, golden.Load("basic"))
	file, link := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.WriteFile(file, []byte("before"), 0o600))
	require.NoError(t, os.Symlink(file, link))
	_, _, err := run("store", "dump", dir, "--json", link, "--params", params, "--no-index")
	require.NoError(t, err)
	st, err := os.Lstat(link)
	require.NoError(t, err)
	require.Equal(t, os.ModeSymlink, st.Mode().Type())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, json.Valid(text))
}
