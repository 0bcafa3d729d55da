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

// words are what no file of the repository has, in either case: names of places where it was written, of the machines that
// packages come from, notes that somebody wanted to come back to, and what a merge leaves that is not finished. They are put together here, so that this file does
// not have them either.
var words = regexp.MustCompile(`(?im)` + strings.Join([]string{
	"ses" + "sion", "sand" + "box", "/wo" + "rk/", "/tmp" + "/w/", `\bsha` + "red/", "helper" + " agent", "sub" + "agent",
	`proxy\.go` + "lang", `sum\.go` + "lang", `repo1\.ma` + "ven", `repo\.ma` + "ven", `py` + `pi\.org`, "python" + "hosted",
	`np` + `mjs\.org`, `cra` + `tes\.io`, `(?-i:\bTO` + `DO\b|\bFIX` + `ME\b)`, "^<<<<" + "<<< ", "^>>>>" + ">>> ",
}, "|"))

// wording looks for forbidden words in a text.
func wording(name string, text []byte) []string {
	if !words.Match(text) {
		return nil
	}
	var problems []string
	for i, line := range bytes.Split(text, []byte("\n")) {
		if found := words.Find(line); found != nil {
			problems = append(problems, fmt.Sprintf("%s:%d: has %q", name, i+1, found))
		}
	}
	return problems
}

// peersWord tells whether a file is the peer's, or data that it has written: there one of the words stands for a run of
// RocketMQ, in its scenarios and their parameters.
func peersWord(name string) bool {
	return strings.HasPrefix(name, "testkit/peer/") || strings.HasPrefix(name, "testkit/golden/testdata/")
}

// isText tells whether a file has no zero byte near its beginning.
func isText(b []byte) bool {
	const looked = 8000
	return !bytes.Contains(b[:min(len(b), looked)], []byte{0})
}

func TestNoForbiddenWord(t *testing.T) {
	var problems []string
	err := walk(func(name string, _ bool) error {
		if peersWord(name) {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err == nil && isText(text) {
			problems = append(problems, wording(name, text)...)
		}
		if words.MatchString(name) {
			problems = append(problems, name+": the name has a forbidden word")
		}
		return err
	})
	require.NoError(t, err)
	none(t, problems)
}

// link is a link of a document to a file beside it.
var link = regexp.MustCompile(`\]\(([^)#\s]+)`)

// deadLinks looks for links to files that are not there; exists is asked with a path from the root.
func deadLinks(name string, text []byte, exists func(string) bool) []string {
	var problems []string
	for _, m := range link.FindAllSubmatch(text, -1) {
		target := string(m[1])
		if !strings.Contains(target, "://") && !exists(path.Join(path.Dir(name), target)) {
			problems = append(problems, fmt.Sprintf("%s: the link to %s leads nowhere", name, target))
		}
	}
	return problems
}

func TestLinksOfDocuments(t *testing.T) {
	var problems []string
	seen := 0
	err := walk(func(name string, nested bool) error {
		if nested || path.Ext(name) != ".md" {
			return nil
		}
		seen++
		text, err := os.ReadFile(filepath.Join(root, name))
		problems = append(problems, deadLinks(name, text, func(target string) bool {
			_, err := os.Stat(filepath.Join(root, target))
			return err == nil
		})...)
		return err
	})
	require.NoError(t, err)
	require.NotZero(t, seen)
	none(t, problems)
}

// mention is the name of a test, fuzz target or benchmark in a document.
var mention = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9_]*)`")

// unknownTests looks for names of tests that are not there.
func unknownTests(name string, text []byte, known map[string]bool) []string {
	var problems []string
	for _, m := range mention.FindAllSubmatch(text, -1) {
		if !known[string(m[1])] {
			problems = append(problems, fmt.Sprintf("%s: there is no %s", name, m[1]))
		}
	}
	return problems
}

func TestDocumentsNameTestsThatExist(t *testing.T) {
	known := map[string]bool{}
	for _, s := range sources(t) {
		for _, d := range s.tree.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test() {
				known[f.Name.Name] = true
			}
		}
	}
	var problems []string
	require.NoError(t, walk(func(name string, nested bool) error {
		if nested || path.Ext(name) != ".md" {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		problems = append(problems, unknownTests(name, text, known)...)
		return err
	}))
	none(t, problems)
}
