package dispatching_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/testkit/fixture"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// TestExtendingGuideCompilesAndRuns makes a module as docs/EXTENDING.md says, by its own commands, of its code, and runs its tests.
func TestExtendingGuideCompilesAndRuns(t *testing.T) {
	if fixture.Raced {
		t.Skip("the race detector sees nothing of other processes")
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "docs", "EXTENDING.md"))
	require.NoError(t, err)
	commands := regexp.MustCompile("(?s)```sh\n(mkdir mine && cd mine\n.*?)# now the files below, and then\n(go mod tidy\n)(go test .*?)```").FindSubmatch(text)
	require.NotNil(t, commands)
	blocks := goBlock.FindAllSubmatch(text, -1)
	require.GreaterOrEqual(t, len(blocks), 6)
	base, ours := t.TempDir(), " github.com/actormq/actormq="
	// By a path in a folder of its own all of it would be compiled again.
	require.Contains(t, string(commands[1]), ours+"../actormq\n")
	begin := strings.Replace(string(commands[1]), ours+"../actormq", ours+root, 1)
	sh := func(dir, lines string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), "bash", "-e", "-c", lines)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		return cmd.CombinedOutput()
	}
	out, err := sh(base, begin)
	require.NoError(t, err, string(out))
	dir := filepath.Join(base, "mine")
	write := func(name string, content []byte) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, content, 0o600))
	}
	for _, b := range blocks {
		first, _, _ := strings.Cut(string(b[1]), "\n")
		name, named := strings.CutPrefix(first, "// file: ")
		require.True(t, named, "a block begins with its file's name: %s", first)
		write(name, b[1])
	}
	if out, err := sh(dir, string(commands[2])); err != nil {
		t.Logf("go mod tidy looks for more than a build needs, and gets nothing: the module takes over what we require: %s", out)
		mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
		require.NoError(t, err)
		sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
		require.NoError(t, err)
		const path = "github.com/actormq/actormq"
		own := strings.Replace(string(mod), "module "+path, "module example.com/mine", 1)
		write("go.mod", []byte(own+"\nrequire "+path+" v0.0.0\n\nreplace "+path+" => "+root+"\n"))
		write("go.sum", sum)
	}
	out, err = sh(dir, string(commands[3]))
	require.NoError(t, err, string(out))
}
