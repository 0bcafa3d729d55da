package dispatching_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// TestExtendingGuideCompilesAndRuns makes a module of the code in docs/EXTENDING.md and runs its tests.
func TestExtendingGuideCompilesAndRuns(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "docs", "EXTENDING.md"))
	require.NoError(t, err)
	blocks := goBlock.FindAllSubmatch(text, -1)
	require.GreaterOrEqual(t, len(blocks), 6)
	dir := t.TempDir()
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
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	const ours = "github.com/actormq/actormq"
	own := strings.Replace(string(mod), "module "+ours, "module example.com/mine", 1)
	own += "\nrequire " + ours + " v0.0.0\n\nreplace " + ours + " => " + root + "\n"
	write("go.mod", []byte(own))
	write("go.sum", sum)
	cmd := exec.CommandContext(t.Context(), "go", "test", "-mod=mod", "./...")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}
