package tidy_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// document reads a file of docs/.
func document(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "docs", name))
	require.NoError(t, err)
	return string(b)
}

// rows reads the tables of a document whose first column is a name in backticks. Every such row must have so many columns,
// each with a word in it, and no name may come twice.
func rows(doc, text string, columns int) (names map[string]bool, problems []string) {
	names = map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		at := fmt.Sprintf("docs/%s:%d", doc, i+1)
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|"), "|")
		name := strings.Trim(strings.TrimSpace(cells[0]), "`")
		if names[name] {
			problems = append(problems, fmt.Sprintf("%s: %s has a row already", at, name))
		}
		names[name] = true
		if len(cells) != columns {
			problems = append(problems, fmt.Sprintf("%s: %s has %d columns instead of %d", at, name, len(cells), columns))
		}
		for _, cell := range cells {
			if !strings.ContainsFunc(cell, unicode.IsLetter) {
				problems = append(problems, fmt.Sprintf("%s: %s has an empty column", at, name))
			}
		}
	}
	return names, problems
}

// compare says what of the code has no row, and which rows are about nothing.
func compare(doc string, rows map[string]bool, needed, existing map[string]string) []string {
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		if !rows[name] {
			problems = append(problems, fmt.Sprintf("%s: %s has no row in docs/%s", needed[name], name, doc))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if _, ok := existing[name]; !ok {
			problems = append(problems, fmt.Sprintf("docs/%s: there is no %s", doc, name))
		}
	}
	return problems
}
