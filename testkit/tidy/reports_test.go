package tidy_test

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fieldReports are the numbers of the faults that users have met; weaknesses is how many weaknesses of the original are known.
var fieldReports = []int{
	1, 2, 3, 4, 7, 9, 11, 12, 13, 15, 17, 18, 19, 21, 23, 24, 25, 26, 28, 30, 31, 33, 34, 36, 38, 40, 41, 42, 43, 44, 46, 47, 48, 49, 52,
	54, 55, 56, 58, 59, 61, 63, 64, 65, 66, 69, 71, 72, 74, 75, 76, 77, 79, 80, 81, 82, 84, 86, 88, 89, 91, 92, 93, 95, 96, 98, 99, 101,
	102, 104, 106, 107, 108, 110, 112,
}

const weaknesses = 33

var (
	row   = regexp.MustCompile(`^\| ([WL][0-9]+) \| (.*[a-z].*) \|$`)
	named = regexp.MustCompile("`((?:Test|Fuzz)[A-Z0-9][A-Za-z0-9_]*)`")
	// number is one of them in the name of a test or in a comment.
	number = regexp.MustCompile(`(?:\b|Test|Fuzz)([WL][0-9]{1,3})(?:[^0-9a-z]|$|[A-Z])`)
)

// testNames returns all tests and fuzz targets, and the numbers that stand in files of tests.
func testNames(all []*source) (tests, numbers map[string]bool) {
	tests, numbers = map[string]bool{}, map[string]bool{}
	for _, s := range all {
		if !s.test() || s.dir() == "testkit/tidy" {
			continue
		}
		for _, d := range s.tree.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				tests[f.Name.Name] = true
			}
		}
		for _, n := range number.FindAllStringSubmatch(string(s.text), -1) {
			numbers[n[1]] = true
		}
	}
	return tests, numbers
}

// shown is the rule: every number has one row, which names the test that shows it, or says why there is none. Where it names one, the
// number stands with a test.
func shown(doc, text string, needed []string, numbers map[string]bool) []string {
	var problems []string
	have := map[string]bool{}
	for _, line := range strings.Split(text, "\n") {
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if have[m[1]] {
			problems = append(problems, fmt.Sprintf("docs/%s: %s has a row already", doc, m[1]))
		}
		have[m[1]] = true
		if named.MatchString(m[2]) && !numbers[m[1]] {
			problems = append(problems, fmt.Sprintf("docs/%s: no test names %s", doc, m[1]))
		}
	}
	for _, n := range needed {
		if !have[n] {
			problems = append(problems, fmt.Sprintf("docs/%s: %s has no row", doc, n))
		}
		delete(have, n)
	}
	for n := range have {
		problems = append(problems, fmt.Sprintf("docs/%s: there is no %s", doc, n))
	}
	return problems
}

func TestEveryWeaknessAndEveryReportHasARow(t *testing.T) {
	require.Len(t, fieldReports, 75)
	_, numbers := testNames(sources(t))
	var w, l []string
	for n := range weaknesses {
		w = append(w, fmt.Sprint("W", n+1))
	}
	for _, n := range fieldReports {
		l = append(l, fmt.Sprintf("L%02d", n))
	}
	none(t, shown("WEAKNESSES.md", document(t, "WEAKNESSES.md"), w, numbers))
	none(t, shown("FIELD-REPORTS.md", document(t, "FIELD-REPORTS.md"), l, numbers))
}

// TestEveryTestThatADocumentNamesIsThere: what a page says of a test is worth nothing once that has another name.
func TestEveryTestThatADocumentNamesIsThere(t *testing.T) {
	tests, _ := testNames(sources(t))
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	more, err := filepath.Glob(filepath.Join(root, "docs", "adr", "*.md"))
	require.NoError(t, err)
	var problems []string
	for _, page := range append(pages, more...) {
		b, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range named.FindAllStringSubmatch(string(b), -1) {
			if !tests[m[1]] {
				problems = append(problems, fmt.Sprintf("docs/%s: there is no test %s", filepath.Base(page), m[1]))
			}
		}
	}
	none(t, problems)
}

// leakless is the rule: a package whose code starts goroutines fails its tests when one of them outlives them.
func leakless(all []*source) []string {
	starts, tested, checked := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, s := range all {
		if s.test() {
			tested[s.dir()] = true
			checked[s.dir()] = checked[s.dir()] || s.imports["goleak"] != ""
			continue
		}
		ast.Inspect(s.tree, func(n ast.Node) bool {
			if _, ok := n.(*ast.GoStmt); ok {
				starts[s.dir()] = true
			}
			if call, ok := n.(*ast.CallExpr); ok {
				if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Go" {
					starts[s.dir()] = true
				}
			}
			return true
		})
	}
	var problems []string
	for dir := range starts {
		if tested[dir] && !checked[dir] {
			problems = append(problems, dir+": it starts goroutines, and its tests do not look for leaks (goleak.VerifyTestMain)")
		}
	}
	return problems
}

func TestGoroutinesThatOutliveTestsAreFound(t *testing.T) { none(t, leakless(sources(t))) }
