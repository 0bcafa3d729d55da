package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

var (
	// block is a block of a shell, of anything else, or a line that stands further in; span is code in a line.
	block = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```|^ {4}([^ \n](?:[^\n]*\\\\\n)*[^\n]*)$")
	span  = regexp.MustCompile("`([^`\n]+)`")
	// typed begins a line that is a command, behind variables and a change of folder.
	typed = regexp.MustCompile(`^(?:[A-Z_]+=\S+ )*\(?(?:cd \S+ && )?(?:for |mkdir |` +
		`(?:[\w./-]*/)?(?:\w[\w-]*\.sh|compare\.py|table\.py|brokerbench|gopeers|actormq|\.ci/run)(?:[ )]|$)|` +
		`(?:go|curl|make|kubectl|docker|buildah|ssh|yes|kill|fallocate|mqadmin|mqshutdown|systemctl|useradd|unshare|java|mvn) )`)
	// named are our commands that a text only names, without what they need.
	named   = regexp.MustCompile(`^(?:bin/)?actormq(?: [a-z]+){0,2}$`)
	comment = regexp.MustCompile(`\s+# .*$`)
	table   = regexp.MustCompile(`^[\w./-]+ {2,}\w`) // a program and what it is for
)

// command is one of a document.
type command struct{ file, text string }

// typedIn are the commands of a document, those in blocks first.
func typedIn(file, text string) (all []command) {
	add := func(line string) {
		line = strings.TrimSpace(line)
		if table.MatchString(line) {
			return
		}
		line = strings.Join(strings.Fields(strings.ReplaceAll(comment.ReplaceAllString(line, ""), "\\\n", " ")), " ")
		if typed.MatchString(line) {
			all = append(all, command{file, strings.ReplaceAll(line, `\|`, "|")})
		}
	}
	for _, m := range block.FindAllStringSubmatch(text, -1) {
		switch {
		case m[1] == "sh":
			for line := range strings.Lines(strings.ReplaceAll(m[2], "\\\n", " ")) {
				add(line)
			}
		case m[3] != "" && strings.HasSuffix(file, "README.md"): // elsewhere it is the second line of a list's item
			add(m[3])
		}
	}
	for _, m := range span.FindAllStringSubmatch(block.ReplaceAllString(text, "\n"), -1) {
		add(m[1])
	}
	return all
}

// documented are the commands of all documents but the guide, and those in the comments of the files to deploy with.
func documented(t *testing.T) (all []command) {
	t.Helper()
	var files []string
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/adr/*.md", "testkit/*/README.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		files = append(files, found...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if filepath.Base(file) != "GUIDE.md" {
			all = append(all, typedIn(file, string(text))...)
		}
	}
	deploy, err := filepath.Glob(filepath.Join(root, "docs/deploy/*"))
	require.NoError(t, err)
	for _, file := range deploy {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?m)^#(?:   |.*?: )(\w.*)$`).FindAllStringSubmatch(string(text), -1) {
			line, _, _ := strings.Cut(m[1], ". ")
			if typed.MatchString(line) {
				all = append(all, command{file, line})
			}
		}
	}
	return all
}

func TestCommandsAreFound(t *testing.T) {
	text := "# A\n\n```sh\nactormq store verify DIR   # says it\nls\nfor n in 1 2; do a \\\n  b; done\n```\n\n" +
		"`go test ./x` and `bin/actormq topic list`, `actormq_puts_total`; a `name.go`\n\n    (cd java && mvn -q package)\n    ./compare.py --rounds 3 \\\n        --suite x\n"
	var lines []string
	for _, c := range typedIn("a/README.md", text) {
		lines = append(lines, c.text)
	}
	require.Equal(t, []string{"actormq store verify DIR", "for n in 1 2; do a b; done", "(cd java && mvn -q package)", "./compare.py --rounds 3 --suite x",
		"go test ./x", "bin/actormq topic list"}, lines)
	all := documented(t)
	require.Greater(t, len(all), 250)
	for _, want := range []string{"docs/deploy/Dockerfile", "docs/adr/0003-dependencies.md", "testkit/bench/README.md", "docs/OPERATIONS.md"} {
		require.True(t, slices.ContainsFunc(all, func(c command) bool { return strings.HasSuffix(c.file, want) }), want)
	}
}
