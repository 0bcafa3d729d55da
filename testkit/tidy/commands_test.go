package tidy_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	goTest   = regexp.MustCompile("`([^`\n(]*\\bgo test [^`\n)]*)`")
	script   = regexp.MustCompile("`(?:[A-Z_]+=\\S+ )*((?:testkit/|\\.ci/)[a-z0-9/._-]*(?:\\.sh|/run))\\b")
	variable = regexp.MustCompile(`\b([A-Z][A-Z_]+)=`)
	quoted   = regexp.MustCompile(`'[^']*'|\S+`)
)

// Documents name tests, packages and scripts that are there, and the variables that these look at: what runs in CI is run as documented.
func TestDocumentedTestsAreThere(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	decisions, err := filepath.Glob(filepath.Join(root, "docs", "adr", "*.md"))
	require.NoError(t, err)
	files = append(files, decisions...)
	var bad []string
	commands, scripts := 0, 0
	for _, file := range append(files, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range goTest.FindAllSubmatch(text, -1) {
			commands++
			for _, problem := range misleading(t, strings.ReplaceAll(string(m[1]), `\|`, "|")) {
				bad = append(bad, fmt.Sprintf("%s: %s: %s", path.Base(file), m[1], problem))
			}
		}
		for _, m := range script.FindAllSubmatch(text, -1) {
			scripts++
			if info, err := os.Stat(filepath.Join(root, string(m[1]))); err != nil || info.Mode()&0o111 == 0 {
				bad = append(bad, fmt.Sprintf("%s: %s can't be run", path.Base(file), m[1]))
			}
		}
	}
	none(t, bad)
	require.Greater(t, commands, 40)
	require.Greater(t, scripts, 10)
	require.Len(t, misleading(t, "NOBODYS=1 go test -run 'TestCrashes|TestNobodys' ./testkit/crash ./nowhere"), 3)
}

// misleading tells what a command for tests names that is not there.
func misleading(t *testing.T, command string) (bad []string) {
	t.Helper()
	var packages, wanted []string
	words := quoted.FindAllString(command, -1)
	for i, word := range words {
		switch {
		case strings.HasPrefix(word, "./"):
			packages = append(packages, strings.TrimPrefix(word, "./"))
		case i > 0 && (words[i-1] == "-run" || words[i-1] == "-bench" || words[i-1] == "-fuzz") && word != "xxx":
			wanted = append(wanted, strings.Split(strings.Trim(word, "'"), "|")...)
		}
	}
	names := map[string]bool{}
	seen := map[string]bool{}
	for _, s := range sources(t) {
		for _, p := range packages {
			tree, all := strings.CutSuffix(p, "...")
			if dir := s.dir(); !s.test() || dir != p && !(all && (tree == "" || within(dir, strings.TrimSuffix(tree, "/")))) {
				continue
			}
			seen[p] = true
			for _, d := range s.tree.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
					names[f.Name.Name] = true
				}
			}
		}
	}
	for _, p := range packages {
		if !seen[p] {
			bad = append(bad, "no tests in "+p)
		}
	}
	for _, w := range wanted {
		if !matches(names, w) {
			bad = append(bad, "no test "+w)
		}
	}
	for _, m := range variable.FindAllStringSubmatch(command, -1) {
		if !mentioned(t, m[1]) {
			bad = append(bad, "nobody looks at "+m[1])
		}
	}
	return bad
}

func matches(names map[string]bool, pattern string) bool {
	re := regexp.MustCompile(pattern)
	for name := range names {
		if re.MatchString(name) {
			return true
		}
	}
	return false
}

// mentioned tells whether a test looks at a variable of the environment.
func mentioned(t *testing.T, name string) bool {
	t.Helper()
	for _, s := range sources(t) {
		if s.test() && bytes.Contains(s.text, []byte(`"`+name+`"`)) {
			return true
		}
	}
	return false
}
